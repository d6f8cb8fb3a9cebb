"""Rows of scores with few values and of few examples, for every audit and policy."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from leakbound._base.types import BoolArray, FloatArray, SidesChoice
from leakbound.audits import Stream
from leakbound.audits.designs import audit_of
from leakbound.claims import ApproxDP, Claim, GaussianDP, PureDP
from leakbound.cuts import CutPolicy, Fixed, KLScan, UnionBound
from validity.games import Played
from validity.lengths import COSTLY, DEAR, MODERATE
from validity.streams import logit, stream
from validity.suite import Case
from validity.trials import ERROR, Cautious, OneRun

__all__ = ["Coarse", "CoarsePairs", "CoarseStream", "coarse_cases"]

_SIDES: tuple[SidesChoice, ...] = ("both", "member")
_DELTA = 0.01

Values: TypeAlias = Literal["2", "3", "4", "all but one"]
"""How many values scores have, or that one example is alone and all others share theirs."""

_VALUES: tuple[Values, ...] = ("2", "3", "all but one")
_FEW = (2, 5, 10, 20)
"""Numbers of examples that are few."""


def _coarse(report: FloatArray, values: Values, rng: np.random.Generator) -> FloatArray:
    """Return scores of few values that know the signs of the reports, as far as they can."""
    if values == "all but one":
        return np.where(np.arange(report.size) == 0, report, 0.0)
    sizes = {"2": [1.0], "3": [0.0, 1.0, 1.0], "4": [1.0, 2.0]}[values]
    return np.asarray(report * rng.choice(sizes, size=report.size))


@dataclass(frozen=True, kw_only=True)
class Coarse:
    """Randomised response about coins, by scores of few values."""

    m: int
    values: Values
    epsilon: float = 0.0
    prior: float = 0.5
    told: float = 0.0

    def __call__(self, *, seed: int) -> Played:
        """Play the game of a seed."""
        rng = stream("coarse-reports", seed)
        member = rng.random(self.m) < self.prior
        right = rng.random(self.m) < 1 / (1 + np.exp(-self.epsilon))
        right |= rng.random(self.m) < self.told
        report = np.where(member == right, 1.0, -1.0)
        return Played(_coarse(report, self.values, rng), member, self.epsilon)


@dataclass(frozen=True)
class CoarsePairs:
    """Whether PANORAMIA claims too much of c, c + ε or, if certified, ε, from coarse scores."""

    m: int
    values: Values
    baseline: float
    attack: float
    missed: float = 0.0
    failure: float = 0.0
    epsilon: float | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        rng = stream("coarse-pairs", seed)
        member = rng.random(self.m) < 0.5
        missed = member & (rng.random(self.m) < self.missed)
        told = missed | (member & (rng.random(self.m) < self.failure))
        baseline = self._scores(rng, member, self.baseline, missed)
        result = audit_of(
            "panoramia",
            self._scores(rng, member, self.attack, told),
            member=member,
            baseline=baseline,
            confidence=1 - ERROR,
            seed=2 * seed + 1,
            **self.options,
        )
        if self.epsilon is not None:
            return bool(result.bound > self.epsilon)
        return bool(
            result.c_lb > logit(self.baseline) or result.c_plus_epsilon_lb > logit(self.attack)
        )

    def _scores(
        self, rng: np.random.Generator, member: BoolArray, p: float, told: BoolArray
    ) -> FloatArray:
        right = (rng.random(self.m) < p) | told
        return _coarse(np.where(member == right, 1.0, -1.0), self.values, rng)


@dataclass(frozen=True)
class CoarseStream:
    """Whether a stream's bound is above the truth after any batch: stopped at the best moment.

    Scores of a batch are turned round where those of earlier batches were oftener wrong than
    right, as an attack does that learns from labels it has seen.
    """

    play: Coarse
    sides: SidesChoice
    batches: int

    def __call__(self, seed: int) -> bool:
        """Play the batches of a seed, and look after each."""
        stream, seen = Stream(confidence=1 - ERROR, sides=self.sides), 0.0
        for number in range(self.batches):
            batch = self.play(seed=self.batches * seed + number)
            turned = -batch.scores if seen < 0 else batch.scores
            if stream.update(turned, batch.member).bound > batch.truth:
                return True
            seen += float(np.where(batch.member, batch.scores, -batch.scores).sum())
        return False


def coarse_cases() -> Iterator[Case]:
    """Yield the rows of coarse scores and of few examples."""
    for sides in _SIDES:
        games: dict[str, tuple[int, Values]] = {
            f"values={values}": (60, values) for values in _VALUES
        }
        games |= {f"m={m}": (m, "4") for m in _FEW}
        for truth, (m, values) in games.items():
            yield from _one_run(truth, m, values, sides)
        yield from _unfair(sides)
        yield from _streams(sides)
    yield from _panoramia()


def _policies(m: int) -> Iterator[tuple[str, Claim, CutPolicy | None]]:
    half = Fixed((m + 1) // 2)
    yield "kl", PureDP(), KLScan()
    yield "union", PureDP(), UnionBound()
    yield "fixed", PureDP(), half
    yield "planned", ApproxDP(delta=_DELTA), None
    yield "union", ApproxDP(delta=_DELTA), UnionBound()
    yield "planned", GaussianDP(), None
    yield "fixed", GaussianDP(), half


def _one_run(truth: str, m: int, values: Values, sides: SidesChoice) -> Iterator[Case]:
    for cuts, claim, policy in _policies(m):
        epsilon = 0.0 if isinstance(claim, GaussianDP) else 1.0
        play = Coarse(m=m, values=values, epsilon=epsilon, told=claim.delta)
        trial = OneRun(play, claim, {"cuts": policy, "sides": sides})
        games = MODERATE if isinstance(claim, PureDP) else DEAR
        truth_here = f"{truth},ε={epsilon:g}"
        yield _row("one-run", claim.name, cuts, sides, truth_here, Cautious(trial), long=games)


def _row(audit: str, claim: str, cuts: str, sides: str, truth: str, trial: Any, **how: Any) -> Case:
    return Case(
        audit=audit,
        claim=claim,
        cuts=cuts,
        sides=sides,
        truth=truth,
        error=ERROR,
        trial=trial,
        **how,
    )


def _unfair(sides: SidesChoice) -> Iterator[Case]:
    policies: Mapping[str, CutPolicy] = {"kl": KLScan(), "fixed": Fixed(40)}
    for prior in (0.2, 0.9):
        for values in ("2", "all but one"):
            for epsilon in (0.0, 1.0):
                game = Coarse(m=80, values=values, epsilon=epsilon, prior=prior)
                truth = f"π={prior:g},values={values},ε={epsilon:g}"
                for cuts, policy in policies.items():
                    options = {"cuts": policy, "sides": sides, "prior": prior}
                    trial = OneRun(game, PureDP(), options)
                    yield _row("one-run", "pure DP", cuts, sides, truth, trial, long=DEAR)


def _streams(sides: SidesChoice) -> Iterator[Case]:
    for size, batches in ((1, 60), (2, 60), (5, 24), (30, 6)):
        game = Coarse(m=size, values="4", epsilon=1.0)
        truth, trial = f"batches-of-{size}", CoarseStream(game, sides, batches)
        yield _row("stream", "pure DP", "ville", sides, truth, trial, long=COSTLY)


def _panoramia() -> Iterator[Case]:
    row = partial(_row, "panoramia", sides="member")
    pair = 0.6, 0.8
    for values in _VALUES:
        trial = CoarsePairs(80, values, *pair)
        yield row("c, c+ε", "kl", truth=f"values={values}", trial=Cautious(trial), long=MODERATE)
    for m in _FEW:
        for cuts, policy in (("kl", KLScan()), ("union", UnionBound()), ("fixed", Fixed(1))):
            trial = CoarsePairs(m, "4", *pair, options={"cuts": policy})
            yield row("c, c+ε", cuts, truth=f"m={m}", trial=Cautious(trial), long=MODERATE)
    for recall in (0.05, 0.3):
        trial = CoarsePairs(150, "4", *pair, options={"max_recall": recall})
        yield row("c, c+ε", "kl", truth=f"max-recall={recall:g}", trial=trial, long=MODERATE)
    for gamma, delta in ((0.02, 0.0), (0.0, 0.02), (0.02, 0.02)):
        for cuts, policy in (("kl", KLScan()), ("union", UnionBound()), ("fixed", Fixed(40))):
            options = {"gamma": gamma, "delta": delta, "cuts": policy}
            trial = CoarsePairs(150, "4", *pair, gamma, delta, options=options)
            yield row("c, c+ε", cuts, truth=f"γ={gamma:g},δ={delta:g}", trial=trial, long=DEAR)
    together = logit(0.8)
    both = 2 * together  # to replace one real example by another changes two answers
    real = CoarsePairs(150, "4", 0.5, 0.8, epsilon=both, options={"real_nonmembers": True})
    yield row("ε, real-nonmembers", "kl", truth="values=4", trial=real, long=MODERATE)
    known = {"c_upper": logit(0.6)}
    limited = CoarsePairs(150, "4", *pair, epsilon=together - logit(0.6), options=known)
    yield row("ε, c-upper", "kl", truth="values=4", trial=limited, long=MODERATE)
