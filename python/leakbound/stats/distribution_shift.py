"""Zero-Run corrections one by one: what distribution shift alone explains is taken out of guesses.

Members and non-members are given, not drawn: λᵢ = ln(πᵢ/(1 - πᵢ)) is the log-odds of membership
given the features of example i alone.
"""

import math
import sys
from bisect import bisect_left
from decimal import Decimal
from typing import Literal, TypeAlias

import numpy as np

import leakbound._core as _core
from leakbound._base import checks
from leakbound._base.alignment import ExampleOrder
from leakbound._base.numerics import expit
from leakbound._base.types import ArrayInput, BoolArray, FdpTest, FloatArray, HasMember
from leakbound.claims import ApproxDP, GaussianDP, PureDP
from leakbound.errors import AbstentionError, OptionError
from leakbound.stats.guesses import fdp_lower_bound, one_run_epsilon

TamperVariant: TypeAlias = Literal["directional", "paper"]

# Numbers beyond are scaled before they are squared
_LARGEST_SQUARED = 1e100
# Floor of the variance of residual scores, for scores without noise
_LEAST_VARIANCE = 1e-9


def match(member: ArrayInput | HasMember, log_odds: ArrayInput, uniforms: ArrayInput) -> BoolArray:
    """Draw which examples to keep so that the membership of each is a fair coin.

    A member is kept with probability min(1, e^-λ), a non-member with probability min(1, e^λ). Since
    π e^-λ = 1 - π, both outcomes of a kept example are equally likely: given features and the flags
    returned, the membership of the kept examples is independent and fair, as in an audit of one
    run.

    Parameters
    ----------
    member : array-like of shape (m,), or InclusionPlan
        Booleans, {0, 1} or {-1, +1}.
    log_odds : array-like, shape (m,)
        λᵢ, in nats; ±inf allowed.
    uniforms : array-like, shape (m,)
        Independent uniform numbers in [0, 1], drawn without a look at membership.

    Examples
    --------
    >>> match([True, True, False], [-1.0, 1.0, 1.0], [0.9, 0.9, 0.9]).tolist()
    [True, False, True]
    """
    order = ExampleOrder()
    placed_log_odds = _placed_log_odds(order, log_odds)
    is_member = order.member(member, placed_log_odds.size)
    uniform_numbers = checks.numbers(
        checks.vector(uniforms, name="uniforms"),
        name="uniforms",
        least=0,
        most=1,
    )
    checks.check_length(uniform_numbers, examples=placed_log_odds.size, name="uniforms")
    log_odds_of_other_class = np.where(is_member, -placed_log_odds, placed_log_odds)
    matching_probabilities = np.exp(np.minimum(0.0, log_odds_of_other_class))
    is_matched: BoolArray = uniform_numbers < matching_probabilities
    return is_matched


