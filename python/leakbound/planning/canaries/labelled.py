"""Canaries for classifiers: inputs and labels that only a model trained on them gets right."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leakbound._base.streams import Purpose, seed_of
from leakbound._base.types import ArrayInput, IntArray
from leakbound._base.validation import check_length, integer, numbers
from leakbound.errors import ShapeError
from leakbound.planning.canaries.base import Canaries

__all__ = ["mislabelled", "random_pixels"]

_LARGEST = 1e300
"""Of a finite input."""


def mislabelled(x: ArrayInput, y: ArrayInput, n: int, *, seed: int | None = None) -> Canaries:
    """Return examples with a wrong label, each of the other classes being as likely.

    Parameters
    ----------
    x : array-like, shape (N, ...)
        Inputs of examples that training can do without.
    y : array-like of int, shape (N,)
        Their classes, at least two different ones.
    n : int
        Canaries, from 1 to N.
    seed : int, optional
        Of choice, labels and coins, at least 0; a new one from the system's entropy if None.
        Whoever knows it knows the coins.

    Returns
    -------
    Canaries
        `n` different examples, and a coin for each; `taken` has their positions.

    Raises
    ------
    OptionError, OptionTypeError, ArrayTypeError
        If `n` or `seed` is outside its range, or `x` or `y` are not numbers.
    ShapeError, LengthMismatchError
        If there is not one class for each input, or one class only.

    References
    ----------
    M. Aerni, J. Zhang and F. Tramèr, "Evaluations of machine learning privacy defenses are
    misleading", 2024 (arXiv 2404.17399).

    Examples
    --------
    >>> made = mislabelled([[0.0], [1.0], [2.0]], [0, 1, 1], 2, seed=0)
    >>> made.x.shape, made.taken.shape
    ((2, 1), (2, 1))
    """
    inputs, labels, classes = _data(x, y)
    size, start = integer(n, "n", least=1, most=len(inputs)), seed_of(seed, bits=128)
    rng = Purpose.CANARY_EXAMPLES.rng(start)
    chosen = rng.permutation(len(inputs))[:size]
    place = np.searchsorted(classes, labels[chosen])
    wrong = classes[(place + rng.integers(1, classes.size, size)) % classes.size]
    return Canaries.create("mislabelled", inputs[chosen], wrong, chosen[:, None], seed=start)


def random_pixels(x: ArrayInput, y: ArrayInput, n: int, *, seed: int | None = None) -> Canaries:
    """Return inputs of independent uniform values, with labels as likely as each other.

    Parameters
    ----------
    x : array-like, shape (N, ...)
        Inputs of the training data: canaries have their shape, and values in their range.
    y : array-like of int, shape (N,)
        Their classes, at least two different ones.
    n : int
        Canaries, from 1 to 10^8.
    seed : int, optional
        As for `mislabelled`.

    Returns
    -------
    Canaries
        `n` examples, and a coin for each; none was taken from the data.

    Raises
    ------
    OptionError, OptionTypeError, ArrayTypeError, ShapeError, LengthMismatchError
        As for `mislabelled`.

    Examples
    --------
    >>> random_pixels([[0.0, 1.0], [1.0, 0.0]], [0, 1], 5, seed=0).x.shape
    (5, 2)
    """
    inputs, _, classes = _data(x, y)
    size, start = integer(n, "n", least=1, most=10**8), seed_of(seed, bits=128)
    rng = Purpose.CANARY_PIXELS.rng(start)
    made = rng.uniform(inputs.min(), inputs.max(), (size, *inputs.shape[1:]))
    labels = classes[rng.integers(classes.size, size=size)]
    return Canaries.create("random pixels", _like(made, inputs), labels, None, seed=start)


def _data(x: ArrayInput, y: ArrayInput) -> tuple[NDArray[Any], IntArray, IntArray]:
    """Read inputs and labels, and return the classes in order."""
    inputs = np.asarray(numbers(x, "x", least=-_LARGEST, most=_LARGEST))
    labels = np.asarray(numbers(y, "y", whole=True)).astype(np.int64)
    if inputs.ndim < 2 or not inputs.size or labels.ndim != 1:
        message = (
            "x must have a row for each example and y one class, got shapes "
            f"{inputs.shape} and {labels.shape}"
        )
        raise ShapeError(message)
    check_length(labels, len(inputs), "y")
    classes = np.unique(labels)
    if classes.size < 2:
        message = f"y must have at least two classes, got {classes.tolist()} only"
        raise ShapeError(message)
    return inputs, labels, classes


def _like(made: NDArray[Any], inputs: NDArray[Any]) -> NDArray[Any]:
    """Return values in the type of the user's: integers stay integers."""
    if inputs.dtype.kind in "iu":
        made = np.rint(made)
    return made.astype(inputs.dtype, copy=False)
