"""A bound over all cuts of a path whose guesses have unlike chances, corrected for the choice."""

from numpy.typing import ArrayLike

import leakbound._core as _core
from leakbound._base.checks import booleans, check_length, integer, real, vector
from leakbound._base.types import ArrayInput
from leakbound.cuts import KLScan
from leakbound.stats.binomial import reals


def kl_scan_offsets(
    successes: ArrayInput,
    offsets: ArrayLike,
    *,
    beta: float,
    kappa: float | None = None,
    min_guesses: int = 1,
) -> _core.OffsetBound:
    """Bound ε from all cuts of a path on which guess i is right with probability ≤ σ(ε + aᵢ).

    The scan of `leakbound.cuts.KLScan` with a walk whose steps have unlike probabilities; every cut
    is examined. Where no cut qualifies, `.epsilon`, `.cut` and `.successes` are -inf, 0 and 0.

    Parameters
    ----------
    successes : array-like of bool, shape (m,)
        Which guesses were right, in visiting order.
    offsets : array-like, shape (m,)
        The log-odds aᵢ that each guess has at ε = 0, within ±300, in the same order; 0 for coins.
    beta : float
        Probability that the bound is above the truth, in (0, 1).
    kappa : float, optional
        Deviation r·KL(W/r ‖ p̄) that a cut must reach, in nats, p̄ the mean of the first r
        probabilities; ln(1/β) + 1 if None.
    min_guesses : int
        Smallest cut, in [1, m].

    Examples
    --------
    >>> bound = kl_scan_offsets([True] * 200, [0.5] * 200, beta=0.05)
    >>> round(bound.epsilon - kl_scan_offsets([True] * 200, [0.0] * 200, beta=0.05).epsilon, 9)
    -0.5
    """
    path = _core.Path.from_successes(booleans(vector(successes, "successes"), "successes"))
    least = integer(min_guesses, "min_guesses", least=1)
    policy = KLScan(kappa=kappa, min_guesses=least)
    policy.check(path.guesses)
    values = reals(vector(offsets, "offsets"), "offsets", least=-300, most=300)
    check_length(values, path.guesses, "offsets")
    return _core.kl_scan_offsets(
        path,
        values,
        beta=real(beta, "beta", above=0, below=1),
        kappa=policy.kappa,
        min_guesses=least,
    )
