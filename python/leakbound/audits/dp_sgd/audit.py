"""The audit of a watched training run with DP-SGD: membership, steps, sampling, accounting.

*The released noise*: its squares are too small if there is less of it than claimed. What is
released along a canary, less a prediction from all before, is Gaussian under the claim: its
standard deviation is at least the noise multiplier s, whatever its mean. So

    exp(-λ (R_1² + … + R_k²)) (1 + 2 λ s²)^(k/2)

is a nonnegative supermartingale for any λ > 0 fixed beforehand: it ever reaches 1/level with
probability at most level (Ville 1939), whenever the run ends. docs/theory/dp-sgd.md has the proof.
"""

import math
from dataclasses import asdict, replace

import numpy as np

from leakbound._base import shares
from leakbound._base.checks import complement, shown
from leakbound._base.formatting import number
from leakbound._base.types import Batches, FloatArray
from leakbound.audits.choices import Choices
from leakbound.audits.coins import Coins
from leakbound.audits.dp_sgd.betting import BetPlan, correct_guesses, largest_refuted, plan_bet
from leakbound.audits.dp_sgd.canaries import LARGEST, Observed
from leakbound.audits.dp_sgd.sampling import audit_batch_sizes, rate_limits
from leakbound.audits.policies.reference import best_fixed, reference
from leakbound.audits.road import audit
from leakbound.claims import (
    FAMILIES,
    ApproxDP,
    Claim,
    FamilyClaim,
    GaussianDP,
    SubsampledGaussianDP,
)
from leakbound.claims.families import check_epsilon_at
from leakbound.claims.tradeoff import TradeOff
from leakbound.claims.training import StatedRun
from leakbound.cuts import Fixed
from leakbound.errors import AbstentionError, InputTypeError, OptionError
from leakbound.results import AuditResult, dp_sgd
from leakbound.results.dp_sgd import NoiseResult
from leakbound.results.terms import COMPARED, DELTA
from leakbound.stats import fdp_rejects

# Relative allowance for rounding of what is released, in single precision, and of its squares.
_ROUNDING_ALLOWANCE = 1e-6
# Standard errors by which what canaries add may be short of the clipping norm.
_ALLOWED_STANDARD_ERRORS = 3.0


def audit_noise(observed: Observed, level: float) -> NoiseResult:
    """Bound the noise multiplier of some step by the squares of the released noise."""
    design = observed.design
    log_inverse_level = -math.log(level)
    step_numbers = np.arange(1, observed.steps + 1)
    # For many values 2 (evidence / values)^(1/2) is the best, of noise as planned.
    planned_values = design.size * design.max_steps
    relative_penalty = min(1.0, 2 * math.sqrt(log_inverse_level / planned_values))
    penalty = relative_penalty / (2 * observed.planned_noise**2)
    sums_of_squares = np.cumsum(observed.squares)
    with np.errstate(over="ignore"):
        penalties_of_steps = penalty * sums_of_squares * (1 + _ROUNDING_ALLOWANCE)
        log_growths = (log_inverse_level + penalties_of_steps) * 2 / (design.size * step_numbers)
        bounds_of_steps = np.sqrt(np.expm1(log_growths) / (2 * penalty))
    released_values = design.size * observed.steps
    standard_deviation = math.sqrt(float(sums_of_squares[-1]) / released_values)
    contribution, standard_error = _mean_contribution(observed)
    reason = ""
    if not contribution >= 1 - _ALLOWED_STANDARD_ERRORS * standard_error:
        reason = (
            f"canaries add {contribution:.3g} clipping norms to what is released, not 1: the scale "
            "differs from the optimizer's, or canaries were clipped with other examples"
        )
    return NoiseResult(
        bound=math.inf if reason else float(bounds_of_steps.min()),
        values=released_values,
        penalty=penalty,
        deviation=standard_deviation,
        added=contribution,
        reason=reason,
        confidence=1 - level,
    )


