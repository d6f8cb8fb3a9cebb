"""Canaries for black-box audits: examples made of the user's data, and a fair coin for each.

Train on `Canaries.included` besides the training data, score all canaries, and audit the scores
against `Canaries.plan`. The bound is on adding or removing one example, for every kind of canary.
Kinds differ in how strongly they leak: see docs/theory/canaries.md.
"""

from dataclasses import dataclass

import numpy as np

from leakbound._base.checks import MOST_EXAMPLES, check_length, integer, numbers, seed_of
from leakbound._base.streams import Purpose
from leakbound._base.types import AnyArray, ArrayInput, IntArray
from leakbound.errors import InputError
from leakbound.planning.inclusion import InclusionPlan

__all__ = ["Canaries", "mislabelled", "new_tokens", "random_pixels", "random_tokens"]

# The largest finite input: differences of two of them are finite, too.
_LARGEST_INPUT = 1e300
# The label of a token without a loss, as in torch and transformers.
_IGNORED_LABEL = -100
# Tokens of a vocabulary: those of new ones follow them, in 64 bits
_LARGEST_VOCABULARY = 2**53


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Canaries:
    """Canaries: some of them, chosen by fair coins, are trained on, and all are scored.

    Parameters
    ----------
    kind : str
        How they were made.
    x : ndarray, shape (n, ...)
        Inputs, or tokens of shape (n, length).
    y : ndarray of int64, shape (n,) or (n, length)
        Labels; for tokens -100 where a token has no loss.
    taken : ndarray of int64, shape (n, k)
        Positions, in your data, of the examples that each was made from; k is 0 if there are none.
        Leave these out of training, since the model would otherwise learn their canaries too.
    plan : InclusionPlan
        The coins.
    """

    kind: str
    x: AnyArray
    y: IntArray
    taken: IntArray
    plan: InclusionPlan

    @property
    def included(self) -> tuple[AnyArray, IntArray]:
        """Inputs and labels of the canaries to train on."""
        return self.plan.included(self.x), self.plan.included(self.y)

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        return f"Canaries({self.kind}, n={len(self)}, members={self.plan.indices.size})"


def mislabelled(x: ArrayInput, y: ArrayInput, n: int, *, seed: int | None = None) -> Canaries:
    """Return examples with a wrong label, drawn uniformly from the other classes.

    Parameters
    ----------
    x : array-like, shape (N, ...)
        Inputs of examples that can be removed from the training data.
    y : array-like of int, shape (N,)
        Their classes, at least two different ones.
    n : int
        Canaries, from 1 to N.
    seed : int, optional
        Seed of choice, labels and coins, at least 0; a new one from the system's entropy if None.
        Keep it secret: it determines the coins.

    References
    ----------
    M. Aerni, J. Zhang and F. Tramèr, "Evaluations of machine learning privacy defenses are
    misleading", 2024 (arXiv 2404.17399).

    Examples
    --------
    >>> x, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 4
    >>> chosen = mislabelled(x, y, 6, seed=0)
    >>> chosen
    Canaries(mislabelled, n=6, members=4)
    >>> bool((chosen.y != y[chosen.taken[:, 0]]).all())
    True
    """
    inputs, right_labels, classes = _inputs_and_labels(x, y)
    number_of_canaries = integer(n, name="n", least=1, most=len(inputs))
    checked_seed = seed_of(seed, bits=128)
    rng = Purpose.CANARY_EXAMPLES.rng(checked_seed)
    drawn_examples = rng.permutation(len(inputs))[:number_of_canaries]
    right_class = np.searchsorted(classes, right_labels[drawn_examples])
    # A step of at least one class around the circle of classes: never the right one.
    class_steps = rng.integers(1, classes.size, number_of_canaries)
    wrong_labels = classes[(right_class + class_steps) % classes.size]
    return _canaries_with_coins(
        "mislabelled",
        x=inputs[drawn_examples],
        y=wrong_labels,
        seed=checked_seed,
        taken=drawn_examples[:, None],
    )


def random_pixels(x: ArrayInput, y: ArrayInput, n: int, *, seed: int | None = None) -> Canaries:
    """Return inputs of independent uniform values, with uniform labels.

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

    Examples
    --------
    >>> random_pixels([[0.0, 1.0], [1.0, 0.0]], [0, 1], 5, seed=0).x.shape
    (5, 2)
    """
    inputs, _, classes = _inputs_and_labels(x, y)
    number_of_canaries = integer(n, name="n", least=1, most=MOST_EXAMPLES)
    checked_seed = seed_of(seed, bits=128)
    rng = Purpose.CANARY_PIXELS.rng(checked_seed)
    shape_of_canaries = (number_of_canaries, *inputs.shape[1:])
    uniform_pixels = rng.uniform(inputs.min(), inputs.max(), shape_of_canaries)
    if inputs.dtype.kind in "iu":  # integers stay integers
        uniform_pixels = np.rint(uniform_pixels)
    uniform_labels = classes[rng.integers(classes.size, size=number_of_canaries)]
    return _canaries_with_coins(
        "random pixels",
        x=uniform_pixels.astype(inputs.dtype, copy=False),
        y=uniform_labels,
        seed=checked_seed,
    )


