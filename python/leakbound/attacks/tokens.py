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
from leakbound.attacks.reference_models import scores_of_attack
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


def _mean_of_lowest_log_probabilities(tokens_of_text: Tokens, lowest_per_cent: float) -> float:
    """Return the mean of the k per cent of the tokens with the lowest log-probability."""
    lowest_count = max(1, int(len(tokens_of_text.values) * lowest_per_cent / 100))
    return math.fsum(sorted(tokens_of_text.values)[:lowest_count]) / lowest_count


def _log_probability_per_packed_byte(tokens: Tokens, _: float) -> float:
    """Return the log-probability of a text over the bytes that zlib packs it in."""
    packed_text = zlib.compress(tokens.text.encode("utf-8", "surrogatepass"))
    return math.fsum(tokens.values) / len(packed_text)


SIGNALS: Mapping[TokenSignal, Callable[[Tokens, float], float]] = {
    "mean": _mean_log_probability,
    "sum": _text_log_probability,
    "min_k": _mean_of_lowest_log_probabilities,
    "zlib": _log_probability_per_packed_byte,
}
"""How each signal is computed; the second argument is the k of `min_k`."""


def check_token_signal(signal: str, k: float) -> float:
    """Check the name of a signal, and return k."""
    checks.choice(signal, name="signal", allowed=TokenSignal)
    return checks.real(k, name="k", above=0, most=100)


def difference_to_base_model(of_model: float, of_base: float) -> float:
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
    k = check_token_signal(signal, k)
    model_losses = _checked_loss_table(losses, "losses")
    texts_of_rows = _checked_texts_of_rows(texts, len(model_losses), signal)
    text_signals = _signals_of_texts(model_losses, texts_of_rows=texts_of_rows, signal=signal, k=k)
    if reference is not None:
        base_losses = _checked_loss_table(reference, "reference")
        if not np.array_equal(np.isnan(base_losses), np.isnan(model_losses)):
            raise InputError(
                "losses and reference must be of the same tokens, NaN in the same places: compute "
                "both with the tokenizer of the model"
            )
        base_signals = _signals_of_texts(
            base_losses, texts_of_rows=texts_of_rows, signal=signal, k=k
        )
        text_signals = list(map(difference_to_base_model, text_signals, base_signals))
    return scores_of_attack(np.array(text_signals), ids=ids, attack=signal)


def _signals_of_texts(
    loss_table: FloatArray, texts_of_rows: Sequence[str], signal: TokenSignal, k: float
) -> list[float]:
    """Return the signal of each row."""
    signal_values = []
    for losses_of_text, text_of_row in zip(loss_table, texts_of_rows, strict=True):
        log_probabilities = (-losses_of_text[~np.isnan(losses_of_text)]).tolist()
        tokens_of_text = Tokens(log_probabilities, units=len(log_probabilities), text=text_of_row)
        signal_values.append(SIGNALS[signal](tokens_of_text, k))
    return signal_values


def _checked_texts_of_rows(
    texts: Sequence[str] | None, loss_row_count: int, signal: str
) -> Sequence[str]:
    """Return a text for each row, which only zlib reads."""
    if signal != "zlib":
        if texts is not None:
            raise OptionError(f"{signal} reads no texts: leave texts out, or use zlib")
        return [""] * loss_row_count
    if texts is None:
        raise OptionError("zlib packs texts: pass texts=, one for each row of losses")
    possible_texts: list[object] = [*texts]
    if len(possible_texts) != loss_row_count:
        raise InputError(
            f"there are {len(possible_texts)} texts and {loss_row_count} rows of losses"
        )
    for row_number, text_of_row in enumerate(possible_texts):
        if not isinstance(text_of_row, str) or not text_of_row:
            raise InputError(
                f"texts must hold text, got {checks.shown(text_of_row)} at row {row_number}"
            )
    return [*texts]


def _checked_loss_table(token_losses: ArrayInput, name: str) -> FloatArray:
    """Read losses, with a row for each text and at least one number in each."""
    refuse_masked(token_losses, name=name)
    array_of_losses = array_of(token_losses, name=name)
    if (
        array_of_losses.dtype.kind not in "iuf"
        or array_of_losses.ndim != 2
        or not array_of_losses.size
    ):
        raise InputError(
            f"{name} must be a table of numbers with a row for each text, padded with NaN, got "
            f"{array_of_losses.dtype} of shape {array_of_losses.shape}"
        )
    loss_table = array_of_losses.astype(np.float64)
    is_missing = np.isnan(loss_table)
    rows_without_losses = np.flatnonzero(is_missing.all(1))
    if rows_without_losses.size:
        raise InputError(
            f"{name} has no number in row {rows_without_losses[0]}: leave out texts of one token"
        )
    negative_places = np.argwhere(loss_table < -ROUNDING)
    if negative_places.size:
        negative_row, negative_column = negative_places[0]
        raise InputError(
            f"{name} must be at least 0, got {loss_table[negative_row, negative_column]:g} in row "
            f"{negative_row}, column {negative_column}: losses are minus log-probabilities"
        )
    return loss_table