def _mean_contribution(observed: Observed) -> tuple[float, float]:
    """Return what step canaries add on average, in clipping norms, and its standard error."""
    step_coins = observed.design.step_coins()[: observed.steps]
    steps_included = int(np.count_nonzero(step_coins))
    if steps_included in {0, step_coins.size}:
        return 1.0, 0.0
    released_less_coins = np.clip(observed.released, -LARGEST, LARGEST) - step_coins
    mean_with = released_less_coins.mean(where=step_coins, dtype=np.float64)
    mean_without = released_less_coins.mean(where=~step_coins, dtype=np.float64)
    mean_square = (
        float(np.einsum("ij,ij->", released_less_coins, released_less_coins, dtype=np.float64))
        / step_coins.size
    )
    contribution = float(1 + mean_with - mean_without)
    steps_excluded = step_coins.size - steps_included
    standard_error = math.sqrt(mean_square / steps_included + mean_square / steps_excluded)
    return contribution, standard_error


# Audits that may refute, each at an equal share of the probability of error.
PARTS_TESTED = 3
# Relative difference of stated numbers that is put down to rounding.
_ROUNDING_TOLERANCE = 1e-3


def audit_dp_sgd(
    observed: Observed,
    *,
    accounted: dp_sgd.Accounted | tuple[float, float] | None = None,
    claim: Claim | None = None,
    confidence: float = 0.95,
    examples: tuple[int, int] | None = None,
) -> dp_sgd.DPSGDAudit:
    """Audit what a watched run showed; `examples` are the least and the most there can be."""
    # 1. What was seen, and what is claimed of it.
    level = complement(confidence)
    stated_accountant = _checked_accounted(accounted, observed.design.stated)
    if not observed.steps:
        raise AbstentionError(
            "no step was watched: call step() of the optimizer that was passed, in the block"
        )
    run = _WatchedRun(observed=observed, accounted=stated_accountant)
    delta = DELTA
    if stated_accountant is not None:
        delta = stated_accountant.delta
    audited_claim = claim or (ApproxDP(delta=delta) if run.noise_varies else run.family())
    if stated_accountant is not None:
        _check_accounted_delta(audited_claim, stated_accountant.delta)
    # 2. Batches: can they be as stated, and if Poisson samples, at what rate at least?
    sampling = audit_batch_sizes(observed, examples=examples, confidence=confidence)
    level_of_rate = 0.0
    level_of_steps = level
    rate_source: dp_sgd.RateSource = "stated"
    least_sampling_rate = observed.design.sampling_rate
    if sampling.lower_rate is not None:
        level_of_rate = shares.RATE.of(level)
        level_of_steps = shares.STEPS.of(level)
        rate_source = "lower limit"
        least_sampling_rate, _ = rate_limits(
            observed.batch_sizes, examples=sampling.most_examples, confidence=1 - 2 * level_of_rate
        )
    # 3. Noise and coins of the steps; the rate has its part of the error already.
    noise, betting, game = run.audit_steps(level_of_steps)
    level_of_part = shares.DP_SGD_PARTS.of(level, PARTS_TESTED)
    # 4. Who was in training, and whether any audit contradicts what was stated.
    limits_of_examples = None
    if examples is not None:
        limits_of_examples = list(examples)
    return dp_sgd.DPSGDAudit(
        membership=run.audit_membership(audited_claim, confidence),
        steps=dp_sgd.StepsResult(
            bound=min(noise.bound, betting.bound, _noise_multiplier_of_mu(game.bound)),
            noise_multiplier=run.least_noise_multiplier,
            largest_noise_multiplier=float(run.noise_multipliers.max()),
            steps=observed.steps,
            sampling_rate=least_sampling_rate,
            rate_source=rate_source,
            sampling=observed.design.sampling,
            relation=observed.design.relation,
            confidence=confidence,
            game=game,
            betting=betting,
            noise=noise,
        ),
        sampling=sampling,
        accounted=stated_accountant,
        attainable=run.attainable(),
        refuted_by=run.refuted_by(sampling, level_of_part),
        max_steps=observed.design.max_steps,
        confidence=float(confidence),
        options=asdict(observed.design)
        | {
            "examples": limits_of_examples,
            "rate_level": level_of_rate,
            "joint_level": level_of_part,
        },
        warnings=tuple(run.warnings(sampling)),
    )


