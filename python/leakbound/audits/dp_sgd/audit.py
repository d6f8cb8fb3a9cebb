"""The audit of a watched training run with DP-SGD: membership, steps, sampling, accounting."""

import math
from dataclasses import asdict, replace

import numpy as np

from leakbound._base import shares
from leakbound._base.checks import complement, shown
from leakbound._base.formatting import number
from leakbound._base.types import Batches, FloatArray
from leakbound.audits.choices import Choices
from leakbound.audits.coins import Coins
from leakbound.audits.dp_sgd.betting import correct_guesses, largest_refuted, plan_bet
from leakbound.audits.dp_sgd.canaries import Observed
from leakbound.audits.dp_sgd.noise import audit_noise
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
from leakbound.results.words import COMPARED, DELTA
from leakbound.stats import fdp_rejects

# Audits that may refute, each at an equal share of the probability of error.
PARTS_TESTED = 3
# Relative difference of stated numbers that is put down to rounding.
_CLOSE = 1e-3


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
    stated = _accounted(accounted, observed.design.stated)
    if not observed.steps:
        raise AbstentionError(
            "no step was watched: call step() of the optimizer that was passed, in the block"
        )
    run = _Run(observed=observed, accounted=stated)
    delta = DELTA
    if stated is not None:
        delta = stated.delta
    audited = claim or (ApproxDP(delta=delta) if run.varies else run.family())
    if stated is not None:
        _check_delta(audited, stated.delta)
    # 2. Batches: can they be as stated, and if Poisson samples, at what rate at least?
    sampling = audit_batch_sizes(observed, examples=examples, confidence=confidence)
    rate = 0.0
    left = level
    source: dp_sgd.RateSource = "stated"
    sampled_at_least = observed.design.sampling_rate
    if sampling.lower_rate is not None:
        rate = shares.RATE.of(level)
        left = shares.STEPS.of(level)
        source = "lower limit"
        sampled_at_least, _ = rate_limits(
            observed.batch_sizes, examples=sampling.most_examples, confidence=1 - 2 * rate
        )
    # 3. Noise and coins of the steps; the rate has its part of the error already.
    noise, betting, game = run.steps_tests(left)
    each = shares.DP_SGD_PARTS.of(level, PARTS_TESTED)
    # 4. Who was in training, and whether any audit contradicts what was stated.
    limits = None
    if examples is not None:
        limits = list(examples)
    return dp_sgd.DPSGDAudit(
        membership=run.membership(audited, confidence),
        steps=dp_sgd.StepsResult(
            bound=min(noise.bound, betting.bound, _noise(game.bound)),
            noise_multiplier=run.least_noise,
            largest_noise_multiplier=float(run.noise.max()),
            steps=observed.steps,
            sampling_rate=sampled_at_least,
            rate_source=source,
            sampling=observed.design.sampling,
            relation=observed.design.relation,
            confidence=confidence,
            game=game,
            betting=betting,
            noise=noise,
        ),
        sampling=sampling,
        accounted=stated,
        attainable=run.attainable(),
        refuted_by=run.refuted_by(sampling, each),
        max_steps=observed.design.max_steps,
        confidence=float(confidence),
        options=asdict(observed.design)
        | {
            "examples": limits,
            "rate_level": rate,
            "joint_level": each,
        },
        warnings=tuple(run.warnings(sampling)),
    )


def _check_delta(claim: Claim, delta: float) -> None:
    """Check that a claim says something about the accountant's δ."""
    if not isinstance(claim, FAMILIES) and claim.delta != delta:
        raise OptionError(
            f"the claim is about δ = {claim.delta:g}, and the accountant's ε about "
            f"δ = {delta:g}: audit ApproxDP(delta={delta:g})"
        )
    check_epsilon_at(claim, delta)


