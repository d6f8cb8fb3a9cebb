"""How well features alone tell members, as if their memberships had been a random split.

Where nothing was random a difference of features is expected: it is what a correction takes out.
"""

import numpy as np

import leakbound._core as _core
from leakbound._base.streams import Purpose
from leakbound._base.types import BoolArray, FloatArray, JsonObject
from leakbound.errors import FitError
from leakbound.propensity.falsification import bets
from leakbound.propensity.scaling import standardised

# Parts of the pairs: a model learns from those before each but the first.
_PARTS = 5
# Pairs that are guessed about at most, and at least.
_MOST = 5_000
_LEAST = 50
# Standard deviations at which features are clipped.
_CLIPPED = 5.0
_CLASSIFIER = "logistic regression"


def blind_guesses(features: FloatArray, member: BoolArray, seed: int) -> JsonObject:
    """Return how often features tell the member of a random pair, as an option of a result.

    There is none if there are few pairs, or the model cannot be fitted.

    A logistic regression learns from earlier pairs, and guesses about later ones where it is
    surest. It is no test: no p-value is computed.
    """
    rng = Purpose.BLIND_PAIRS.rng(seed)
    inside = rng.permutation(np.flatnonzero(member))
    outside = rng.permutation(np.flatnonzero(~member))
    count = min(inside.size, outside.size, _MOST)
    if count < _LEAST:
        return {}
    rows = np.concatenate([inside[:count], outside[:count]])
    members, others = np.split(standardised(features[rows], _CLIPPED), 2)
    right = 0
    guesses = 0
    for part in np.array_split(np.arange(count), _PARTS)[1:]:
        earlier = part[0]
        learnt = np.concatenate([members[:earlier], others[:earlier]])
        try:
            coefficients = ridge_coefficients(learnt, np.arange(2 * earlier) < earlier)
        except FitError:
            return {}
        log_odds = _core.linear_log_odds(coefficients, members[part])[0]
        log_odds_of_others = _core.linear_log_odds(coefficients, others[part])[0]
        surest, guess = bets(np.zeros(part.size), log_odds - log_odds_of_others)
        right += int((guess > 0).sum())
        guesses += surest.size
    return {"blind_baseline": {"classifier": _CLASSIFIER, "right": right, "of": guesses}}


def ridge_coefficients(features: FloatArray, member: BoolArray) -> FloatArray:
    """Return intercept and slopes of a logistic regression with ridge penalty 1, shape (1, d + 1).

    FitError says why it cannot be fitted, InputError that one class is missing.
    """
    rows = _core.PropensityRows(features, member, folds=None, l2=1.0)
    return rows.coefficients(rows.fit())[None, :]