def _check_accounted_delta(claim: Claim, delta: float) -> None:
    """Check that a claim says something about the accountant's δ."""
    if not isinstance(claim, FAMILIES) and claim.delta != delta:
        raise OptionError(
            f"the claim is about δ = {claim.delta:g}, and the accountant's ε about "
            f"δ = {delta:g}: audit ApproxDP(delta={delta:g})"
        )
    check_epsilon_at(claim, delta)


class _WatchedRun:
    """A run, and the audits of it."""

    def __init__(self, observed: Observed, accounted: dp_sgd.Accounted | None) -> None:
        self.observed = observed
        self.design = observed.design
        self.accounted = accounted
        self.noise_multipliers = observed.noise_multipliers
        self.least_noise_multiplier = float(self.noise_multipliers.min())
        self.planned_noise_multiplier = observed.planned_noise
        self.noise_varies = bool(np.ptp(self.noise_multipliers) > 0)

    def family(self) -> GaussianDP | SubsampledGaussianDP:
        """Return that of the steps declared: the number of those taken may depend on the data."""
        return self.design.stated.family(self.design.max_steps)

    def audit_membership(self, claim: Claim, confidence: float) -> AuditResult:
        """Audit who was in training."""
        cuts = None
        if isinstance(claim, FamilyClaim):
            # Planned from what was declared, before any coin is looked at.
            design = self.design
            run_of_canaries = replace(
                design.stated, sampling=_sampling_of_canaries(design.sampling)
            )
            guessed_shares = _guessed_shares(
                run_of_canaries.attained(self.planned_noise_multiplier, design.max_steps, "member")
            )
            level = complement(confidence)
            cuts, _ = best_fixed(
                self.design.canaries,
                level=level,
                claim=GaussianDP(),
                sides="both",
                curve=guessed_shares,
            )
        scores = self.observed.log_odds
        if self.design.stated.is_replaced:
            # Of each pair of opposite gradients, which one is in training
            return audit(
                np.stack([-scores, scores], axis=1),
                Choices(self.design.member().astype(np.int64), 2),
                claim=claim,
                confidence=confidence,
                cuts=cuts,
                seed=self.design.seed,
            )
        return audit(
            scores,
            Coins(self.design.member()),
            claim=claim,
            confidence=confidence,
            cuts=cuts,
            sides="both",  # noise is alike at both ends
            seed=self.design.seed,
        )

    def audit_steps(
        self, level: float
    ) -> tuple[dp_sgd.NoiseResult, dp_sgd.BettingResult, AuditResult]:
        """Audit the noise of steps by its squares, by bets on coins, and as one game of coins."""
        noise_audit = audit_noise(self.observed, shares.NOISE.of(level))
        level = shares.COINS.of(level)
        bet_plan = self._plan_bets(level)
        level_of_favoured = shares.FAVOURED.of(level)
        level_of_other = shares.OTHER.of(level)
        if bet_plan.proves > self._plan_game(level)[1]:
            return noise_audit, self.audit_bets(level_of_favoured), self.audit_game(level_of_other)
        return noise_audit, self.audit_bets(level_of_other), self.audit_game(level_of_favoured)

    def audit_bets(self, level: float) -> dp_sgd.BettingResult:
        """Bet on the coins of each step, as planned from what was declared."""
        step_canaries = self.design.step_canaries
        bet_plan = self._plan_bets(level)
        correct_of_steps = correct_guesses(self.observed, bet_plan.guesses)
        return dp_sgd.BettingResult(
            bound=_noise_multiplier_of_mu(
                largest_refuted(bet_plan, correct_of_steps, coins=step_canaries, level=level)
            ),
            coins=step_canaries,
            steps=self.observed.steps,
            guesses=bet_plan.guesses,
            stake=bet_plan.stake,
            correct=int(correct_of_steps.sum()),
            confidence=1 - level,
        )

    def _plan_bets(self, level: float) -> BetPlan:
        """Return the guesses and the stake for the coins of each step."""
        return plan_bet(
            1 / self.planned_noise_multiplier,
            coins=self.design.step_canaries,
            steps=self.design.max_steps,
            level=level,
        )

    def audit_game(self, level: float) -> AuditResult:
        """Audit all coins of steps as one game of Gaussian DP with μ = 1/σ."""
        design = self.design
        observed = self.observed
        # Coins that were not reached are in the middle of the ranking.
        scores = np.zeros((design.max_steps, design.step_canaries))
        scores[: observed.steps] = (observed.released - 0.5) / self.noise_multipliers[:, None] ** 2
        return audit(
            scores.ravel(),
            Coins(design.step_coins().ravel()),
            claim=GaussianDP(),
            confidence=1 - level,
            cuts=self._plan_game(level)[0],
            seed=design.seed,
        )

    def _plan_game(self, level: float) -> tuple[Fixed, float]:
        """Return the number of guesses for one game of all coins, and the μ that it proves."""
        expected_shares = reference("both", mu=1 / self.planned_noise_multiplier)
        return best_fixed(
            self.design.coins, level=level, claim=GaussianDP(), sides="both", curve=expected_shares
        )

    def attainable(self) -> float | None:
        """Return the ε that tests attain of the mechanism as stated, at the accountant's δ."""
        if self.accounted is None or self.noise_varies:
            return None
        steps = self.observed.steps + self.observed.steps_beyond
        curve = self.design.stated.attained(self.least_noise_multiplier, steps)
        return float(curve.epsilon(self.accounted.delta))

    def refuted_by(self, sampling: dp_sgd.SamplingResult, level: float) -> tuple[dp_sgd.Part, ...]:
        """Return what contradicts the mechanism as stated, each audit at its share."""
        attainable = self.attainable()
        noise, betting, game = self.audit_steps(level)
        contradictions: dict[dp_sgd.Part, bool] = {
            "membership": self._membership_is_refuted(level),
            "steps": min(noise.bound, betting.bound, _noise_multiplier_of_mu(game.bound))
            < self.least_noise_multiplier,
            "sampling": sampling.p_value <= level,
            # Of epochs, a sound accountant that takes the order to be secret may say less
            "accounting": self._accountant_understates(attainable)
            and self.design.sampling != "epochs",
        }
        return tuple(part for part, is_contradicted in contradictions.items() if is_contradicted)

    def _accountant_understates(self, attainable: float | None) -> bool:
        """Return whether the accountant says less than what tests attain that know all batches."""
        if self.accounted is None or attainable is None:
            return False
        return self.accounted.epsilon < attainable * (1 - _ROUNDING_TOLERANCE)

    def _membership_is_refuted(self, level: float) -> bool:
        """Test the noise multiplier that was stated, and nothing else, within the family."""
        membership = self.audit_membership(GaussianDP(), 1 - level)
        if not membership.guesses:
            return False
        curve = self.design.stated.allowed(self.least_noise_multiplier, self.design.max_steps)
        return fdp_rejects(
            membership.correct,
            guesses=membership.guesses,
            m=float(membership.m),
            tradeoff=curve,
            tau=level,
        )

    def warnings(self, sampling: dp_sgd.SamplingResult) -> list[str]:
        """Say what differs from what was declared."""
        design = self.design
        observed = self.observed
        warnings = []
        # First what is wrong with, or unknown of, the mechanism that everything else is about
        if sampling.reason:
            warnings.append(f"batch sizes were not tested: {sampling.reason}")
        if sampling.refutes:
            warnings.append(
                f"{_NOT_AS_STATED[design.sampling]}, so the ε of the steps and of the accountant "
                "are about a different mechanism"
            )
        if observed.steps < design.max_steps:
            warnings.append(
                f"the run ended after {observed.steps:,} of the {design.max_steps:,} steps that "
                "were declared: coins of the other steps are not guessed, and the ε of the steps "
                "is for the shorter run, if its end did not depend on the data"
            )
        if observed.steps_beyond:
            warnings.append(
                f"only the first {design.max_steps:,} steps were audited, and "
                f"{observed.steps_beyond:,} more followed. The bounds are still valid; for "
                "stronger ones, set max_steps to the length of the run"
            )
        if self.noise_varies:
            warnings.append(
                f"the noise multiplier varied between {self.least_noise_multiplier:g} and "
                f"{float(self.noise_multipliers.max()):g}: the bound of the steps is on the "
                "smallest one, and no ε follows from it"
            )
        attainable = self.attainable()
        if (
            design.sampling == "epochs"
            and attainable is not None
            and self._accountant_understates(attainable)
        ):
            warnings.append(
                f"the accountant's ε is below {number(attainable)}, which tests of these epochs "
                "attain at that δ if the attacker knows the order of the batches. It can be right "
                "only if the order is random and secret, and the accountant counts on that, which "
                "is not checked"
            )
        return warnings + _disagreements_with_accountant(
            self, observed.steps + observed.steps_beyond
        )


