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
_MOST_PAIRS = 5_000
_FEWEST_PAIRS = 50
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
    member_rows = rng.permutation(np.flatnonzero(member))
    nonmember_rows = rng.permutation(np.flatnonzero(~member))
    number_of_pairs = min(member_rows.size, nonmember_rows.size, _MOST_PAIRS)
    if number_of_pairs < _FEWEST_PAIRS:
        return {}
    rows_of_pairs = np.concatenate(
        [member_rows[:number_of_pairs], nonmember_rows[:number_of_pairs]]
    )
    standardised_features = standardised(features[rows_of_pairs], _CLIPPED)
    pair_of_row = np.tile(np.arange(number_of_pairs), 2)
    correct_guesses = 0
    pairs_guessed = 0
    for pairs_of_part in np.array_split(np.arange(number_of_pairs), _PARTS)[1:]:
        is_earlier_row = pair_of_row < pairs_of_part[0]
        try:
            coefficients = ridge_coefficients(
                standardised_features[is_earlier_row], member[rows_of_pairs[is_earlier_row]]
            )
        except FitError:
            return {}
        blind_log_odds = _core.linear_log_odds(coefficients, standardised_features)[0]
        log_odds_differences = (
            blind_log_odds[pairs_of_part] - blind_log_odds[number_of_pairs + pairs_of_part]
        )
        no_claim = np.zeros(pairs_of_part.size)
        surest_pairs, signs = bets(no_claim, log_odds_differences)
        correct_guesses += int((signs > 0).sum())
        pairs_guessed += surest_pairs.size
    return {
        "blind_baseline": {"classifier": _CLASSIFIER, "right": correct_guesses, "of": pairs_guessed}
    }


def ridge_coefficients(features: FloatArray, member: BoolArray) -> FloatArray:
    """Return intercept and slopes of a logistic regression with ridge penalty 1, shape (1, d + 1).

    FitError says why it cannot be fitted, InputError that one class is missing.
    """
    regression = _core.PropensityRows(features, member, folds=None, l2=1.0)
    coefficients = regression.coefficients(regression.fit())
    return coefficients[None, :]
