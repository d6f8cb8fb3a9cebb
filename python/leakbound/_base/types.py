"""Names of the types that public functions take and return."""

import os
from collections.abc import Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
AnyArray: TypeAlias = NDArray[Any]
GenericArray: TypeAlias = NDArray[np.generic]
TextArray: TypeAlias = NDArray[np.str_]
Number: TypeAlias = Any
"""A float for scalar arguments, else an array of float64: a union would burden every caller."""


@runtime_checkable
class _Readable(Protocol):
    """Anything that NumPy reads: torch CPU tensors, Arrow, pandas and polars columns."""

    def __array__(self) -> NDArray[np.generic]: ...


Strings: TypeAlias = tuple[str, ...]
Named: TypeAlias = dict[str, Any]
"""Values of any types by their names, such as options or the fields of a record."""
Data: TypeAlias = Any
"""Rows, or a value of one, in whatever holds them: arrays, frames, tensors, lists, data sets."""
ArrayInput: TypeAlias = ArrayLike | _Readable | Sequence[object]
PathInput: TypeAlias = str | os.PathLike[str]


@runtime_checkable
class HasMember(Protocol):
    """An object that knows the membership of its examples, such as `InclusionPlan`."""

    @property
    def member(self) -> BoolArray:
        """Membership of each example."""


MemberInput: TypeAlias = ArrayInput | HasMember
"""Membership of each example, or what knows it."""
SidesChoice: TypeAlias = Literal["both", "member"]
CoinSides: TypeAlias = Literal["both", "member", "auto"]
Sides: TypeAlias = Literal["both", "member", "auto", "pairs"]
Relation: TypeAlias = Literal["add_remove", "replace"]
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
