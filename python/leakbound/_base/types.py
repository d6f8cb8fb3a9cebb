"""Names of the types that public functions take and return."""

import os
from inspect import formatannotation
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    TypeAlias,
    TypedDict,
    runtime_checkable,
)

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]
GenericArray: TypeAlias = NDArray[np.generic]
TextArray: TypeAlias = NDArray[np.str_]
Number: TypeAlias = Any
"""A float for scalar arguments, else an array of float64: a union would burden every caller."""


class InWords:
    """What signatures and `help` show in place of an alias: its union has 500 characters.

    Type checkers never see it. It can be part of other annotations, as the union could: records
    read its `kind`, the union itself.
    """

    def __init__(self, words: str, kind: Any = Any) -> None:
        self._words = words
        self.kind = kind

    def __or__(self, other: Any) -> "InWords":
        return InWords(f"{self} | {_annotation_in_words(other)}", self.kind | other)

    def __ror__(self, other: Any) -> "InWords":
        return InWords(f"{_annotation_in_words(other)} | {self}", other | self.kind)

    def __repr__(self) -> str:
        return self._words


def _annotation_in_words(annotation: object) -> str:
    """Return an annotation as signatures print it, of names without their modules."""
    if annotation is None:
        return "None"
    name = formatannotation(annotation)
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        return annotation.__qualname__
    return name


@runtime_checkable
class _Readable(Protocol):
    """Anything that NumPy reads: torch CPU tensors, Arrow, pandas and polars columns."""

    def __array__(self) -> NDArray[np.generic]: ...


Strings: TypeAlias = tuple[str, ...]
Named: TypeAlias = dict[str, Any]
"""Values of any types by their names, such as options or the fields of a record."""
Data: TypeAlias = Any
"""Rows, or a value of one, in whatever holds them: arrays, frames, tensors, lists, data sets."""
if TYPE_CHECKING:
    ArrayLike: TypeAlias = npt.ArrayLike
    ArrayInput: TypeAlias = ArrayLike | _Readable | Sequence[object]
else:
    ArrayInput = ArrayLike = InWords("array-like")
PathInput: TypeAlias = str | os.PathLike[str]


@runtime_checkable
class HasMember(Protocol):
    """An object that knows the membership of its examples, such as `InclusionPlan`."""

    @property
    def member(self) -> BoolArray:
        """Membership of each example."""


if TYPE_CHECKING:
    MemberInput: TypeAlias = ArrayInput | HasMember
else:
    MemberInput = InWords("array-like")
"""Membership of each example, or what knows it."""
SidesChoice: TypeAlias = Literal["both", "member"]
CoinSides: TypeAlias = Literal["both", "member", "auto"]
Sides: TypeAlias = Literal["both", "member", "auto", "pairs"]
Relation: TypeAlias = Literal["add_remove", "replace"]
Sampling: TypeAlias = Literal["poisson", "fixed_size"]
"""How batches of a claim of DP-SGD are drawn, for each step by itself."""
Batches: TypeAlias = Literal["poisson", "fixed_size", "epochs"]
"""How batches of a run are made; in epochs each example is in one batch of each, in any order."""
Neighbours: TypeAlias = Literal["add_remove", "zero_out", "replace"]
"""What differs between two runs; zero-out leaves the place of an example empty."""
TailBound: TypeAlias = Literal["exact", "steinke", "coupling", "zero_run", "panoramia"]
FdpTest: TypeAlias = Literal["tight", "recursion"]
Correction: TypeAlias = Literal["match", "poisson_binomial", "tamper", "composition"]
Adversary: TypeAlias = Literal["raw", "paper_aware", "residual"]
PathOrder: TypeAlias = Literal[
    "member", "member_half", "nonmember_half", "interleaved", "ends", "pairs"
]
PathName: TypeAlias = Literal["member", "members", "non-members", "interleaved", "ends", "pairs"]
# Here, as the command line has them before torch is loaded
SignalName: TypeAlias = Literal[
    "logit_margin", "cross_entropy", "binary_cross_entropy", "loss_drop"
]
Precision: TypeAlias = Literal["float32", "float16", "bfloat16"]
Status: TypeAlias = Literal["checked", "declared", "approximate", "unverifiable", "contradicted"]
Verdict: TypeAlias = Literal["refuted", "not refuted", "inconclusive"]
Kind: TypeAlias = Literal[
    "lower_bound",
    "family_lower_bound",
    "conditional_lower_bound",
    "exploratory_lower_bound",
    "estimate",
]
JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = dict[str, JsonValue]


class TailOptions(TypedDict):
    """Which bound on so many correct guesses under (ε, δ)-DP: see `leakbound.stats`."""

    bound: TailBound
    m: float
    delta: float
    k: int
    one_sided: bool


class CountOptions(TypedDict):
    """What an audit of f-DP observed: see `leakbound.stats.fdp_p_value`."""

    correct: int
    guesses: int
    m: float
    k: int
    one_sided: bool