def tamper_probability(
    guesses: ArrayInput,
    log_odds: ArrayInput,
    *,
    variant: TamperVariant = "directional",
    epsilon: float | None = None,
) -> FloatArray:
    """Return the probability bᵢ with which each guess may stand, whatever the shift.

    Parameters
    ----------
    guesses : array-like of int, shape (m,)
        Tᵢ: +1 for member, -1 for non-member, 0 for none.
    log_odds : array-like, shape (m,)
        λᵢ, in nats; ±inf allowed.
    variant : {"directional", "paper"}
        With sᵢ = max(0, Tᵢλᵢ) for "directional" and |λᵢ| for "paper", bᵢ is
        (1 + e^(-ε-sᵢ)) / (1 + e^-ε); but e^-|λᵢ| for "paper" without `epsilon`.
    epsilon : float, optional
        ε of the pure or approximate claim that is tested, at least 0. None for f-DP, where bᵢ must
        not depend on the parameter: then ε = 0 in the formula.

    Notes
    -----
    "directional" without `epsilon` is min(1, 1 / (2 P(Sᵢ = Tᵢ | Xᵢ))), the largest that is valid
    for every f: see docs/theory/zero-run.md. Under pure DP P(Sᵢ = Tᵢ) ≤ σ(ε + Tᵢλᵢ), so that
    a guess stands and is right with probability σ(ε) at most. "paper" is Theorem 5.1 of "Privacy
    auditing with zero (0) training run" (Cebere, Even, Bleistein and Bellet).

    Examples
    --------
    >>> tamper_probability([1, -1], [1.0, 1.0]).round(4).tolist()
    [0.6839, 1.0]
    """
    order = ExampleOrder()
    placed_guesses = checks.vector(order.placed(guesses, "guesses"), name="guesses")
    signs = checks.numbers(placed_guesses, name="guesses", least=-1, most=1, whole=True)
    placed_log_odds = _placed_log_odds(order, log_odds)
    checks.check_length(signs, examples=placed_log_odds.size, name="guesses")
    checks.choice(variant, name="variant", allowed=TamperVariant)
    tested_epsilon = np.zeros(())
    if epsilon is not None:
        tested_epsilon = np.array(checks.real(epsilon, name="epsilon", least=0))
    absolute_log_odds = np.abs(placed_log_odds)
    if variant == "directional":
        favours_guess = np.sign(placed_log_odds) == signs
        return survival(np.where(favours_guess, absolute_log_odds, 0.0), tested_epsilon)
    if epsilon is None:
        return np.exp(-absolute_log_odds)
    return survival(absolute_log_odds, tested_epsilon)


