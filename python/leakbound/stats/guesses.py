"""What correct guesses prove: (ε, δ)-DP and f-DP at one number of them, and all cuts of a path."""

import math

import leakbound._core as _core
from leakbound._base import checks
from leakbound._base.types import (
    ArrayInput,
    ArrayLike,
    CountOptions,
    FdpTest,
    TailBound,
    TailOptions,
)
from leakbound.claims import FAMILIES, AnyFamily, FamilyClaim
from leakbound.claims.base import counts_of, tail_of
from leakbound.claims.tradeoff import TradeOff
from leakbound.cuts import KLScan
from leakbound.errors import OptionError

# The core counts in 32 bits
_MOST = 2**32 - 1


def one_run_p_value(
    correct: int,
    guesses: int,
    m: float,
    *,
    epsilon: float,
    delta: float,
    k: int = 2,
    bound: TailBound = "exact",
    one_sided: bool = False,
) -> float:
    """Bound the probability of so many correct guesses under (ε, δ)-DP, rounded up.

    Parameters
    ----------
    correct, guesses : int
        Correct guesses v, and guesses r that were fixed in advance, at least 1.
    m : float
        Examples, guessed or not; positive.
    epsilon, delta : float
        The claim: ε at least 0, in nats, and δ in [0, 1).
    k : int
        Equally likely values of each example, at least 2; 2 for membership.
    bound : {"exact", "steinke", "coupling", "zero_run", "panoramia"}
        The closed form; the published theorem, which is 1 wherever it would exceed 1/2, since there
        it can be false; coupling and knapsack; or, for tampered guesses about given members and
        non-members, the theorem as published, 1 above 1/2 too (the closed form holds there with m
        the sum of 2 min(π, 1 - π)); or, for members and generated points, the published
        propositions, δ standing for γ + δ - γδ.
    one_sided : bool
        Whether no guess but "member" is ever made: m/2 then stands for m.

    Notes
    -----
    With W' ~ Bin(r, e^ε/(e^ε + k - 1)) and T = P(W' ≥ v), the closed form is T + m δ T (1 - T) / (v
    P(W' = v)): the largest value that the inequality of Mahloujifar et al., "Auditing
    f-differential privacy in one run" (2025), Theorem 3.1, allows for the tradeoff curve e^ε x + δ.
    "steinke" is Theorem 5.2 of Steinke, Nasr and Jagielski, "Privacy auditing with one (1) training
    run" (2023). "zero_run" is Theorem 5.1 (1) of Cebere, Even, Bleistein and Bellet, "Privacy
    auditing with zero (0) training run": T + m δ (1 + e^-ε) Σ_i P(W' = v - i)/i. "panoramia" is
    Propositions 3 and 4 of Kazmi et al., "PANORAMIA" (2024): the concave envelope of k ↦ P(W' ≥ v -
    k) at 2 m δ. All three take failures to be independent of the coins.

    Examples
    --------
    >>> round(one_run_p_value(75, 80, 1000, epsilon=1.5, delta=1e-5), 6)
    0.002023
    """
    counts = read_counts(correct, guesses=guesses, m=m, k=k, one_sided=one_sided)
    options = _options_of_tail(counts, delta=delta, bound=bound)
    claimed = checks.real(epsilon, name="epsilon", least=0, below=math.inf)
    return _core.approx_p_value(counts["correct"], counts["guesses"], claimed, options)


def one_run_epsilon(
    correct: int,
    guesses: int,
    m: float,
    *,
    delta: float,
    beta: float,
    k: int = 2,
    bound: TailBound = "exact",
    one_sided: bool = False,
) -> float:
    """Return the largest ε that so many correct guesses refute at a given δ, rounded down or 0.

    Parameters
    ----------
    correct, guesses, m, delta, k, bound, one_sided : the same
        As for `one_run_p_value`.
    beta : float
        Probability that the bound is above the truth, in (0, 1).

    Examples
    --------
    >>> round(one_run_epsilon(75, 80, 1000, delta=1e-5, beta=0.05), 4)
    1.9277
    """
    counts = read_counts(correct, guesses=guesses, m=m, k=k, one_sided=one_sided)
    options = _options_of_tail(counts, delta=delta, bound=bound)
    level = checks.real(beta, name="beta", above=0, below=1)
    return _core.approx_epsilon(counts["correct"], counts["guesses"], level, options)


def read_counts(correct: int, guesses: int, m: float, k: int, *, one_sided: bool) -> CountOptions:
    """Check counts of guesses about examples of k values."""
    made = checks.integer(guesses, name="guesses", least=1, most=_MOST)
    members_only = checks.flag(one_sided, name="one_sided")
    if checks.integer(k, name="k", least=2, most=_MOST) > 2 and members_only:
        raise OptionError(
            f"one_sided=True is for membership, k=2, got k={k}: leave it out, or set k=2"
        )
    right = checks.integer(correct, name="correct", least=0, most=made)
    examples = checks.real(m, name="m", above=0, below=math.inf)
    return counts_of(right, guesses=made, m=examples, one_sided=members_only, k=k)


def _options_of_tail(counts: CountOptions, delta: float, bound: TailBound) -> TailOptions:
    checks.choice(bound, name="bound", allowed=TailBound)
    if counts["k"] > 2 and bound != "exact":
        raise OptionError(f'bound="{bound}" is for membership, k=2, got k={counts["k"]}: set k=2')
    return tail_of(counts, bound=bound, delta=checks.real(delta, name="delta", least=0, below=1))


