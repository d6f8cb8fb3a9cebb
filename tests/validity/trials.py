"""Trials: one game, one audit, and whether it claimed more than the truth."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import leakbound as lb
from leakbound._base.numerics import expit
from leakbound._base.types import FloatArray, SidesChoice
from leakbound.audits.designs import audit_of
from leakbound.claims import FAMILIES, ApproxDP, Claim, PureDP
from leakbound.cuts import CutPolicy, Fixed, KLScan, UnionBound
from leakbound.errors import AbstentionError, DesignError
from leakbound.propensity import LogisticPropensity, PropensityFit
from leakbound.results import AuditResult, PanoramiaResult, ZeroRunResult
from validity.games import Audited, Play, Rankings, two_rankings
from validity.shifted import ShiftedGame, ShiftedPlay
from validity.streams import logit

__all__ = ["ERROR", "Cautious", "OneRun", "Panoramia", "Stream", "ZeroRun", "pure_policies"]

ERROR = 0.1
"""Share of false claims that audits may make, unless a row says otherwise."""
_SMALL_DELTA = 1e-5
"""δ at which curves of a family are compared with the truth."""


def pure_policies(m: int) -> dict[str, CutPolicy]:
    """Return the policies that a pure claim is tried with, by name."""
    return {
        "kl": KLScan(),
        "union": UnionBound(),
        "geometric": UnionBound(grid="geometric"),
        "hoeffding": UnionBound(tail="hoeffding"),
        "fixed": Fixed(m // 2),
    }


@dataclass(frozen=True)
class OneRun:
    """Whether an audit of one run claims more than the truth, at the claim's δ or a small one."""

    play: Play
    claim: Claim
    options: dict[str, Any] = field(default_factory=dict)
    error: float = ERROR
    design: str = "coins"

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        game, result = self.outcome(seed)
        delta = _SMALL_DELTA if isinstance(self.claim, FAMILIES) else self.claim.delta
        return result.epsilon(delta) > game.epsilon(delta)

    def outcome(self, seed: int) -> tuple[Audited, AuditResult]:
        """Return the game of a seed and the result of its audit."""
        game = self.play(seed=2 * seed)
        result = audit_of(
            self.design,
            game.scores,
            member=game.member,
            claim=self.claim,
            confidence=1 - self.error,
            seed=2 * seed + 1,
            **self.options,
        )
        return game, result


@dataclass(frozen=True)
class Cautious:
    """A trial whose audit may say that there is nothing to conclude from, and claims nothing."""

    trial: Callable[[int], bool]

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        try:
            return self.trial(seed)
        except (AbstentionError, DesignError):
            return False


@dataclass(frozen=True)
class Stream:
    """Whether a stream's bound is above the truth at any time: after any of its batches."""

    play: Play
    sides: SidesChoice
    batches: int = 8
    error: float = ERROR
    claim: Claim = PureDP()  # noqa: RUF009 (frozen)
    truth: float | None = None
    """The claim's parameter, if it is not what the game says."""

    def __call__(self, seed: int) -> bool:
        """Play the batches of a seed, and look after each."""
        stream = lb.Stream(claim=self.claim, confidence=1 - self.error, sides=self.sides)
        for number in range(self.batches):
            batch = self.play(seed=self.batches * seed + number)
            truth = batch.epsilon(self.claim.delta) if self.truth is None else self.truth
            if stream.update(batch.scores, batch.member).bound > truth:
                return True
        return False


@dataclass(frozen=True)
class Panoramia:
    """Whether a PANORAMIA audit claims too much: about ε or, if None, about c or c + ε."""

    baseline: float
    attack: float
    epsilon: float | None
    options: dict[str, Any]
    error: float = ERROR

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        _, result = self.outcome(seed)
        if self.epsilon is not None:
            return result.bound > self.epsilon
        return bool(
            result.c_lb > logit(self.baseline) or result.c_plus_epsilon_lb > logit(self.attack)
        )

    def outcome(self, seed: int) -> tuple[Rankings, PanoramiaResult]:
        """Return the rankings of a seed and the result of comparing them."""
        game = two_rankings(150, self.baseline, self.attack, 2 * seed)
        baseline, scores, member = game
        how: dict[str, Any] = {"confidence": 1 - self.error, "seed": 2 * seed + 1, **self.options}
        delta = how.pop("delta", 0.0)
        how |= {"claim": ApproxDP(delta=delta)} if delta else {}
        result = audit_of("panoramia", scores, member=member, baseline=baseline, **how)
        return game, result


@dataclass(frozen=True)
class ZeroRun:
    """Whether a Zero-Run audit claims more than the truth."""

    play: ShiftedPlay
    claim: Claim
    options: dict[str, Any]
    replicates: int = 0
    platt: bool = True
    over_set: bool = False
    error: float = ERROR

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        game, result = self.outcome(seed)
        return bool(result.bound > game.truth)

    def outcome(self, seed: int) -> tuple[ShiftedGame, ZeroRunResult]:
        """Return the game of a seed and the result of its audit."""
        game = self.play(seed=2 * seed)
        propensity: FloatArray | PropensityFit = game.propensity
        options = self.options
        if self.replicates:
            propensity = self._learnt(game, 2 * seed + 1)
        elif self.over_set:
            held_out = game.holdout_features, game.holdout_member
            propensity = LogisticPropensity().fit(*held_out, seed=2 * seed + 1)
            options = options | {"features": game.features, "falsify": False}
        result = audit_of(
            "zero_run",
            game.scores,
            member=game.member,
            propensity=propensity,
            claim=self.claim,
            confidence=1 - self.error,
            seed=2 * seed + 1,
            **options,
        )
        return game, result

    def _learnt(self, game: ShiftedGame, seed: int) -> FloatArray:
        """Return replicates of propensities learnt from the examples that are held out."""
        model = LogisticPropensity(calibration="platt" if self.platt else None)
        fit = model.fit(game.holdout_features, game.holdout_member, seed=seed)
        draws = fit.bootstrap(game.features, K=self.replicates, seed=seed % 2**63)
        return expit(draws)