def survival(excess: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Return (1 + e^(-ε-s)) / (1 + e^-ε)."""
    survival_probabilities: FloatArray = (1.0 + np.exp(-epsilon - excess)) / (
        1.0 + np.exp(-epsilon)
    )
    return survival_probabilities


def surviving_guesses(probabilities: FloatArray, share: float) -> int:
    """Return how many guesses survive tampering in at least a share of all draws.

    The largest v with P(V ≥ v) ≥ share, V the number of guesses that survive, each independently
    with its probability.
    """

    def too_many(survivors: int) -> bool:
        tails, _, _ = _core.poisson_binomial_tail(
            probabilities,
            np.array([survivors], dtype=np.int64),
            np.zeros(1),
            counts=None,
            offsets=False,
        )
        # a tail may come out 1e-15 too small
        return bool(tails[0] < share - 1e-14)

    # The tail falls with v. Position k has the number k + 1, and too many begin at the result.
    numbers_of_survivors = range(1, probabilities.size + 1)
    return bisect_left(numbers_of_survivors, 1, key=too_many)


def residual_scores(
    scores: ArrayInput, log_odds: ArrayInput, *, prior: float | None = None
) -> FloatArray:
    """Return what scores say about membership beyond what the features say: a log-likelihood ratio.

    That is (e - ½) / s², e the residual of Y on [1, λ], fitted by least squares to Y - π, and s²
    its variance within a class, at least 1e-9: of the model Y = α + βλ + A + noise, A ~
    Bernoulli(π). No membership is looked at.

    Parameters
    ----------
    scores : array-like, shape (m,)
        Yᵢ, higher for likelier members; ±inf allowed and left as they are.
    log_odds : array-like, shape (m,)
        λᵢ, finite, in nats; where they are constant the intercept alone is fitted.
    prior : float, optional
        Probability of membership of every example, in (0, 1), such as 1/2 after `match`; if None,
        πᵢ of the log-odds.

    Examples
    --------
    >>> int(residual_scores([0.0, 1.0, 2.0, 4.0], [0.0, 1.0, 2.0, 3.0], prior=0.5).argmax())
    3
    """
    order = ExampleOrder()
    placed_scores = checks.check_scores(order.placed(scores, "scores"))
    placed_log_odds = _placed_log_odds(order, log_odds)
    checks.numbers(placed_log_odds, name="log_odds", least=-1e300, most=1e300)
    checks.check_length(placed_log_odds, examples=placed_scores.size, name="log_odds")
    propensities = expit(placed_log_odds)
    if prior is not None:
        propensities.fill(checks.real(prior, name="prior", above=0, below=1))
    is_finite_score = np.isfinite(placed_scores)
    if not is_finite_score.any():
        raise AbstentionError(
            "no score is finite, so there is nothing to fit: use a score of finite values"
        )
    fitted_rows: BoolArray | slice = is_finite_score
    if is_finite_score.all():
        fitted_rows = slice(None)  # a view: at a million examples copies take longer than the fit
    # In units in which no square overflows; the unit is 1 for any but enormous scores.
    unit_of_scores = _unit_without_overflow(placed_scores[fitted_rows])
    scaled_scores = placed_scores / unit_of_scores
    scaled_propensities = propensities / unit_of_scores
    scaled_log_odds = placed_log_odds / _unit_without_overflow(placed_log_odds)
    # The fit is to Y - π, so that no membership is looked at; its residual is about Y.
    fitted_scores = _least_squares_line(
        scaled_log_odds, y=scaled_scores - scaled_propensities, fitted_rows=fitted_rows
    )
    residuals = scaled_scores - fitted_scores
    mean_square = np.mean((residuals - scaled_propensities)[fitted_rows] ** 2)
    bernoulli_variances = scaled_propensities * (1 / unit_of_scores - scaled_propensities)
    residual_variance = float(mean_square - np.mean(bernoulli_variances[fitted_rows]))
    least_variance = max(_LEAST_VARIANCE / unit_of_scores / unit_of_scores, sys.float_info.min)
    centred_residuals = residuals - 0.5 / unit_of_scores
    return centred_residuals / max(least_variance, residual_variance) / unit_of_scores


def _unit_without_overflow(values: FloatArray) -> float:
    """Return the largest size of some numbers if their squares may overflow, else 1."""
    largest_size = float(np.abs(values).max())
    if largest_size > _LARGEST_SQUARED:
        return largest_size
    return 1.0


def _least_squares_line(x: FloatArray, y: FloatArray, fitted_rows: BoolArray | slice) -> FloatArray:
    """Return the least-squares line of y on x, a constant where x is constant."""
    mean_x = x[fitted_rows].mean()
    mean_y = y[fitted_rows].mean()
    centred_x = x[fitted_rows] - mean_x
    if np.ptp(centred_x) < 1e-12:
        return np.full(x.size, mean_y)
    sum_of_products = np.dot(centred_x, y[fitted_rows] - mean_y)
    slope = sum_of_products / np.dot(centred_x, centred_x)
    least_squares_line: FloatArray = mean_y + slope * (x - mean_x)
    return least_squares_line


def _placed_log_odds(order: ExampleOrder, log_odds: ArrayInput) -> FloatArray:
    """Read log-odds of the examples, none of them NaN, in their order."""
    placed_log_odds = checks.vector(order.placed(log_odds, "log_odds"), name="log_odds")
    return checks.reals(placed_log_odds, name="log_odds")


def bootstrap_quantile(values: ArrayInput, *, p: float) -> float:
    """Return a lower bound from bootstrapped bounds: the ⌊p (K + 1)⌋-th smallest of K.

    If a further refit is exchangeable with those that gave the K `values`, it is below the k-th
    smallest of them with probability at most k/(K + 1). Raises OptionError if not even the least is
    that percentile.

    Parameters
    ----------
    values : array-like, shape (K,)
        One bound for each resample; ±inf allowed.
    p : float
        Share of the error probability that the bootstrap takes, in (0, 1).

    Examples
    --------
    >>> bootstrap_quantile(range(600), p=0.025)
    14.0
    """
    bootstrapped_bounds = checks.check_scores(values, name="values")
    share_of_error = checks.real(p, name="p", above=0, below=1)
    rank = bootstrap_rank(bootstrapped_bounds.size, share_of_error)
    return float(np.partition(bootstrapped_bounds, rank - 1)[rank - 1])


def bootstrap_rank(size: int, p: float) -> int:
    """Return the rank, from 1 upwards, of the percentile of so many bootstrapped bounds."""
    # p as it is written: ⌊0.29 · 100⌋ of doubles is 28
    exact_p = Decimal(repr(p))
    rank_of_percentile = int(exact_p * (size + 1))
    if rank_of_percentile == 0:
        resamples_needed = math.ceil(1 / exact_p) - 1
        raise OptionError(
            f"p = {p:g} needs at least {resamples_needed} bootstrap resamples, got {size}"
        )
    return rank_of_percentile


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
    checks.instance(claim, name="claim", types=(PureDP, ApproxDP, GaussianDP))
    failures_of_features = checks.real(delta_ds, name="delta_ds", least=0, below=1)
    if (epsilon_ds is None) == (mu_ds is None):
        raise OptionError("give either epsilon_ds or mu_ds, the worst leakage of features")
    # Either may fail: the model, or the limit on what features say.
    delta = 1 - (1 - claim.delta) * (1 - failures_of_features)
    if isinstance(claim, GaussianDP):
        joint_mu = fdp_lower_bound(
            correct,
            guesses=guesses,
            m=m,
            claim=GaussianDP(delta=delta),
            tau=tau,
            test=test,
        )
        if epsilon_ds is not None:
            return _remaining_mu(joint_mu, shift_mu(epsilon_ds))
        return _remaining_mu(joint_mu, checks.real(mu_ds, name="mu_ds", least=0))
    if epsilon_ds is None:
        raise OptionError(f"mu_ds is for GaussianDP(), got {claim!r}: give epsilon_ds")
    joint_epsilon = one_run_epsilon(correct, guesses=guesses, m=m, delta=delta, beta=tau)
    epsilon_of_features = checks.real(epsilon_ds, name="epsilon_ds", least=0)
    return remaining_leakage(joint_epsilon, epsilon_ds=epsilon_of_features, claim=claim)


def remaining_leakage(together: float, epsilon_ds: float, claim: ComposableClaim) -> float:
    """Take the leakage of features off that of features and model."""
    if isinstance(claim, GaussianDP):
        return _remaining_mu(together, shift_mu(epsilon_ds))
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
    epsilon = checks.real(epsilon_ds, name="epsilon_ds", least=0)
    if epsilon == 0:
        return 0.0
    if epsilon > 700:
        return math.inf
    # the chance of a wrong guess, as that of a right one rounds to 1
    odds_of_wrong_guess = math.exp(-epsilon)
    probability_of_wrong_guess = odds_of_wrong_guess / (1 + odds_of_wrong_guess)
    (normal_quantile,) = _core.normal_quantile(np.array([probability_of_wrong_guess]))
    return float(-2 * normal_quantile * (1 + 1e-15))


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
    tested_epsilon = checks.real(epsilon, name="epsilon", least=0)
    order = ExampleOrder()
    placed_log_odds = _placed_log_odds(order, log_odds)
    is_member = order.member(member, placed_log_odds.size)
    privacy_losses = np.where(is_member, placed_log_odds, -placed_log_odds)
    exceeds_epsilon = privacy_losses > tested_epsilon  # by cases: inf - inf is NaN
    epsilon_minus_loss = np.subtract(
        tested_epsilon,
        privacy_losses,
        out=np.zeros(privacy_losses.size),
        where=exceeds_epsilon,
    )
    hockey_stick = -np.expm1(epsilon_minus_loss)
    deltas_of_classes = list[float]()
    for is_in_class in (is_member, ~is_member):
        if is_in_class.any():
            deltas_of_classes.append(float(hockey_stick[is_in_class].mean()))
    return max(deltas_of_classes)


def _remaining_mu(joint_mu: float, mu_of_features: float) -> float:
    """Return √(μ² - μ_DS²), or 0: μ composes by squares."""
    if joint_mu <= mu_of_features:
        return 0.0
    return math.sqrt((joint_mu - mu_of_features) * (joint_mu + mu_of_features))