def _inputs_and_labels(x: ArrayInput, y: ArrayInput) -> tuple[AnyArray, IntArray, IntArray]:
    """Read inputs and labels, and return the classes in order."""
    input_rows = np.asarray(numbers(x, name="x", least=-_LARGEST_INPUT, most=_LARGEST_INPUT))
    class_labels = np.asarray(numbers(y, name="y", whole=True)).astype(np.int64)
    if input_rows.ndim < 2 or not input_rows.size or class_labels.ndim != 1:
        raise InputError(
            "x must have a row for each example and y one class, got shapes "
            f"{input_rows.shape} and {class_labels.shape}"
        )
    check_length(class_labels, examples=len(input_rows), name="y")
    classes = np.unique(class_labels)
    if classes.size < 2:
        raise InputError(f"y must have at least two classes, got {classes.tolist()} only")
    return input_rows, class_labels, classes


def random_tokens(n: int, length: int, *, vocabulary: int, seed: int | None = None) -> Canaries:
    """Return sequences of independent uniform tokens, which are their own labels.

    Parameters
    ----------
    n : int
        Canaries, at least 1.
    length : int
        Tokens of each, at least 2; all canaries together have at most 10^8.
    vocabulary : int
        Tokens are 0, …, vocabulary - 1; from 2 to 2^53.
    seed : int, optional
        As for `mislabelled`.

    Examples
    --------
    >>> random_tokens(4, 6, vocabulary=100, seed=0).x.shape
    (4, 6)
    """
    number_of_canaries = integer(n, name="n", least=1, most=MOST_EXAMPLES // 2)
    tokens_of_each = integer(
        length, name="length", least=2, most=MOST_EXAMPLES // number_of_canaries
    )
    vocabulary_size = integer(vocabulary, name="vocabulary", least=2, most=_LARGEST_VOCABULARY)
    checked_seed = seed_of(seed, bits=128)
    rng = Purpose.CANARY_TOKENS.rng(checked_seed)
    uniform_tokens = rng.integers(vocabulary_size, size=(number_of_canaries, tokens_of_each))
    return _canaries_with_coins(
        "random tokens", x=uniform_tokens, y=uniform_tokens, seed=checked_seed
    )


def new_tokens(prefixes: ArrayInput, *, vocabulary: int, seed: int | None = None) -> Canaries:
    """Return your texts, each ending in a new token that no other example has.

    Only that token is trained on and scored: a model that was not trained on a canary has no reason
    to predict it. Extend the model's vocabulary by `n` tokens, with
    ``model.resize_token_embeddings(vocabulary + n)`` in transformers.

    Parameters
    ----------
    prefixes : array-like of int, shape (n, length)
        Tokens, at least 2 per row; the last of each row is replaced.
    vocabulary : int
        Size of the model's vocabulary: the token of canary i is vocabulary + i.
    seed : int, optional
        Seed of the coins, as for `mislabelled`.

    Returns
    -------
    Canaries
        `n` sequences, with labels of -100 except at the end. `taken` has the positions of the
        prefixes: leave them out of training.

    References
    ----------
    A. Panda et al., "Privacy auditing of large language models", 2025 (arXiv 2503.06808).

    Examples
    --------
    >>> canaries = new_tokens([[5, 6, 7], [8, 9, 5]], vocabulary=10, seed=0)
    >>> canaries.x.tolist(), canaries.y.tolist()
    ([[5, 6, 10], [8, 9, 11]], [[-100, -100, 10], [-100, -100, 11]])
    """
    vocabulary_size = integer(vocabulary, name="vocabulary", least=2, most=_LARGEST_VOCABULARY)
    checked_seed = seed_of(seed, bits=128)
    known_tokens = numbers(
        prefixes,
        name="prefixes",
        least=0,
        most=vocabulary_size - 1,
        whole=True,
    )
    canary_tokens = np.array(known_tokens, dtype=np.int64)
    if canary_tokens.ndim != 2 or canary_tokens.shape[1] < 2:
        raise InputError(
            f"prefixes must be a table of at least two columns, got shape {canary_tokens.shape}"
        )
    row_numbers = np.arange(len(canary_tokens))
    canary_tokens[:, -1] = vocabulary_size + row_numbers
    token_labels = np.full_like(canary_tokens, _IGNORED_LABEL)
    token_labels[:, -1] = canary_tokens[:, -1]
    return _canaries_with_coins(
        "new tokens",
        x=canary_tokens,
        y=token_labels,
        seed=checked_seed,
        taken=row_numbers[:, None],
    )


def _canaries_with_coins(
    kind: str, x: AnyArray, y: AnyArray, seed: int, *, taken: IntArray | None = None
) -> Canaries:
    """Return examples with a coin flip for each."""
    if taken is None:
        taken = np.empty((len(x), 0), dtype=np.int64)
    return Canaries(
        kind=kind,
        x=x,
        y=y.astype(np.int64, copy=False),
        taken=taken,
        plan=InclusionPlan.create(len(x), seed=seed),
    )
