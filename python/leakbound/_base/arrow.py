"""What the package uses of Arrow's columns and batches: its libraries state no types."""

from collections.abc import Mapping, Sequence
from typing import Protocol, Self

from leakbound._base.types import AnyArray


class ArrowType(Protocol):
    """The type of a column; `str` names it."""

    @property
    def value_type(self) -> "ArrowType":
        """The type of what a dictionary or a list holds; other types have none."""


class ArrowColumn(Protocol):
    """A column, in one piece or in chunks."""

    @property
    def type(self) -> ArrowType:
        """The type of all values."""

    @property
    def null_count(self) -> int:
        """How many values are missing."""

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> object: ...

    def to_pylist(self) -> list[object]:
        """Return values as Python has them, None where one is missing."""

    def to_numpy(self, *, zero_copy_only: bool = True) -> AnyArray:
        """Return values as an array, a copy where that needs one."""

    def is_null(self) -> "ArrowColumn":
        """Return which values are missing."""

    def slice(self, offset: int, length: int, /) -> Self:
        """Return so many values from a row on."""

    def cast(self, kind: ArrowType, /) -> "ArrowColumn":
        """Return values of another type."""

    def dictionary_encode(self) -> "ArrowDictionary":
        """Return the different values, and which of them each value is."""


class ArrowDictionary(Protocol):
    """Different values, and their places."""

    @property
    def dictionary(self) -> ArrowColumn:
        """The different values."""

    @property
    def indices(self) -> ArrowColumn:
        """Which of them each value is."""


class ArrowSchema(Protocol):
    """Names and types of columns."""

    @property
    def names(self) -> list[str]:
        """The names."""

    @property
    def metadata(self) -> Mapping[bytes, bytes] | None:
        """What was stored beside the columns."""


class ArrowBatch(Protocol):
    """Some rows of a table."""

    @property
    def schema(self) -> ArrowSchema:
        """Names and types of columns."""

    @property
    def columns(self) -> Sequence[ArrowColumn]:
        """All columns."""

    def __len__(self) -> int: ...

    def column(self, name: str, /) -> ArrowColumn:
        """Return a column by its name."""
