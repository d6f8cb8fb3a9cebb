"""f-differential privacy at one number of guesses."""

import leakbound._core as _core
from leakbound._base.checks import choice, instance, integer, real
from leakbound._base.types import CountOptions, FdpTest
from leakbound.claims import FAMILIES, AnyFamily, FamilyClaim
from leakbound.claims.tradeoff import TradeOff
from leakbound.errors import OptionError
from leakbound.stats.approximate_dp import read_counts

# The recursion takes steps as the square root of the guesses
_MOST = FamilyClaim.most_guesses


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
    counts = _counts(correct, guesses, m, k, one_sided=one_sided)
    choice(test, "test", FdpTest)
    return _core.fdp_rejects(
        counts, _tested(tradeoff, counts).core, real(tau, "tau", above=0, below=1), test
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
    counts = _counts(correct, guesses, m, k, one_sided=one_sided)
    choice(test, "test", FdpTest)
    return _core.fdp_p_value(counts, _tested(tradeoff, counts).core, test)


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
    counts = _counts(correct, guesses, m, k, one_sided=one_sided)
    instance(claim, "claim", FAMILIES)
    choice(test, "test", FdpTest)
    return claim.critical(counts, real(tau, "tau", above=0, below=1), test) or 0.0


def _tested(tradeoff: TradeOff, counts: CountOptions) -> TradeOff:
    """Return the curve that bounds the guesses: both orders of the two, where both are guessed."""
    instance(tradeoff, "tradeoff", TradeOff)
    both = counts["k"] == 2 and not counts["one_sided"]
    return tradeoff.symmetrized() if both else tradeoff


def _counts(correct: int, guesses: int, m: float, k: int, *, one_sided: bool) -> CountOptions:
    made = integer(guesses, "guesses", least=1)
    if made > _MOST:
        raise OptionError(
            f"guesses must be at most {_MOST} under f-DP, got {made}: fix fewer guesses in "
            "advance, for example about a random part of the examples"
        )
    return read_counts(correct, made, m, k, one_sided=one_sided)
