"""Games of your own attack, and of stored scores: ``game(m, seed=seed)`` plays them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from leakbound._base.checks import check_membership, check_scores, integer, real
from leakbound._base.files import parquet_batches
from leakbound._base.imports import needs
from leakbound._base.messages import Message, Option
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, BoolArray, FloatArray, PathInput
from leakbound.errors import FormatError, OptionError
from leakbound.simulate import Game
from leakbound.simulate.games import tossed

if TYPE_CHECKING:
    import pyarrow as pa


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
        rng, member = tossed(Purpose.USER_GAME, m=m, seed=seed)
        attack_seed = int(rng.integers(2**32))
        attack_scores = check_scores(self.attack(member.copy(), attack_seed), name="attack(…)")
        truth = real(self.truth, name="truth", least=0)
        return Game(scores=attack_scores, member=member, truth=truth, parameter="epsilon")


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

    source: PathInput
    column: str = "score"

    def __call__(self, m: int, *, seed: int) -> Game:
        """Play the game of a seed."""
        path = Path(self.source)
        last_written = None
        if path.exists():
            last_written = (path.stat().st_mtime_ns, path.stat().st_size)
        stored_scores, stored_membership = _stored_scores(
            path, column=self.column, _last_written=last_written
        )
        if m > stored_scores.size:
            message = "{path} has only {examples:,} examples: {m} is too large"
            named_values = {"path": path, "examples": stored_scores.size, "m": Option("m", m)}
            raise OptionError(Message(message, **named_values))
        rng = Purpose.CORPUS_ROWS.rng(integer(seed, name="seed", least=0))
        drawn_rows = rng.permutation(stored_scores.size)[:m]
        return Game(
            scores=stored_scores[drawn_rows],
            member=stored_membership[drawn_rows],
            truth=math.nan,
            parameter="epsilon",
        )


@lru_cache(maxsize=8)
def _stored_scores(path: Path, column: str, _last_written: object) -> tuple[FloatArray, BoolArray]:
    """Return scores and membership of a file, which is read again if it was written since."""
    arrow_table = read_parquet(path)
    for column_name in (column, "member"):
        if column_name not in arrow_table.column_names:
            raise FormatError(
                f"{path} has no column {column_name!r}; its columns are "
                f"{', '.join(arrow_table.column_names)}"
            )
    column_scores = check_scores(arrow_table[column].to_numpy(), name=f"{column!r} of {path}")
    return column_scores, check_membership(arrow_table["member"].to_numpy(), column_scores.size)


def read_parquet(path: Path) -> "pa.Table":
    """Read a parquet file; an error about a damaged one names it."""
    with needs("io", "leakbound.benchmark"):
        import pyarrow as pa
    try:
        schema, batches = parquet_batches(path)
        return pa.Table.from_batches(batches, schema)
    except FormatError as error:
        raise FormatError(f"{path} cannot be read: {error}") from error
    except (pa.ArrowException, OSError) as error:
        flaw = " ".join(str(error).split())
        raise FormatError(f"{path} is not a complete parquet file: {flaw:.200}") from error
