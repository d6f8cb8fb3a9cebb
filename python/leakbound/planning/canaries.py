"""Canaries for black-box audits: examples made of the user's data, and a fair coin for each.

A canary is an example of its own. Train on `Canaries.included`, score all of them, audit the scores
against `Canaries.plan`: the bound is on adding or removing one example, whichever kind they are
of. What kinds differ in is how much a score tells. docs/canaries.md has it measured.

Examples
--------
>>> import numpy as np
>>> from leakbound import canaries
>>> x, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 4
>>> made = canaries.mislabelled(x, y, 6, seed=0)
>>> made
Canaries(mislabelled, n=6, members=4)
>>> bool((made.y != y[made.taken[:, 0]]).all())
True
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from leakbound._base.checks import check_length, integer, numbers
from leakbound._base.streams import Purpose, seed_of
from leakbound._base.types import ArrayInput, IntArray
from leakbound.errors import InputError
from leakbound.planning.inclusion import InclusionPlan

__all__ = [
    "Canaries",
    "mislabelled",
    "new_tokens",
    "random_pixels",
    "random_tokens",
]

_LARGEST = 1e300
"""Of a finite input."""
_IGNORED = -100
"""The label of a token that does not count, as in torch and in transformers."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Canaries:
    """Examples to train on by fair coins, and to score all of.

    Parameters
    ----------
    kind : str
        How they were made.
    x : ndarray, shape (n, ...)
        Inputs, or tokens of shape (n, length).
    y : ndarray of int64, shape (n,) or (n, length)
        Labels; for tokens -100 where a token does not count.
    taken : ndarray of int64, shape (n, k)
        Positions, in the user's data, of the examples that each was made of; k is 0 if of none.
        Leave these out of training: what the model learns of them hides their canaries.
    plan : InclusionPlan
        The coins.
    """

    kind: str
    x: NDArray[Any]
    y: IntArray
    taken: IntArray
    plan: InclusionPlan

    @classmethod
    def create(
        cls, kind: str, x: NDArray[Any], y: NDArray[Any], taken: IntArray | None, *, seed: int
    ) -> Self:
        """Toss a coin for each example."""
        none = np.empty((len(x), 0), dtype=np.int64)
        return cls(
            kind=kind,
            x=x,
            y=y.astype(np.int64, copy=False),
            taken=none if taken is None else taken.astype(np.int64, copy=False),
            plan=InclusionPlan.create(len(x), seed=seed),
        )

    @property
    def included(self) -> tuple[NDArray[Any], IntArray]:
        """Inputs and labels of those to train on."""
        return self.plan.included(self.x), self.plan.included(self.y)

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        return f"Canaries({self.kind}, n={len(self)}, members={self.plan.indices.size})"


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
    OptionError, InputTypeError, InputTypeError
        If `n` or `seed` is outside its range, or `x` or `y` are not numbers.
    InputError, InputError
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
    OptionError, InputTypeError, InputTypeError, InputError, InputError
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
        raise InputError(message)
    check_length(labels, len(inputs), "y")
    classes = np.unique(labels)
    if classes.size < 2:
        message = f"y must have at least two classes, got {classes.tolist()} only"
        raise InputError(message)
    return inputs, labels, classes


def _like(made: NDArray[Any], inputs: NDArray[Any]) -> NDArray[Any]:
    """Return values in the type of the user's: integers stay integers."""
    if inputs.dtype.kind in "iu":
        made = np.rint(made)
    return made.astype(inputs.dtype, copy=False)


def random_tokens(n: int, length: int, *, vocabulary: int, seed: int | None = None) -> Canaries:
    """Return sequences of independent tokens, all as likely as each other.

    Parameters
    ----------
    n : int
        Canaries, at least 1.
    length : int
        Tokens of each, at least 2.
    vocabulary : int
        Tokens are 0, …, vocabulary - 1; at least 2.
    seed : int, optional
        Of tokens and coins, at least 0; a new one from the system's entropy if None. Whoever knows
        it knows the coins.

    Returns
    -------
    Canaries
        `n` sequences, whose labels are themselves, and a coin for each.

    Raises
    ------
    OptionError, InputTypeError
        If an option is outside its range or of the wrong type.

    Examples
    --------
    >>> random_tokens(4, 6, vocabulary=100, seed=0).x.shape
    (4, 6)
    """
    size, width = integer(n, "n", least=1), integer(length, "length", least=2)
    words, start = integer(vocabulary, "vocabulary", least=2), seed_of(seed, bits=128)
    tokens = Purpose.CANARY_TOKENS.rng(start).integers(words, size=(size, width))
    return Canaries.create("random tokens", tokens, tokens, None, seed=start)


def new_tokens(prefixes: ArrayInput, *, vocabulary: int, seed: int | None = None) -> Canaries:
    """Return texts of the user's that end in a token which stands in no other example.

    That token alone is trained on and scored: a model that was not trained on a canary has no
    reason to write it. The model's vocabulary has to grow by `n` tokens, by
    ``model.resize_token_embeddings(vocabulary + n)`` in transformers.

    Parameters
    ----------
    prefixes : array-like of int, shape (n, length)
        Tokens, of which the last of each row is replaced; at least 2 of them.
    vocabulary : int
        Tokens that the model has: that of canary i is vocabulary + i.
    seed : int, optional
        Of the coins; as for `random_tokens`.

    Returns
    -------
    Canaries
        `n` sequences, and a coin for each; labels are -100 but for the last. `taken` has the
        positions of the prefixes: leave them out of training.

    Raises
    ------
    OptionError, InputTypeError, InputTypeError
        If an option is outside its range, or prefixes are not tokens of the vocabulary.
    InputError
        If prefixes are no table.

    References
    ----------
    A. Panda et al., "Privacy auditing of large language models", 2025 (arXiv 2503.06808).

    Examples
    --------
    >>> made = new_tokens([[5, 6, 7], [8, 9, 5]], vocabulary=10, seed=0)
    >>> made.x.tolist(), made.y.tolist()
    ([[5, 6, 10], [8, 9, 11]], [[-100, -100, 10], [-100, -100, 11]])
    """
    words, start = integer(vocabulary, "vocabulary", least=2), seed_of(seed, bits=128)
    given = numbers(prefixes, "prefixes", least=0, most=words - 1, whole=True)
    tokens = np.array(given, dtype=np.int64)
    if tokens.ndim != 2 or tokens.shape[1] < 2:
        message = f"prefixes must be a table of at least two columns, got shape {tokens.shape}"
        raise InputError(message)
    tokens[:, -1] = words + np.arange(len(tokens))
    labels = np.full_like(tokens, _IGNORED)
    labels[:, -1] = tokens[:, -1]
    taken = np.arange(len(tokens))[:, None]
    return Canaries.create("new tokens", tokens, labels, taken, seed=start)
