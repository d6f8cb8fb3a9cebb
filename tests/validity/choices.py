"""Rows of choices among k candidates: at the boundary of each claim; and ties by the truth."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from leakbound._base.types import FloatArray, IntArray
from leakbound.audits import Choices, audit
from leakbound.audits.choices import game_of
from leakbound.audits.road import Request, prove
from leakbound.claims import ApproxDP, Claim, GaussianDP, LaplaceDP, PureDP, TradeOffFamily
from leakbound.claims.tradeoff import TradeOff
from leakbound.cuts import CutPolicy, Fixed, KLScan, OutsideIn, UnionBound
from validity.lengths import COSTLY, DEAR, FUTILE, MODERATE
from validity.streams import stream
from validity.suite import Case
from validity.trials import ERROR

__all__ = ["ChoiceTrial", "choice_cases"]

_EPSILON = 1.5
_MU = 1.5
_DELTA = 0.01
Mechanism: TypeAlias = Literal["noise", "response", "tied", "silent", "failing", "gaussian"]


def _curve(epsilon: float) -> TradeOff:
    return TradeOff.approx(epsilon)


_RESPONSES = TradeOffFamily(parameter="epsilon", tradeoff=_curve, bracket=(0.0, 20.0))
"""A family of one's own, whose curves are those of ε-DP: response is at its boundary."""


@dataclass(frozen=True, kw_only=True)
class ChoiceTrial:
    """Whether an audit of choices claims more than the truth.

    Response names the chosen candidate with odds of e^ε against each other one, about every second
    secret if it is "silent" about the others, whose candidates are all tied; "failing" tells all
    with probability δ. Values of the Gaussian mechanism are μ apart.
    """

    m: int
    k: int
    mechanism: Mechanism
    claim: Claim
    cuts: CutPolicy | None = None
    error: float = ERROR
    honest: bool = True

    @property
    def game(self) -> str:
        """What rows call the game."""
        return f"{self.mechanism}-of-{self.k}"

    def play(self, seed: int) -> tuple[FloatArray, IntArray]:
        """Return scores of all candidates, and the chosen ones, of a seed."""
        rng = stream("choices", seed)
        chosen = rng.integers(self.k, size=self.m)
        truth = np.eye(self.k)[chosen]
        noise = rng.normal(size=truth.shape)
        if self.mechanism == "noise":
            return np.rint(noise), chosen
        if self.mechanism == "gaussian":
            return noise + _MU / math.sqrt(2) * truth, chosen
        right = rng.random(self.m) * (math.exp(_EPSILON) + self.k - 1) < math.exp(_EPSILON)
        if self.mechanism == "failing" and rng.random() < _DELTA:
            right[:] = True
        others = (chosen + rng.integers(1, self.k, size=self.m)) % self.k
        named = np.eye(self.k)[np.where(right, chosen, others)]
        if self.mechanism == "silent":
            return named * (rng.random(self.m) < 0.5)[:, None], chosen
        loud = 1.0 if self.mechanism == "tied" else rng.random((self.m, 1)) + 0.5
        return named * loud, chosen

    @property
    def truth(self) -> float:
        """The largest value of the claim's parameter that holds."""
        if self.mechanism == "noise":
            return 0.0
        if isinstance(self.claim, GaussianDP):
            return _MU
        if isinstance(self.claim, LaplaceDP):
            # the least ε whose curve is below that of ε-DP: both are convex, and meet at its corner
            return -2 * math.log(2 / (1 + math.exp(_EPSILON)))
        return _EPSILON

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        scores, chosen = self.play(2 * seed)
        options = {"claim": self.claim, "cuts": self.cuts, "seed": 2 * seed + 1}
        if self.honest:
            design = Choices(chosen, self.k)
            result = audit(scores, design, confidence=1 - self.error, **options)  # type: ignore[call-overload]
            return bool(result.bound > self.truth)
        # Ties for the largest score are broken towards the truth.
        game = game_of(scores, chosen, 0)
        right = scores[np.arange(self.m), chosen] == scores.max(axis=1)
        request = Request(confidence=1 - self.error, **options)  # type: ignore[arg-type]
        return prove(request, replace(game, member=right), self.error).bound > self.truth


_CLAIMS: dict[str, tuple[Claim, Mechanism, int, int]] = {
    "pure DP": (PureDP(), "response", 2_000, MODERATE),
    "approximate DP": (ApproxDP(delta=_DELTA), "failing", 2_000, DEAR),
    "Gaussian DP": (GaussianDP(), "gaussian", 400, COSTLY),
    "Laplace DP": (LaplaceDP(), "response", 400, COSTLY),
    "own family": (_RESPONSES, "response", 0, COSTLY),
}
"""For each claim a mechanism at its boundary, and games of quick and long runs."""


def choice_cases() -> Iterator[Case]:
    """Yield the rows of choices."""
    row = partial(Case, audit="choices", sides="pairs", error=ERROR)
    for k, (name, (claim, mechanism, quick, long)) in (
        (k, row) for k in (2, 4, 10) for row in _CLAIMS.items()
    ):
        m = 60 if name == "own family" else 100
        policies: dict[str, CutPolicy | None] = {"planned": None, "fixed": Fixed(m)}
        if quick:
            policies["geometric"] = UnionBound(grid="geometric")
        if isinstance(claim, PureDP):
            policies |= {"kl": KLScan(), "union": UnionBound(), "outside-in": OutsideIn()}
        for cuts, policy in policies.items():
            trial = ChoiceTrial(m=m, k=k, mechanism=mechanism, claim=claim, cuts=policy)
            soon = quick if cuts == "planned" or (cuts == "fixed" and k == 10) else 0
            yield row(claim=name, cuts=cuts, truth=trial.game, trial=trial, quick=soon, long=long)
        others: tuple[Mechanism, ...] = ("noise",)
        if isinstance(claim, PureDP):
            others = ("noise", "tied", "silent")
        for other in others:
            trial = ChoiceTrial(m=m, k=k, mechanism=other, claim=claim)
            soon = quick if isinstance(claim, PureDP) and other == "silent" and k > 2 else 0
            yield row(
                claim=name, cuts="planned", truth=trial.game, trial=trial, quick=soon, long=long
            )
    for k in (4, 10):
        trial = ChoiceTrial(m=100, k=k, mechanism="noise", claim=PureDP(), honest=False)
        yield row(
            audit="choices-trap",
            claim="pure DP",
            cuts="ties-towards-the-truth",
            truth=trial.game,
            trial=trial,
            quick=40,
            long=FUTILE,
            valid=False,
        )
