"""Examples, and the outputs of models on them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from leakbound._base.brief import brief
from leakbound._base.checks import check_length, numbers, vector
from leakbound._base.labels import targets_of
from leakbound._base.types import AnyArray, BoolArray, FloatArray, IntArray
from leakbound.errors import InputError, OptionError


@dataclass(frozen=True, eq=False)
class Examples:
    """Inputs and, where the task has them, labels."""

    x: AnyArray
    """Rows of a table, images or tokens, shape (n, ...)."""
    y: IntArray | None
    """Labels, shape (n,); None for text, which is its own label."""
    classes: AnyArray | None = None
    """What labels stand for, if they are words; None if they are numbers."""

    @property
    def labels(self) -> AnyArray | None:
        """Labels as models know them."""
        if self.y is None or self.classes is None:
            return self.y
        class_names: AnyArray = self.classes[self.y]
        return class_names

    __repr__ = brief

    def __len__(self) -> int:
        return len(self.x)

    @classmethod
    def read(cls, data: object, name: str, classes: AnyArray | None = None) -> Self:
        """Read a pair (x, y), or x alone; messages call it by its name.

        Labels that are words are codes of `classes`.
        """
        inputs, labels = inputs_and_labels(data)
        x: AnyArray = numbers(inputs, name=f"{name}'s inputs")
        if not x.size or x.ndim < 2:
            raise InputError(f"{name} must have one row per example, got inputs of shape {x.shape}")
        if labels is None:
            return cls(x=x, y=None)
        name_of_labels = f"{name}'s labels"
        if classes is not None:
            class_names = targets_of(labels, name_of_labels).astype(str)
            labels = np.searchsorted(classes, class_names)
        class_labels = vector(labels, name=name_of_labels, kinds="biu")
        check_length(class_labels, examples=len(x), name=name_of_labels)
        return cls(x=x, y=class_labels.astype(np.int64), classes=classes)

    def take(self, rows: IntArray | slice) -> "Examples":
        """Return some of the examples."""
        taken_labels = None
        if self.y is not None:
            taken_labels = self.y[rows]
        return Examples(x=self.x[rows], y=taken_labels, classes=self.classes)

    def joined(self, other: "Examples") -> "Examples":
        """Return these examples, and others of the same kind after them."""
        joined_inputs = np.concatenate([self.x, other.x])
        joined_labels = None
        if self.y is not None and other.y is not None:
            joined_labels = np.concatenate([self.y, other.y])
        return Examples(x=joined_inputs, y=joined_labels, classes=self.classes)

    def model_inputs(self, inputs: Callable[[AnyArray], Any] | None) -> Any:
        """Return what models take: the inputs as they are, or what a function makes of them."""
        if inputs is None:
            return self.x
        return inputs(self.x)

    def check_alike(self, others: "Examples", name: str) -> None:
        """Check that others are of the same kind as these, which are members."""
        member_shape = self.x.shape[1:]
        other_shape = others.x.shape[1:]
        if member_shape != other_shape:
            raise InputError(
                f"{name} have examples of shape {other_shape} and members of shape "
                f"{member_shape}; both must be of one kind"
            )
        if (self.y is None) != (others.y is None):
            raise OptionError(f"{name} must have labels if and only if members have")


def inputs_and_labels(data: object) -> tuple[Any, Any]:
    """Return inputs and labels, which may be None."""
    if isinstance(data, tuple) and len(data) == 2:
        return data
    return data, None


@dataclass(frozen=True, eq=False)
class Sample:
    """Examples of known membership, with outputs of models: the training data of an attack."""

    examples: Examples
    signals: FloatArray
    """Log-odds of labels, or losses of tokens, shape (n, models, values); no model: (n, 0, 0)."""
    member: BoolArray

    __repr__ = brief

    def __len__(self) -> int:
        return self.member.size
