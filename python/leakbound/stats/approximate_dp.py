"""(ε, δ)-differential privacy at one number of guesses."""

import math

import leakbound._core as _core
from leakbound._base.checks import choice, flag, integer, real
from leakbound._base.types import CountOptions, TailBound, TailOptions
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
    counts = read_counts(correct, guesses, m, k, one_sided=one_sided)
    options = _options(counts, delta, bound)
    claimed = real(epsilon, "epsilon", least=0, below=math.inf)
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
    counts = read_counts(correct, guesses, m, k, one_sided=one_sided)
    options, level = _options(counts, delta, bound), real(beta, "beta", above=0, below=1)
    return _core.approx_epsilon(counts["correct"], counts["guesses"], level, options)


def read_counts(correct: int, guesses: int, m: float, k: int, *, one_sided: bool) -> CountOptions:
    """Check counts of guesses about examples of k values."""
    made = integer(guesses, "guesses", least=1, most=_MOST)
    members_only = flag(one_sided, "one_sided")
    if integer(k, "k", least=2, most=_MOST) > 2 and members_only:
        raise OptionError(
            f"one_sided=True is for membership, k=2, got k={k}: leave it out, or set k=2"
        )
    return {
        "correct": integer(correct, "correct", least=0, most=made),
        "guesses": made,
        "m": real(m, "m", above=0, below=math.inf),
        "k": k,
        "one_sided": members_only,
    }


def _options(counts: CountOptions, delta: float, bound: TailBound) -> TailOptions:
    choice(bound, "bound", TailBound)
    if counts["k"] > 2 and bound != "exact":
        raise OptionError(f'bound="{bound}" is for membership, k=2, got k={counts["k"]}: set k=2')
    return {
        "bound": bound,
        "m": counts["m"],
        "delta": real(delta, "delta", least=0, below=1),
        "k": counts["k"],
        "one_sided": counts["one_sided"],
    }