_NOT_AS_STATED: dict[Batches, str] = {
    "poisson": "batches are not Poisson samples at the stated rate",
    "fixed_size": "batches are not of one fixed size at the stated rate",
    "epochs": "batches are not those of epochs that have each example once",
}


def _sampling_of_canaries(sampling: Batches) -> Batches:
    """Return how canaries are drawn: into batches of fixed size each by itself."""
    if sampling == "fixed_size":
        return "poisson"
    return sampling


def _checked_accounted(
    accounted: dp_sgd.Accounted | tuple[float, float] | None, run: StatedRun
) -> dp_sgd.Accounted | None:
    if isinstance(accounted, dp_sgd.Accounted) and accounted.relation != run.compares:
        raise OptionError(
            f"the accountant's guarantee is on {COMPARED[accounted.relation]} one example, and "
            f"this audit of DP-SGD is about {COMPARED[run.compares]} one example: pass the "
            f'accountant\'s ε for that, as Accounted(…, relation="{run.compares}")'
        )
    if accounted is None or isinstance(accounted, dp_sgd.Accounted):
        return accounted
    unchecked: object = accounted
    if not isinstance(unchecked, tuple | list) or len(unchecked) != 2:
        raise InputTypeError(
            f"accounted must be (epsilon, delta) or an Accounted, got {shown(accounted)}"
        )
    return dp_sgd.Accounted(epsilon=accounted[0], delta=accounted[1], relation=run.compares)


