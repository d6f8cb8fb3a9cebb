"""The rows that a propensity model learns from, checked once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import check_ids, vector
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, BoolArray, FloatArray, HasMember, IntArray
from leakbound.errors import InputError, InputTypeError


@dataclass(frozen=True, eq=False)
class Rows:
    """Features, classes, folds and ids of D'."""

    features: FloatArray
    member: BoolArray
    folds: NDArray[np.uint8] | None
    ids: NDArray[Any] | None

    @classmethod
    def read(
        cls,
        features: ArrayInput,
        member: ArrayInput | HasMember,
        *,
        ids: ArrayInput | None,
        folds: int,
        seed: int,
    ) -> "Rows":
        """Check the arguments of a fit."""
        order = ExampleOrder()
        table = np.array(check_features(order.placed(features, "X")), order="C")
        classes = np.array(order.member(member, table.shape[0]))
        names = None
        if ids is not None:
            check_ids(ids, classes)
            names = np.array(vector(ids, "ids", kinds="biufSUOT"))
        elif order.distinct_ids is not None:
            names = np.array(order.distinct_ids)
        for included, name in ((True, "members"), (False, "non-members")):
            if not (classes == included).any():
                message = (
                    f"D' holds no {name}: the odds of membership cannot be learnt from one class"
                )
                raise InputError(message)
        assigned = stratified_folds(classes, folds, seed) if folds else None
        for array in (table, classes, names, assigned):
            if array is not None:
                array.flags.writeable = False
        return cls(table, classes, assigned, names)

    @property
    def share(self) -> float:
        """Share of members."""
        return float(self.member.mean())

    def check_disjoint(self, ids: ArrayInput) -> None:
        """Check that none of `ids` is an id of these rows."""
        if self.ids is None:
            return
        values = vector(ids, "ids", kinds="biufSUOT")
        try:
            shared, rows, _ = np.intersect1d(values, self.ids, return_indices=True)
        except TypeError:
            message = (
                "ids of the audit and of D' cannot be compared: give both as numbers or both as "
                "strings"
            )
            raise InputTypeError(message) from None
        if shared.size:
            row = int(rows.min())
            message = (
                f"{shared.size} ids of the audit are in D' too, the first being {values[row]!s} at "
                f"row {row}: a propensity model knows the membership of what it learnt from; hold "
                "D' out (hold_out) or cross-fit (cross_fit); where other examples happen to have "
                "the same pandas index, give both ids of their own"
            )
            raise InputError(message)


def check_features(
    features: ArrayInput, name: str = "features", columns: int | None = None
) -> FloatArray:
    """Read features as float64, one row for each example."""
    try:
        table = np.asarray(features)
    except (TypeError, ValueError, RuntimeError) as error:
        message = f"{name} cannot be read as a table of numbers: {error}"
        raise InputTypeError(message) from error
    if table.dtype.kind not in "biuf":
        message = (
            f"{name} must hold real numbers, got dtype {table.dtype}; encode categories as numbers "
            "first"
        )
        raise InputTypeError(message)
    if table.ndim != 2 or table.size == 0:
        message = (
            f"{name} must be two-dimensional, one row for each example and one column for each "
            f"feature, got shape {table.shape}"
            + ("; for a single feature pass x[:, None]" if table.ndim == 1 else "")
        )
        raise InputError(message)
    if columns is not None and table.shape[1] != columns:
        message = (
            f"{name} has {table.shape[1]} columns and D' has {columns}; both must hold the same "
            "features in the same order"
        )
        raise InputError(message)
    values: FloatArray = np.ascontiguousarray(table, dtype=np.float64)
    # The sum of a few values hides none that is not finite, and costs one pass.
    if not np.isfinite(values.sum()) and not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0].tolist()
        strange = int((~np.isfinite(values)).any(axis=1).sum())
        message = (
            f"{name} must be finite, got {values[row, column]} at row {row}, column {column} "
            f"({strange} such rows); drop the rows or fill them in"
        )
        raise InputError(message)
    return values


def distinct_columns(features: FloatArray) -> IntArray:
    """Return the columns that are neither constant nor equal to one before them.

    Without the others a model is the same. Columns that nearly depend on one another are not: what
    is left out of those may be what membership depends on.
    """
    varied = np.flatnonzero(features.max(axis=0) > features.min(axis=0))
    if not varied.size:
        message = "every feature is constant: pass propensities, which are then all the same"
        raise InputError(message)
    alike: dict[int, list[int]] = {}
    for column in varied.tolist():
        values = features[:, column] + 0.0  # of two zeros one is kept
        others = alike.setdefault(hash(values.tobytes()), [])
        if not any(np.array_equal(values, features[:, other]) for other in others):
            others.append(column)
    return np.sort([column for others in alike.values() for column in others]).astype(np.int64)


def stratified_folds(member: BoolArray, folds: int, seed: int) -> NDArray[np.uint8]:
    """Assign each row to a fold at random, the members as evenly as the non-members."""
    rng = Purpose.CALIBRATION.rng(seed, folds)
    assigned = np.empty(member.size, dtype=np.uint8)
    for included in (True, False):
        rows = rng.permutation(np.flatnonzero(member == included))
        assigned[rows] = np.arange(rows.size) % folds
    return assigned