class _Run:
    """A run, and the audits of it."""

    def __init__(self, observed: Observed, accounted: dp_sgd.Accounted | None) -> None:
        self.observed = observed
        self.design = observed.design
        self.accounted = accounted
        self.noise = observed.noise_multipliers
        self.least_noise = float(self.noise.min())
        self.planned_noise = observed.planned_noise
        self.varies = bool(np.ptp(self.noise) > 0)

    def family(self) -> GaussianDP | SubsampledGaussianDP:
        """Return that of the steps declared: the number of those taken may depend on the data."""
        return self.design.stated.family(self.design.max_steps)

    def membership(self, claim: Claim, confidence: float) -> AuditResult:
        """Audit who was in training."""
        cuts = None
        if isinstance(claim, FamilyClaim):
            # Planned from what was declared, before any coin is looked at.
            design = self.design
            expected = replace(design.stated, sampling=_of_canaries(design.sampling))
            curve = _shares(expected.attained(self.planned_noise, design.max_steps, "member"))
            level = complement(confidence)
            cuts, _ = best_fixed(
                self.design.canaries, level=level, claim=GaussianDP(), sides="both", curve=curve
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

    def steps_tests(
        self, level: float
    ) -> tuple[dp_sgd.NoiseResult, dp_sgd.BettingResult, AuditResult]:
        """Audit the noise of steps by its squares, by bets on coins, and as one game of coins."""
        design = self.design
        squares = audit_noise(self.observed, shares.NOISE.of(level))
        level = shares.COINS.of(level)
        plan = plan_bet(
            1 / self.planned_noise, coins=design.step_canaries, steps=design.max_steps, level=level
        )
        more = shares.FAVOURED.of(level)
        less = shares.OTHER.of(level)
        if plan.proves > self._game_plan(level)[1]:
            return squares, self.bets(more), self.one_game(less)
        return squares, self.bets(less), self.one_game(more)

    def bets(self, level: float) -> dp_sgd.BettingResult:
        """Bet on the coins of each step, as planned from what was declared."""
        design = self.design
        plan = plan_bet(
            1 / self.planned_noise, coins=design.step_canaries, steps=design.max_steps, level=level
        )
        correct = correct_guesses(self.observed, plan.guesses)
        return dp_sgd.BettingResult(
            bound=_noise(
                largest_refuted(plan, correct=correct, coins=design.step_canaries, level=level)
            ),
            coins=design.step_canaries,
            steps=self.observed.steps,
            guesses=plan.guesses,
            stake=plan.stake,
            correct=int(correct.sum()),
            confidence=1 - level,
        )

    def one_game(self, level: float) -> AuditResult:
        """Audit all coins of steps as one game of Gaussian DP with μ = 1/σ."""
        design = self.design
        seen = self.observed
        # Coins that were not reached are in the middle of the ranking.
        scores = np.zeros((design.max_steps, design.step_canaries))
        scores[: seen.steps] = (seen.released - 0.5) / self.noise[:, None] ** 2
        return audit(
            scores.ravel(),
            Coins(design.step_coins().ravel()),
            claim=GaussianDP(),
            confidence=1 - level,
            cuts=self._game_plan(level)[0],
            seed=design.seed,
        )

    def _game_plan(self, level: float) -> tuple[Fixed, float]:
        """Return the number of guesses for one game of all coins, and the μ that it proves."""
        curve = reference("both", mu=1 / self.planned_noise)
        return best_fixed(
            self.design.coins, level=level, claim=GaussianDP(), sides="both", curve=curve
        )

    def attainable(self) -> float | None:
        """Return the ε that tests attain of the mechanism as stated, at the accountant's δ."""
        if self.accounted is None or self.varies:
            return None
        steps = self.observed.steps + self.observed.steps_beyond
        curve = self.design.stated.attained(self.least_noise, steps)
        return float(curve.epsilon(self.accounted.delta))

    def refuted_by(self, sampling: dp_sgd.SamplingResult, share: float) -> tuple[dp_sgd.Part, ...]:
        """Return what contradicts the mechanism as stated, each audit at its share."""
        attainable = self.attainable()
        noise, betting, game = self.steps_tests(share)
        refuting: dict[dp_sgd.Part, bool] = {
            "membership": self._membership_refutes(share),
            "steps": min(noise.bound, betting.bound, _noise(game.bound)) < self.least_noise,
            "sampling": sampling.p_value <= share,
            # Of epochs, a sound accountant that takes the order to be secret may say less
            "accounting": self._is_below(attainable) and self.design.sampling != "epochs",
        }
        return tuple(part for part, wrong in refuting.items() if wrong)

    def _is_below(self, attainable: float | None) -> bool:
        """Return whether the accountant says less than what tests attain that know all batches."""
        if self.accounted is None or attainable is None:
            return False
        return self.accounted.epsilon < attainable * (1 - _CLOSE)

    def _membership_refutes(self, share: float) -> bool:
        """Test the noise multiplier that was stated, and nothing else, within the family."""
        counted = self.membership(GaussianDP(), 1 - share)
        if not counted.guesses:
            return False
        curve = self.design.stated.allowed(self.least_noise, self.design.max_steps)
        return fdp_rejects(
            counted.correct, guesses=counted.guesses, m=float(counted.m), tradeoff=curve, tau=share
        )

    def warnings(self, sampling: dp_sgd.SamplingResult) -> list[str]:
        """Say what differs from what was declared."""
        design = self.design
        seen = self.observed
        said = []
        # First what is wrong with, or unknown of, the mechanism that everything else is about
        if sampling.reason:
            said.append(f"batch sizes were not tested: {sampling.reason}")
        if sampling.refutes:
            said.append(
                f"{_NOT_AS_STATED[design.sampling]}, so the ε of the steps and of the accountant "
                "are about a different mechanism"
            )
        if seen.steps < design.max_steps:
            said.append(
                f"the run ended after {seen.steps:,} of the {design.max_steps:,} steps that were "
                "declared: coins of the other steps are not guessed, and the ε of the steps is "
                "for the shorter run, if its end did not depend on the data"
            )
        if seen.steps_beyond:
            said.append(
                f"only the first {design.max_steps:,} steps were audited, and "
                f"{seen.steps_beyond:,} more followed. The bounds are still valid; for stronger "
                "ones, set max_steps to the length of the run"
            )
        if self.varies:
            said.append(
                f"the noise multiplier varied between {self.least_noise:g} and "
                f"{float(self.noise.max()):g}: the bound of the steps is on the smallest one, and "
                "no ε follows from it"
            )
        attainable = self.attainable()
        if design.sampling == "epochs" and attainable is not None and self._is_below(attainable):
            said.append(
                f"the accountant's ε is below {number(attainable)}, which tests of these epochs "
                "attain at that δ if the attacker knows the order of the batches. It can be right "
                "only if the order is random and secret, and the accountant counts on that, which "
                "is not checked"
            )
        return said + _disagreements(self, seen.steps + seen.steps_beyond)


_NOT_AS_STATED: dict[Batches, str] = {
    "poisson": "batches are not Poisson samples at the stated rate",
    "fixed_size": "batches are not of one fixed size at the stated rate",
    "epochs": "batches are not those of epochs that have each example once",
}


def _of_canaries(sampling: Batches) -> Batches:
    """Return how canaries are drawn: into batches of fixed size each by itself."""
    if sampling == "fixed_size":
        return "poisson"
    return sampling


def _accounted(
    given: dp_sgd.Accounted | tuple[float, float] | None, run: StatedRun
) -> dp_sgd.Accounted | None:
    if isinstance(given, dp_sgd.Accounted) and given.relation != run.compares:
        raise OptionError(
            f"the accountant's guarantee is on {COMPARED[given.relation]} one example, and this "
            f"audit of DP-SGD is about {COMPARED[run.compares]} one example: pass the "
            f'accountant\'s ε for that, as Accounted(…, relation="{run.compares}")'
        )
    if given is None or isinstance(given, dp_sgd.Accounted):
        return given
    pair: object = given
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InputTypeError(
            f"accounted must be (epsilon, delta) or an Accounted, got {shown(given)}"
        )
    return dp_sgd.Accounted(epsilon=given[0], delta=given[1], relation=run.compares)


def _disagreements(run: _Run, steps: int) -> list[str]:
    """Return what the accountant was told and was not what happened."""
    accounted = run.accounted
    if accounted is None:
        return []
    pairs = (
        ("sampling rate", accounted.sampling_rate, run.design.sampling_rate, "watched at"),
        ("number of steps", accounted.steps, steps, "taken were"),
        ("noise multiplier", accounted.noise_multiplier, run.least_noise, "the optimizer had"),
    )
    return [
        f"the accountant's {name} is {told:g}, and {verb} {was:g}: its ε is about a different run"
        for name, told, was, verb in pairs
        if told is not None and abs(told - was) > _CLOSE * was
    ]


def _noise(mu: float) -> float:
    if mu:
        return 1 / mu
    return math.inf


# Levels of a test, dense near 0, and shares of the examples at which its curve is read off.
_LEVELS = np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 4000)])
_SHARES = np.geomspace(1e-8, 0.5, 4000)


def _shares(curve: TradeOff) -> tuple[FloatArray, FloatArray]:
    """Return shares of all examples guessed, and guessed right, by the best test of a curve."""
    power = 1 - np.asarray(curve.f(_LEVELS))
    missed = np.asarray(curve.f(1 - _LEVELS))
    members = np.interp(_SHARES, (_LEVELS + power) / 2, power / 2)
    others = np.interp(_SHARES, (missed + _LEVELS) / 2, _LEVELS / 2)
    return 2 * _SHARES, np.clip(members + others, _SHARES, 2 * _SHARES)