def fdp_rejects(
    correct: int,
    guesses: int,
    m: float,
    *,
    tradeoff: TradeOff,
    tau: float = 0.05,
    k: int = 2,
    one_sided: bool = False,
    test: FdpTest = "tight",
) -> bool:
    """Test whether a mechanism that obeys a trade-off function allows so many correct guesses.

    Parameters
    ----------
    correct, guesses : int
        Correct guesses c, and guesses c' that were fixed in advance, at least 1 and at most 10^8.
    m : float
        Examples, guessed or not; positive. After weighting, their effective number.
    tradeoff : TradeOff
        The curve, from `leakbound.claims.tradeoff`: the power is that of finding the value guessed.
        For membership, k = 2, it is that of finding members, and `TradeOff.symmetrized` is tested
        unless guesses are one-sided; for k > 2 it holds for every ordered pair of values.
    tau : float
        Level, in (0, 1): the most that the chance of a false rejection can be.
    k : int
        Equally likely values of each example, at least 2; 2 for membership.
    one_sided : bool
        Whether no guess but "member" is ever made: m/2 then stands for m.
    test : {"tight", "recursion"}
        The lower of the worst case over all laws that Theorem 3.1 allows and Algorithm 3, or
        Algorithm 3 alone, which is faster and stands for both beyond ten million guesses.

    Notes
    -----
    Mahloujifar, Melis and Chaudhuri, "Auditing f-differential privacy in one run" (2025). The tight
    test goes beyond them: it finds the law of the count that violates none of the inequalities and
    is the worst, and a proof that none is worse.

    Examples
    --------
    >>> from leakbound.claims.tradeoff import TradeOff
    >>> fdp_rejects(80, 100, 100, tradeoff=TradeOff.gaussian(0.5))
    True
    """
    counts = _counts_under_f_dp(correct, guesses=guesses, m=m, k=k, one_sided=one_sided)
    checks.choice(test, name="test", allowed=FdpTest)
    return _core.fdp_rejects(
        counts,
        _tested_tradeoff(tradeoff, counts).core,
        checks.real(tau, name="tau", above=0, below=1),
        test,
    )


def fdp_p_value(
    correct: int,
    guesses: int,
    m: float,
    *,
    tradeoff: TradeOff,
    k: int = 2,
    one_sided: bool = False,
    test: FdpTest = "tight",
) -> float:
    """Bound the probability of so many correct guesses under a trade-off function, rounded up.

    It is the smallest level at which the curve is rejected.

    Parameters
    ----------
    correct, guesses, m, tradeoff, k, one_sided, test : the same
        As for `fdp_rejects`.

    Examples
    --------
    >>> from leakbound.claims.tradeoff import TradeOff
    >>> round(fdp_p_value(60, 100, 100, tradeoff=TradeOff.gaussian(0.0)), 4)
    0.0284
    """
    counts = _counts_under_f_dp(correct, guesses=guesses, m=m, k=k, one_sided=one_sided)
    checks.choice(test, name="test", allowed=FdpTest)
    return _core.fdp_p_value(counts, _tested_tradeoff(tradeoff, counts).core, test)


def fdp_lower_bound(
    correct: int,
    guesses: int,
    m: float,
    *,
    claim: AnyFamily,
    tau: float = 0.05,
    k: int = 2,
    one_sided: bool = False,
    test: FdpTest = "tight",
) -> float:
    """Return the least private curve of a family that so many correct guesses reject.

    The value of the family's parameter, on the rejected side: 0 if nothing is rejected, or if the
    count is so large that no mechanism explains it, and the coins must be in doubt.

    Parameters
    ----------
    correct, guesses, m, tau, k, one_sided, test : the same
        As for `fdp_rejects`.
    claim : GaussianDP, LaplaceDP, SubsampledGaussianDP or TradeOffFamily
        The family, from `leakbound.claims`.

    Examples
    --------
    >>> from leakbound.claims import GaussianDP
    >>> round(fdp_lower_bound(80, 100, 100, claim=GaussianDP(), test="recursion"), 4)
    0.5307
    """
    counts = _counts_under_f_dp(correct, guesses=guesses, m=m, k=k, one_sided=one_sided)
    checks.instance(claim, name="claim", types=FAMILIES)
    checks.choice(test, name="test", allowed=FdpTest)
    return claim.critical(counts, checks.real(tau, name="tau", above=0, below=1), test) or 0.0


def _tested_tradeoff(tradeoff: TradeOff, counts: CountOptions) -> TradeOff:
    """Return the curve that bounds the guesses: both orders of the two, where both are guessed."""
    checks.instance(tradeoff, name="tradeoff", types=TradeOff)
    both = counts["k"] == 2 and not counts["one_sided"]
    if both:
        return tradeoff.symmetrized()
    return tradeoff


def _counts_under_f_dp(
    correct: int, guesses: int, m: float, k: int, *, one_sided: bool
) -> CountOptions:
    made = checks.integer(guesses, name="guesses", least=1)
    most = FamilyClaim.most_guesses
    if made > most:
        raise OptionError(
            f"guesses must be at most {most} under f-DP, got {made}: fix fewer guesses in "
            "advance, for example about a random part of the examples"
        )
    return read_counts(correct, guesses=made, m=m, k=k, one_sided=one_sided)


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
    path = _core.Path.from_successes(
        checks.booleans(checks.vector(successes, name="successes"), name="successes")
    )
    least = checks.integer(min_guesses, name="min_guesses", least=1)
    policy = KLScan(kappa=kappa, min_guesses=least)
    policy.check(path.guesses)
    values = checks.reals(
        checks.vector(offsets, name="offsets"), name="offsets", least=-300, most=300
    )
    checks.check_length(values, examples=path.guesses, name="offsets")
    return _core.kl_scan_offsets(
        path,
        values,
        beta=checks.real(beta, name="beta", above=0, below=1),
        kappa=policy.kappa,
        min_guesses=least,
    )
