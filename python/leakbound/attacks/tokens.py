"""Scores of texts from the log-probabilities of their tokens."""

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from leakbound._base import checks
from leakbound._base.reading import array_of, refuse_masked
from leakbound._base.scores import Scores
from leakbound._base.types import ArrayInput, FloatArray
from leakbound.attacks.reference_models import as_scores
from leakbound.errors import InputError, OptionError

TokenSignal: TypeAlias = Literal["mean", "sum", "min_k", "zlib"]
"""What is measured on the log-probabilities of a text's tokens."""

LOWEST = 20.0
"""Per cent of the tokens that `min_k` averages, unless another number is given."""
ROUNDING = 1e-3
"""How far log-probabilities may be above 0: of half precision."""


@dataclass(frozen=True)
class Tokens:
    """What a model said of a text: log-probabilities in nats, and how many units they cover.

    Units are tokens; of a sum that covers the whole text they are its bytes. `text` is empty where
    nobody knows it.
    """

    values: Sequence[float]
    units: int
    text: str = ""


def _text_log_probability(tokens: Tokens, _: float) -> float:
    """Return the log-probability of a text."""
    return math.fsum(tokens.values)


def _mean_log_probability(tokens: Tokens, _: float) -> float:
    """Return the mean log-probability of a token."""
    return math.fsum(tokens.values) / tokens.units


def _lowest_mean(tokens: Tokens, k: float) -> float:
    """Return the mean of the k per cent of the tokens with the lowest log-probability."""
    lowest_count = max(1, int(len(tokens.values) * k / 100))
    return math.fsum(sorted(tokens.values)[:lowest_count]) / lowest_count


def _log_probability_per_packed_byte(tokens: Tokens, _: float) -> float:
    """Return the log-probability of a text over the bytes that zlib packs it in."""
    packed_text = zlib.compress(tokens.text.encode("utf-8", "surrogatepass"))
    return math.fsum(tokens.values) / len(packed_text)


SIGNALS: Mapping[TokenSignal, Callable[[Tokens, float], float]] = {
    "mean": _mean_log_probability,
    "sum": _text_log_probability,
    "min_k": _lowest_mean,
    "zlib": _log_probability_per_packed_byte,
}
"""How each signal is computed; the second argument is the k of `min_k`."""


def check_signal(signal: str, k: float) -> float:
    """Check the name of a signal, and return k."""
    checks.choice(signal, name="signal", allowed=TokenSignal)
    return checks.real(k, name="k", above=0, most=100)


def difference(of_model: float, of_base: float) -> float:
    """Return how much more likely a text is to a model than to its base; NaN if to neither."""
    if math.isinf(of_model) and of_model == of_base:
        return math.nan
    return of_model - of_base