def _disagreements_with_accountant(run: _WatchedRun, steps: int) -> list[str]:
    """Return what the accountant was told and was not what happened."""
    accounted = run.accounted
    if accounted is None:
        return []
    comparisons = (
        ("sampling rate", accounted.sampling_rate, run.design.sampling_rate, "watched at"),
        ("number of steps", accounted.steps, steps, "taken were"),
        (
            "noise multiplier",
            accounted.noise_multiplier,
            run.least_noise_multiplier,
            "the optimizer had",
        ),
    )
    disagreements = []
    for name, accounted_value, actual_value, verb in comparisons:
        if accounted_value is None:
            continue
        if abs(accounted_value - actual_value) > _ROUNDING_TOLERANCE * actual_value:
            disagreements.append(
                f"the accountant's {name} is {accounted_value:g}, and {verb} {actual_value:g}: its "
                "ε is about a different run"
            )
    return disagreements


def _noise_multiplier_of_mu(mu: float) -> float:
    if mu:
        return 1 / mu
    return math.inf


# Levels of a test, dense near 0, and shares of the examples at which its curve is read off.
_TEST_LEVELS = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 4000)])
_GUESSED_SHARES = np.geomspace(1e-8, 0.5, 4000)


def _guessed_shares(curve: TradeOff) -> tuple[FloatArray, FloatArray]:
    """Return shares of all examples guessed, and guessed right, by the best test of a curve."""
    power = 1 - np.asarray(curve.f(_TEST_LEVELS))
    missed_members = np.asarray(curve.f(1 - _TEST_LEVELS))
    members_guessed = (_TEST_LEVELS + power) / 2
    others_guessed = (missed_members + _TEST_LEVELS) / 2
    members_correct = np.interp(_GUESSED_SHARES, members_guessed, power / 2)
    others_correct = np.interp(_GUESSED_SHARES, others_guessed, _TEST_LEVELS / 2)
    guessed = 2 * _GUESSED_SHARES
    return guessed, np.clip(members_correct + others_correct, _GUESSED_SHARES, guessed)
