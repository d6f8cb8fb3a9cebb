"""Games: functions of `leakbound.simulate` with parameters, a user's attack, and stored scores.

``Gaussian(mu=1)`` is ``partial(simulate.gaussian, mu=1)``, and so are the others of such a name.
"""

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from leakbound._base.checks import MOST_EXAMPLES, check_membership, check_scores, integer, real
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, BoolArray, FloatArray
from leakbound.errors import FormatError, OptionError
from leakbound.simulate import (
    Game,
    dp_sgd,
    gaussian,
    laplace,
    losses_near_zero,
    mixture,
    null,
    one_sided_tail,
    randomized_response,
    rankings,
    shifted,
    ties,
    two_sided_tail,
)

# Where scores are looked for by name, unless LEAKBOUND_CORPUS says otherwise: a clone has them.
_CORPUS = Path(__file__).parents[3] / "benches" / "corpus"

DPSGD = partial(partial, dp_sgd)
Failures = partial(partial, randomized_response, epsilon=0.0, delta=0.01)
Gaussian = partial(partial, gaussian, mu=1.0)
Laplace = partial(partial, laplace)
LossesNearZero = partial(partial, losses_near_zero)
Mixture = partial(partial, mixture, mu=1.0)
Noise = partial(partial, null)
OneSidedTail = partial(partial, one_sided_tail)
RandomizedResponse = partial(partial, randomized_response, epsilon=1.0)
Rankings = partial(partial, rankings)
Shifted = partial(partial, shifted)
SparseTails = partial(partial, two_sided_tail, share=0.005, shift=8.0)
Ties = partial(partial, ties)
TwoSidedTail = partial(partial, two_sided_tail)


@dataclass(frozen=True)
class Attack:
    """A game with an attack of your own, on coins that are tossed for it.

    Parameters
    ----------
    attack : callable
        ``attack(member, seed)`` returns scores, array-like of shape (m,). `member` says what the
        coins said, a bool array of shape (m,): train on the members, or ignore it to see what your
        scoring makes of noise. All randomness comes from the integer `seed`.
    truth : float
        The ε that your training keeps, at least 0; 0 if it ignores `member`.
    """

    attack: Callable[[BoolArray, int], ArrayInput]
    truth: float = 0.0

    def __call__(self, m: int, *, seed: int) -> Game:
        """Play the game of a seed."""
        rng = Purpose.USER_GAME.rng(integer(seed, "seed", least=0))
        member = rng.random(integer(m, "m", least=1, most=MOST_EXAMPLES)) < 0.5
        scores = check_scores(self.attack(member.copy(), int(rng.integers(2**32))), "attack(…)")
        truth = real(self.truth, "truth", least=0)
        return Game(scores=scores, member=member, truth=truth, parameter="epsilon")


@dataclass(frozen=True)
class Scores:
    """Stored scores of a trained model whose members fair coins drew; its truth is not known.

    Parameters
    ----------
    source : str or os.PathLike
        A parquet file with a column `member` and columns of scores, higher for likelier members; or
        the name of one in `benches/corpus` of the repository or in the folder LEAKBOUND_CORPUS.
    column : str
        The column of scores.

    Notes
    -----
    A game of m examples is a random part of the file, chosen by its seed.
    """

    source: str | os.PathLike[str]
    column: str = "score"

    def __call__(self, m: int, *, seed: int) -> Game:
        """Play the game of a seed."""
        scores, member = _read(_file(self.source), self.column)
        if m > scores.size:
            message = f"{self.source} has {scores.size:,} examples: m={m:,} is too many"
            raise OptionError(message)
        rows = Purpose.CORPUS_ROWS.rng(integer(seed, "seed", least=0)).permutation(scores.size)[:m]
        return Game(scores=scores[rows], member=member[rows], truth=math.nan, parameter="epsilon")


def _file(source: str | os.PathLike[str]) -> Path:
    if Path(source).suffix == ".parquet":
        return Path(source)
    folder = Path(os.environ.get("LEAKBOUND_CORPUS", _CORPUS))
    file = folder / f"{source}.parquet"
    if not file.is_file():
        names = ", ".join(sorted(one.stem for one in folder.glob("*.parquet"))) or "none"
        message = f"no scores named {str(source)!r} in {folder}, which has {names}: name a .parquet"
        raise FormatError(message)
    return file


@lru_cache(maxsize=8)
def _read(path: Path, column: str) -> tuple[FloatArray, BoolArray]:
    table = read_parquet(path)
    for name in (column, "member"):
        if name not in table.column_names:
            message = f"{path} has no column {name!r}, but {', '.join(table.column_names)}"
            raise FormatError(message)
    scores = check_scores(table[column].to_numpy(), f"{column!r} of {path.name}")
    return scores, check_membership(table["member"].to_numpy(), scores.size)


def read_parquet(path: Path) -> Any:
    """Read a parquet file; one that is damaged or cut short is an error that names it."""
    with needs("io", "leakbound.benchmark"):
        import pyarrow as pa
        from pyarrow import parquet
    try:
        return parquet.read_table(path)
    except (pa.ArrowException, OSError) as error:
        message = f"{path} is no whole parquet file: {' '.join(str(error).split()):.200}"
        raise FormatError(message) from error
