"""The protocol of generators: fit to members, then sample."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from leakbound._base.checks import MOST_EXAMPLES, integer
from leakbound._base.types import AnyArray, ArrayInput


@dataclass(frozen=True, eq=False, repr=False)
class Samples:
    """Examples that a generator made: values, and labels where it was fitted with labels.

    Parameters
    ----------
    values : ndarray, shape (n, ...)
        One example in each row, in the shape and dtype of the members.
    labels : ndarray of shape (n,), optional
        Label of each.

    Examples
    --------
    >>> samples = Samples(np.zeros((3, 2)), np.array([0, 1, 1]))
    >>> samples
    Samples(n=3, shape=(2,), labels=2)
    >>> samples.take([2, 0]).labels
    array([1, 0])
    """

    values: AnyArray
    labels: AnyArray | None = None

    def take(self, positions: ArrayInput | slice) -> "Samples":
        """Return some of the samples, such as a part for training and a part for the audit."""
        if not isinstance(positions, slice):
            positions = np.asarray(positions)
        if self.labels is None:
            return Samples(self.values[positions])
        return Samples(values=self.values[positions], labels=self.labels[positions])

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        label_text = ""
        if self.labels is not None:
            label_text = f", labels={np.unique(self.labels).size}"
        return f"Samples(n={len(self)}, shape={self.values.shape[1:]}{label_text})"


def joined(parts: Sequence[Samples]) -> Samples:
    """Put samples behind each other, with labels if all have some."""
    labels_of_parts = [samples.labels for samples in parts if samples.labels is not None]
    joined_values = np.concatenate([samples.values for samples in parts])
    if len(labels_of_parts) < len(parts):
        return Samples(joined_values)
    return Samples(values=joined_values, labels=np.concatenate(labels_of_parts))


@runtime_checkable
class Sampler(Protocol):
    """A fitted generator."""

    def sample(self, n: int, *, seed: int) -> Samples:
        """Draw exactly `n` new examples in exchangeable order.

        Draw all that an audit needs in one call and divide it with `Samples.take`: parts of one
        call never share an example, while two calls on a fixed pool of samples would. The same seed
        gives the same samples.
        """


@runtime_checkable
class Generator(Protocol):
    """Anything that can be fitted to members: a frozen set of options, nothing learnt yet."""

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> Sampler:
        """Learn the distribution of the members.

        Parameters
        ----------
        members : array-like, shape (n, ...)
            Training examples of the target that are kept out of the audit.
        labels : array-like of shape (n,), optional
            Their labels; then samples have labels too.
        """


@dataclass(frozen=True, eq=False)
class FittedGenerator:
    """What generators here return: samples depend on their number and the seed alone."""

    draw: Callable[[int, int], Samples]
    learnt: Any = None
    """What was learnt: the samples of a folder, or a network and its prompts."""

    def sample(self, n: int, *, seed: int) -> Samples:
        """Draw new examples: see `Sampler.sample`."""
        n = integer(n, name="n", least=1, most=MOST_EXAMPLES)
        return self.draw(n, integer(seed, name="seed", least=0))
