"""Canaries for causal language models: tokens that nothing else predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leakbound._base.streams import Purpose, seed_of
from leakbound._base.validation import integer, numbers
from leakbound.errors import ShapeError
from leakbound.planning.canaries.base import Canaries

if TYPE_CHECKING:
    from leakbound._base.types import ArrayInput

__all__ = ["new_tokens", "random_tokens"]

_IGNORED = -100
"""The label of a token that does not count, as in torch and in transformers."""


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
    OptionError, OptionTypeError
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
    OptionError, OptionTypeError, ArrayTypeError
        If an option is outside its range, or prefixes are not tokens of the vocabulary.
    ShapeError
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
        raise ShapeError(message)
    tokens[:, -1] = words + np.arange(len(tokens))
    labels = np.full_like(tokens, _IGNORED)
    labels[:, -1] = tokens[:, -1]
    taken = np.arange(len(tokens))[:, None]
    return Canaries.create("new tokens", tokens, labels, taken, seed=start)
