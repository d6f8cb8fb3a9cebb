"""What a bound implies for what people read: advantage, TPR at low FPR, posterior."""

from dataclasses import dataclass

import numpy as np

from leakbound.claims.tradeoff import TradeOff

_RATES = (0.001, 0.01)
_POINTS = 4001
# More than the error of a trade-off function, which is taken off
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Implied:
    """Lower bounds that follow from a bound, at its confidence and all at once.

    Each is what the most private guarantee that is not refuted still allows an attack on one
    example. If training's own trade-off function is a curve of the family that was audited (for
    (ε, δ), that of randomised response), it is what the best attack reaches.
    """

    advantage: float
    """Largest difference of true and false positive rate, in [0, 1]."""
    tpr_at_fpr_0_001: float
    tpr_at_fpr_0_01: float
    """True positive rate at a false positive rate of 0.1 % and of 1 %."""
    posterior: float
    """Probability that an example is a member once an attack flags it at a false positive rate of
    0.1 %, from a prior of one half; in [1/2, 1]."""


def implied_by(curve: TradeOff | None) -> Implied:
    """Return what a refuted curve implies, rounded down; guessing where none is refuted."""
    low, high = _RATES
    if curve is None:
        return Implied(0.0, low, high, 0.5)
    rates = np.linspace(0.0, 1.0, _POINTS)
    for _ in range(3):  # concave: the best point of a grid is beside the best of all
        gain = 1 - np.asarray(curve.f(rates)) - rates
        best = int(np.argmax(gain))
        rates = np.linspace(rates[max(best - 1, 0)], rates[min(best + 1, _POINTS - 1)], _POINTS)
    # the example is flagged at one of the rates; before that it is a member with chance ½
    at_low, at_high = (max(rate, 1 - float(curve.f(rate)) - _ROUNDING) for rate in _RATES)
    return Implied(
        advantage=max(0.0, float(gain[best]) - _ROUNDING),
        tpr_at_fpr_0_001=at_low,
        tpr_at_fpr_0_01=at_high,
        posterior=at_low / (at_low + low),
    )
