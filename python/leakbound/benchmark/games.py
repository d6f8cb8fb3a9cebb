"""Games: mechanisms of known privacy, your own attack, and stored scores.

Each is a frozen dataclass of its parameters: ``game(m, seed=seed)`` plays it.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from leakbound._base.checks import MOST_EXAMPLES, check_membership, check_scores, integer, real
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, BoolArray, FloatArray
from leakbound.errors import FormatError, OptionError
from leakbound.simulate import Game, gaussian, mixture, null, randomized_response
from leakbound.simulate.games import coins


@dataclass(frozen=True)
class Mechanism:
    """A game of `leakbound.simulate` with parameters: ``game(m, seed=seed)`` plays m examples."""

    _play: ClassVar[Callable[..., Game]]

    def __post_init__(self) -> None:
        self(1, seed=0)  # parameters out of range are refused here

    def __call__(self, m: int, *, seed: int) -> Game:
        """Play the game of a seed."""
        return self._play(m, **vars(self), seed=seed)


@dataclass(frozen=True)
class Noise(Mechanism):
    """Scores that carry no information about membership: `leakbound.simulate.null`."""

    _play = staticmethod(null)


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """Orthogonal canaries in Gaussian noise: `leakbound.simulate.gaussian`."""

    mu: float = 1.0
    _play = staticmethod(gaussian)


@dataclass(frozen=True)
class Mixture(Mechanism):
    """Gaussian DP whose canaries leak together: `leakbound.simulate.mixture`."""

    mu: float = 1.0
    dependence: float = 0.95
    _play = staticmethod(mixture)


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """Reports that are correct with odds e^ε: `leakbound.simulate.randomized_response`."""

    epsilon: float = 1.0
    fraction: float = 1.0
    delta: float = 0.0
    _play = staticmethod(randomized_response)


@dataclass(frozen=True)
class Attack:
    """A game with your own attack, on members drawn by fair coins.

    Parameters
    ----------
    attack : callable
        ``attack(member, seed)`` returns scores, shape (m,). Train on the members, where the bool
        array `member` is True; or ignore it to see the scores of noise.
    truth : float
        The ε that your training keeps, at least 0; 0 if it ignores `member`.
    """

    attack: Callable[[BoolArray, int], ArrayInput]
    truth: float = 0.0

    def __call__(self, m: int, *, seed: int) -> Game:
        """Play the game of a seed."""
        rng = Purpose.USER_GAME.rng(integer(seed, "seed", least=0))
        member = coins(rng, integer(m, "m", least=1, most=MOST_EXAMPLES))
        scores = check_scores(self.attack(member.copy(), int(rng.integers(2**32))), "attack(…)")
        truth = real(self.truth, "truth", least=0)
        return Game(scores=scores, member=member, truth=truth, parameter="epsilon")


@dataclass(frozen=True)
class Scores:
    """Stored scores of a trained model whose members were drawn by fair coins; unknown truth.

    A game of m examples is a random part of them, chosen by its seed.

    Parameters
    ----------
    source : str or os.PathLike
        A parquet file with a column `member` and columns of scores, higher for likelier members.
    column : str
        The column of scores.
    """

    source: str | os.PathLike[str]
    column: str = "score"

    def __call__(self, m: int, *, seed: int) -> Game:
        """Play the game of a seed."""
        path = Path(self.source)
        written = (path.stat().st_mtime_ns, path.stat().st_size) if path.exists() else None
        scores, member = _stored(path, self.column, written)
        if m > scores.size:
            raise OptionError(f"{path} has only {scores.size:,} examples: m={m:,} is too large")
        rows = Purpose.CORPUS_ROWS.rng(integer(seed, "seed", least=0)).permutation(scores.size)[:m]
        return Game(scores=scores[rows], member=member[rows], truth=math.nan, parameter="epsilon")


@lru_cache(maxsize=8)
def _stored(path: Path, column: str, _written: object) -> tuple[FloatArray, BoolArray]:
    """Return scores and membership of a file, which is read again if it was written since."""
    table = read_parquet(path)
    for name in (column, "member"):
        if name not in table.column_names:
            raise FormatError(
                f"{path} has no column {name!r}; its columns are {', '.join(table.column_names)}"
            )
    scores = check_scores(table[column].to_numpy(), f"{column!r} of {path}")
    return scores, check_membership(table["member"].to_numpy(), scores.size)


def read_parquet(path: Path) -> Any:
    """Read a parquet file; an error about a damaged one names it."""
    with needs("io", "leakbound.benchmark"):
        import pyarrow as pa
        from pyarrow import parquet
    try:
        return parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise FormatError(
            f"{path} is not a complete parquet file: {' '.join(str(error).split()):.200}"
        ) from error
