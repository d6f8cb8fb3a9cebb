"""Examples, and what models say of them."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import check_length
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.errors import (
    ArrayTypeError,
    IncompatibleOptionsError,
    LengthMismatchError,
    ShapeError,
)


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and, where the task has them, labels.

    Parameters
    ----------
    x : ndarray, shape (n, ...)
        Rows of a table, images or tokens.
    y : ndarray of int64 of shape (n,), or None
        Labels; None for text, which is its own label.
    """

    x: NDArray[Any]
    y: IntArray | None

    def __len__(self) -> int:
        return len(self.x)

    @classmethod
    def read(cls, data: object, name: str) -> Self:
        """Read a pair (x, y), or x alone.

        Parameters
        ----------
        data : tuple of array-like, or array-like
            Inputs and labels, or inputs alone.
        name : str
            What to call them in messages.

        Returns
        -------
        Self
            Arrays.

        Raises
        ------
        ArrayTypeError
            If NumPy cannot read one.
        ShapeError
            If there is nothing in them, or labels are not one whole number for each example.
        LengthMismatchError
            If there is not one label for each input.
        """
        inputs, labels = data if isinstance(data, tuple) and len(data) == 2 else (data, None)
        x = _array(inputs, f"{name}'s inputs")
        if not x.size or x.ndim < 2:
            message = f"{name} must have a row for each example, got inputs of shape {x.shape}"
            raise ShapeError(message)
        return cls(x, None if labels is None else _labels(labels, len(x), name))

    def take(self, rows: IntArray | slice) -> Self:
        """Return some of the examples.

        Parameters
        ----------
        rows : ndarray of int64, or slice
            Which.

        Returns
        -------
        Self
            Those.
        """
        return replace(self, x=self.x[rows], y=None if self.y is None else self.y[rows])

    def joined(self, other: "Examples") -> Self:
        """Return these examples, and others after them.

        Parameters
        ----------
        other : Examples
            Of the same kind.

        Returns
        -------
        Self
            Both.
        """
        labelled = self.y is not None and other.y is not None
        y = np.concatenate([self.y, other.y]) if labelled else None
        return replace(self, x=np.concatenate([self.x, other.x]), y=y)


def check_alike(members: Examples, others: Examples | None, name: str = "nonmembers") -> None:
    """Check that two sets of examples are of one kind."""
    if others is None:
        return
    if members.x.shape[1:] != others.x.shape[1:]:
        message = (
            f"{name} have examples of shape {others.x.shape[1:]} and members of shape "
            f"{members.x.shape[1:]}; both must be of one kind"
        )
        raise LengthMismatchError(message)
    if (members.y is None) != (others.y is None):
        message = f"{name} must have labels if and only if members have"
        raise IncompatibleOptionsError(message)


@dataclass(frozen=True, eq=False)
class Sample:
    """Examples of known membership, with what models say of them: what an attack learns from.

    Parameters
    ----------
    examples : Examples
        The examples.
    signals : ndarray of float64, shape (n, models, values)
        What each model says of each example: the log-odds of its label, or the losses of its
        tokens. No model: shape (n, 0, 0).
    member : ndarray of bool, shape (n,)
        Which are members.
    """

    examples: Examples
    signals: FloatArray
    member: BoolArray

    def __len__(self) -> int:
        return self.member.size


def _array(values: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        message = f"{name} cannot be read as an array: {error}"
        raise ArrayTypeError(message) from error
    if array.dtype.kind not in "biuf":
        message = f"{name} must hold real numbers, got dtype {array.dtype}"
        raise ArrayTypeError(message)
    return array


def _labels(values: Any, examples: int, name: str) -> IntArray:
    labels = _array(values, f"{name}'s labels")
    if labels.ndim != 1 or labels.dtype.kind not in "biu":
        message = (
            f"{name}'s labels must be one whole number for each example, got dtype {labels.dtype} "
            f"and shape {labels.shape}"
        )
        raise ShapeError(message)
    check_length(labels, examples, f"{name}'s labels")
    return labels.astype(np.int64)