def token_scores(
    losses: ArrayInput,
    signal: TokenSignal = "mean",
    *,
    k: float = LOWEST,
    texts: Sequence[str] | None = None,
    reference: ArrayInput | None = None,
    ids: ArrayInput | None = None,
) -> Scores:
    r"""Score texts by how likely their tokens are to a language model.

    Parameters
    ----------
    losses : array-like, shape (m, longest)
        :math:`-\log p` of each token in nats, such as `leakbound.torch.token_losses` returns them;
        NaN where a token does not count, or a text is over. `logged_scores` reads the logs of
        models behind an API.
    signal : {"mean", "sum", "min_k", "zlib"}
        "mean": the mean log-probability of a token, minus the "cross_entropy" of a causal model;
        "sum": the log-probability of the text; "min_k": the mean of the k per cent of the tokens
        with the lowest log-probability; "zlib": the sum over the bytes that zlib packs the text in.
    k : float
        Per cent of the tokens of "min_k", in (0, 100]; rounded down, but at least one token.
    texts : sequence of str, optional
        The m texts, for "zlib".
    reference : array-like, shape (m, longest), optional
        The same losses under the model before training. Scores are then differences of the signal,
        which take away how hard a text is for any model.
    ids : array-like of shape (m,), optional
        A different number or string for each text; by default 0, 1, …, m - 1.

    References
    ----------
    N. Carlini et al., "Extracting Training Data from Large Language Models", 2021,
    arXiv:2012.07805 ("zlib", and differences); W. Shi et al., "Detecting Pretraining Data from
    Large Language Models", 2024, arXiv:2310.16789 ("min_k").

    Examples
    --------
    >>> import numpy as np
    >>> losses = [[0.5, 2.5, np.nan], [1.0, 2.0, 6.0]]
    >>> token_scores(losses).values.tolist()
    [-1.5, -3.0]
    >>> token_scores(losses, "min_k", k=40).values.tolist()
    [-2.5, -6.0]
    """
    k = check_signal(signal, k)
    model_losses = _loss_table(losses, "losses")
    text_of_rows = _checked_texts(texts, len(model_losses), signal)
    values = _signal_of_rows(model_losses, text_of_rows, signal, k)
    if reference is not None:
        base_losses = _loss_table(reference, "reference")
        if not np.array_equal(np.isnan(base_losses), np.isnan(model_losses)):
            raise InputError(
                "losses and reference must be of the same tokens, NaN in the same places: compute "
                "both with the tokenizer of the model"
            )
        base_values = _signal_of_rows(base_losses, text_of_rows, signal, k)
        values = list(map(difference, values, base_values))
    return as_scores(np.array(values), ids=ids, attack=signal)


def _signal_of_rows(
    loss_table: FloatArray, texts: Sequence[str], signal: TokenSignal, k: float
) -> list[float]:
    """Return the signal of each row."""
    signal_values = []
    for loss_row, text in zip(loss_table, texts, strict=True):
        log_probabilities = (-loss_row[~np.isnan(loss_row)]).tolist()
        tokens = Tokens(log_probabilities, units=len(log_probabilities), text=text)
        signal_values.append(SIGNALS[signal](tokens, k))
    return signal_values


def _checked_texts(texts: Sequence[str] | None, row_count: int, signal: str) -> Sequence[str]:
    """Return a text for each row, which only zlib reads."""
    if signal != "zlib":
        if texts is not None:
            raise OptionError(f"{signal} reads no texts: leave texts out, or use zlib")
        return [""] * row_count
    if texts is None:
        raise OptionError("zlib packs texts: pass texts=, one for each row of losses")
    texts_of_rows: list[object] = [*texts]
    if len(texts_of_rows) != row_count:
        raise InputError(f"there are {len(texts_of_rows)} texts and {row_count} rows of losses")
    rows_without_text = [
        row for row, text in enumerate(texts_of_rows) if not isinstance(text, str) or not text
    ]
    if rows_without_text:
        row = rows_without_text[0]
        raise InputError(
            f"texts must hold text, got {checks.shown(texts_of_rows[row])} at row {row}"
        )
    return [*texts]


def _loss_table(values: ArrayInput, name: str) -> FloatArray:
    """Read losses, with a row for each text and at least one number in each."""
    refuse_masked(values, name=name)
    loss_array = array_of(values, name=name)
    if loss_array.dtype.kind not in "iuf" or loss_array.ndim != 2 or not loss_array.size:
        raise InputError(
            f"{name} must be a table of numbers with a row for each text, padded with NaN, got "
            f"{loss_array.dtype} of shape {loss_array.shape}"
        )
    loss_table = loss_array.astype(np.float64)
    is_missing = np.isnan(loss_table)
    empty_rows = np.flatnonzero(is_missing.all(1))
    if empty_rows.size:
        raise InputError(
            f"{name} has no number in row {empty_rows[0]}: leave out texts of one token"
        )
    negative_places = np.argwhere(loss_table < -ROUNDING)
    if negative_places.size:
        row, column = negative_places[0]
        raise InputError(
            f"{name} must be at least 0, got {loss_table[row, column]:g} in row {row}, column "
            f"{column}: losses are minus log-probabilities"
        )
    return loss_table
