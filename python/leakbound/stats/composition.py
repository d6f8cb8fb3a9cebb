"""Leakage that is left once the shift between members and non-members is taken off."""

import math

import numpy as np

import leakbound._core as _core
from leakbound._base.alignment import ExampleOrder
from leakbound._base.checks import instance, numbers, real, vector
from leakbound._base.types import ArrayInput, FdpTest, HasMember
from leakbound.claims import ApproxDP, GaussianDP, PureDP
from leakbound.errors import OptionError
from leakbound.stats.approximate_dp import one_run_epsilon
from leakbound.stats.f_dp import fdp_lower_bound

ComposableClaim = PureDP | ApproxDP | GaussianDP


def composition_bound(
    correct: int,
    guesses: int,
    m: float,
    *,
    claim: ComposableClaim,
    epsilon_ds: float | None = None,
    mu_ds: float | None = None,
    delta_ds: float = 0.0,
    tau: float = 0.05,
    test: FdpTest = "recursion",
) -> float:
    """Bound ε or μ by what features and model leak together, less what features leak at worst.

    Parameters
    ----------
    correct, guesses, m, test : the same
        As for `fdp_lower_bound`; `correct` with nothing corrected for.
    claim : PureDP, ApproxDP or GaussianDP
        The claim about the model alone; its own δ included.
    epsilon_ds : float, optional
        The largest |λ| that features of an example may have, but for `delta_ds`; in nats.
    mu_ds : float, optional
        For `GaussianDP`, the μ of the features, if known to be less than `shift_mu(epsilon_ds)`.
    delta_ds : float
        Probability that features say more than that: see `shift_delta`.
    tau : float
        Probability that the bound is above the truth, in (0, 1).

    Notes
    -----
    Theorem 4.1 and Corollary 1 of Cebere, Even, Bleistein and Bellet, "Privacy auditing with zero
    (0) training run": if features and model together are not (ε + ε_DS, 1 - (1-δ)(1-δ_DS))-DP, the
    model is not (ε, δ)-DP (Algorithm 6, with the exact tail for its sign-reversed line 6); if they
    are not Gaussian with √(μ² + μ_DS²) and failures δ_DS, the model is not μ-Gaussian (Algorithm
    7). Algorithm 8 omits μ_DS and misstates the error, and is not offered.

    Examples
    --------
    >>> round(composition_bound(95, 100, 1000, claim=PureDP(), epsilon_ds=0.5), 4)
    1.6724
    """
    instance(claim, "claim", (PureDP, ApproxDP, GaussianDP))
    failures = real(delta_ds, "delta_ds", least=0, below=1)
    if (epsilon_ds is None) == (mu_ds is None):
        message = "give either epsilon_ds or mu_ds, the worst leakage of features"
        raise OptionError(message)
    # Either may fail: the model, or the limit on what features say.
    delta = 1 - (1 - claim.delta) * (1 - failures)
    if isinstance(claim, GaussianDP):
        family = GaussianDP(delta=delta)
        together = fdp_lower_bound(correct, guesses, m, claim=family, tau=tau, test=test)
        shift = shift_mu(epsilon_ds) if epsilon_ds is not None else real(mu_ds, "mu_ds", least=0)
        return _apart(together, shift)
    if epsilon_ds is None:
        message = f"mu_ds is for GaussianDP(), got {claim!r}: give epsilon_ds"
        raise OptionError(message)
    together = one_run_epsilon(correct, guesses, m, delta=delta, beta=tau)
    return remaining_leakage(together, real(epsilon_ds, "epsilon_ds", least=0), claim)


def remaining_leakage(together: float, epsilon_ds: float, claim: ComposableClaim) -> float:
    """Take the leakage of features off that of features and model."""
    if isinstance(claim, GaussianDP):
        return _apart(together, shift_mu(epsilon_ds))
    return max(0.0, together - epsilon_ds)


def shift_mu(epsilon_ds: float) -> float:
    """Return the smallest μ for which μ-Gaussian DP allows all that ε-DP does, rounded up.

    Parameters
    ----------
    epsilon_ds : float
        ε, at least 0, in nats; μ is 2 Φ⁻¹(σ(ε)).

    Examples
    --------
    >>> round(shift_mu(1.0), 6)
    1.232035
    """
    epsilon = real(epsilon_ds, "epsilon_ds", least=0)
    if epsilon == 0:
        return 0.0
    if epsilon > 700:
        return math.inf
    # the chance of a wrong guess, as that of a right one rounds to 1
    wrong = np.array([math.exp(-epsilon) / (1 + math.exp(-epsilon))])
    return float(-2 * _core.normal_quantile(wrong)[0] * (1 + 1e-15))


def shift_delta(log_odds: ArrayInput, member: ArrayInput | HasMember, epsilon: float) -> float:
    """Estimate the δ with which features are (ε, δ)-DP, from log-odds of examples of both kinds.

    That is the larger, over the kinds, of the mean of (1 - e^(ε - L))₊, L = λ for members and -λ
    for non-members: the hockey stick, which is below the share of L > ε.

    Parameters
    ----------
    log_odds, member : array-like, shape (m,)
        λᵢ, in nats, and membership; both kinds occur.
    epsilon : float
        ε, at least 0, in nats.

    Examples
    --------
    >>> round(shift_delta([2.0, 0.0, -2.0, 0.0], [1, 1, 0, 0], 1.0), 6)
    0.31606
    """
    claimed = real(epsilon, "epsilon", least=0)
    order = ExampleOrder()
    listed = vector(order.placed(log_odds, "log_odds"), "log_odds")
    odds = numbers(listed, "log_odds").astype(np.float64)
    included = order.member(member, odds.size)
    loss = np.where(included, odds, -odds)
    beyond = loss > claimed  # by cases: inf - inf is NaN
    excess = -np.expm1(np.subtract(claimed, loss, out=np.zeros(loss.size), where=beyond))
    return float(max(excess[kind].mean() for kind in (included, ~included) if kind.any()))


def _apart(together: float, shift: float) -> float:
    """Return √(μ² - μ_DS²), or 0: μ composes by squares."""
    if together <= shift:
        return 0.0
    return math.sqrt((together - shift) * (together + shift))
