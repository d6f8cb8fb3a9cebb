"""Rows of random splits: at the boundary of each claim, and designs that only look like a split."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np

from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound._tally.tally import Tally
from leakbound.audits import RandomSplit, audit
from leakbound.audits.designs import audit_of
from leakbound.audits.pair_tally import PairTally
from leakbound.audits.pairing import Pairing
from leakbound.audits.pairs import Pairs
from leakbound.claims import ApproxDP, Claim, GaussianDP, LaplaceDP, PureDP
from leakbound.cuts import (
    CutPolicy,
    Fixed,
    KLScan,
    UnionBound,
)
from leakbound.results import AuditResult
from validity.designs import Missed
from validity.lengths import COSTLY, DEAR, FUTILE, MODERATE
from validity.streams import stream
from validity.suite import Case
from validity.trials import ERROR

__all__ = ["CountedSplit", "Split", "SplitGame", "split_cases"]

_CONFIDENCE = 1 - ERROR
_EPSILON = 1.5
_MU = 1.0
_DELTA = 0.01
_MISSES = 0.05

Mechanism: TypeAlias = Literal["noise", "response", "tied", "failing", "gaussian"]
Design: TypeAlias = Literal["plain", "stratified", "grouped"]


def _rng(seed: int) -> np.random.Generator:
    return stream("split-game", seed)


@dataclass(frozen=True, kw_only=True)
class SplitGame:
    """Scores of a random split, at the boundary of a guarantee for replacing one example.

    Of randomised response both reports of a pair change with a replacement, each by odds of
    e^(ε/2), so that a pair whose reports differ is guessed with odds of exactly e^ε. Scores
    N(μ/√2, 1) of members and N(0, 1) of others are μ-GDP for it.
    """

    members: int
    others: int
    mechanism: Mechanism
    design: Design = "plain"

    def __call__(self, seed: int) -> tuple[FloatArray, BoolArray, dict[str, Any]]:
        """Return scores, membership, and strata or groups, of a seed."""
        rng = _rng(seed)
        size = self.members + self.others
        if self.design == "stratified":
            stratum = rng.permutation(size) < size // 3
            member = np.zeros(size, dtype=np.bool_)
            few = round(0.2 * self.members)
            for rows, count in (
                (np.flatnonzero(stratum), few),
                (np.flatnonzero(~stratum), self.members - few),
            ):
                member[rng.permutation(rows)[:count]] = True
            scores = self._scores(member, rng) + (0.0 if self._coarse else 1e-9 * stratum)
            return scores, member, {"strata": stratum}
        member = rng.permutation(size) < self.members
        scores = self._scores(member, rng)
        if self.design == "plain":
            return scores, member, {}
        user = np.repeat(np.arange(size), rng.integers(1, 4, size=size))
        return scores[user], member[user], {"groups": user}

    @property
    def _coarse(self) -> bool:
        return self.mechanism == "tied"

    def _scores(self, member: BoolArray, rng: np.random.Generator) -> FloatArray:
        if self.mechanism == "noise":
            return rng.normal(size=member.size)
        if self.mechanism == "gaussian":
            return rng.normal(size=member.size) + _MU / math.sqrt(2) * member
        honest = rng.random(member.size) * (1 + math.exp(-_EPSILON / 2)) < 1
        reports = np.where(member == honest, 1.0, -1.0)
        if self.mechanism == "failing" and rng.random() < _DELTA:
            reports = np.where(member, 1.0, -1.0)
        return reports if self._coarse else reports + 0.1 * rng.random(member.size)

    def truth(self, claim: Claim) -> float:
        """Return the largest value of the claim's parameter that holds."""
        if self.mechanism == "noise":
            return 0.0
        if isinstance(claim, GaussianDP):
            return _MU
        if isinstance(claim, LaplaceDP):
            # the least ε whose curve is below that of ε-DP: both are convex, and meet at its corner
            return -2 * math.log(2 / (1 + math.exp(_EPSILON)))
        return _EPSILON


@dataclass(frozen=True)
class Split:
    """Whether an audit of a random split claims more than the truth."""

    game: SplitGame
    claim: Claim
    cuts: CutPolicy | None = None
    error: float = ERROR

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        scores, member, design = self.game(2 * seed)
        result = audit_of(
            "random_split",
            scores,
            member=member,
            claim=self.claim,
            cuts=self.cuts,
            confidence=1 - self.error,
            seed=2 * seed + 1,
            **design,
        )
        return bool(result.bound > self.game.truth(self.claim))


@dataclass(frozen=True)
class CountedSplit:
    """Whether the audit of a tally of pairs claims more than the truth, of users where grouped."""

    game: SplitGame
    claim: Claim
    error: float = ERROR

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed, pair it in four buckets and audit the counts."""
        scores, member, design = self.game(2 * seed)
        strata = design.get("strata")
        if "groups" in design:
            first = np.unique(design["groups"], return_index=True)[1]
            scores = np.bincount(design["groups"], scores) / np.bincount(design["groups"])
            member = member[first]
        pairing = Pairing.of(
            Tally.of(scores, member),
            seed=2 * seed + 1,
            buckets=4,
            stratum=None if strata is None else "stratum",
            unit="user" if "groups" in design else "example",
        )
        ids = np.arange(scores.size)
        tally = PairTally.of(scores, member, ids, strata=strata, pairing=pairing)
        result = audit(
            tally, RandomSplit(), claim=self.claim, confidence=1 - self.error, seed=2 * seed + 1
        )
        return bool(result.bound > self.game.truth(self.claim))


@dataclass(frozen=True)
class _Claims:
    """Whether leakage is claimed where there is none."""

    audit: Callable[[int], AuditResult]

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        return self.audit(seed).bound > 0


def _audited(scores: FloatArray, member: BoolArray, seed: int, **options: Any) -> AuditResult:
    design = RandomSplit(member, **options)
    return audit(scores, design, confidence=_CONFIDENCE, seed=seed)


def _across_strata(seed: int, *, declared: bool) -> AuditResult:
    """Audit scores that are the stratum, of a split of 75 % in one and 25 % in the other."""
    rng = _rng(seed)
    strata = np.repeat([0, 1], 100)
    member = np.concatenate([rng.permutation(100) < 75, rng.permutation(100) < 25])
    scores = rng.normal(size=200) - 5.0 * strata
    return _audited(scores, member, seed, strata=strata if declared else None)


def _in_order(seed: int) -> AuditResult:
    """Audit rows in the order of their scores, which are independent of membership."""
    return _audited(np.exp(0.0066 * np.arange(1000)), _rng(seed).permutation(1000) < 800, seed)


def _stored_otherwise(seed: int) -> AuditResult:
    """Audit groups whose rows are sorted upwards for members and downwards for others.

    Nine in ten groups hold the same scores, whose sum rounds as its terms are ordered.
    """
    rng = _rng(seed)
    member = rng.permutation(300) < 150
    scores = np.tile([0.1, 0.2, 0.3], (300, 1)) + 0.1 * (rng.random((300, 1)) < 0.1)
    scores = np.where(member[:, None], scores, scores[:, ::-1])
    groups = np.repeat(np.arange(300), 3)
    return _audited(scores.ravel(), np.repeat(member, 3), seed, groups=groups)


def _sorted(seed: int, *, features: bool) -> AuditResult:
    """Audit a split by time, where what is measured drifts."""
    rng = _rng(seed)
    time = np.arange(400) / 400
    drift = time + 0.3 * rng.normal(size=400)
    return _audited(-drift, time < 0.7, seed, features=drift[:, None] if features else None)


def _selected(seed: int, *, untouched: bool) -> AuditResult:
    """Audit the best of 20 checkpoints without information, by their loss on what is held out."""
    rng = _rng(seed)
    member = rng.permutation(300) < 200
    kept = ~member & (rng.random(300) < 0.5) if untouched else np.zeros(300, dtype=np.bool_)
    losses = rng.normal(size=(20, 300))
    judged = kept if untouched else ~member
    best = losses[int(np.argmin(losses[:, judged].mean(axis=1)))]
    return _audited(best[~kept], member[~kept], seed)


@dataclass(frozen=True)
class _Matched:
    """Whether noise is refuted where pairs are matched with a look at scores."""

    how: Literal["rank", "nearest", "random"]

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        rng = _rng(seed)
        member = rng.permutation(300) < 150
        scores = rng.normal(size=300)
        members, others = np.flatnonzero(member), np.flatnonzero(~member)
        if self.how == "random":
            members = rng.permutation(members)
        else:
            members = members[np.argsort(-scores[members])]
            others = others[np.argsort(-scores[others])]
            if self.how == "nearest":
                members, others = _nearest(scores, members, others)
        pairs = Pairs(members, others, rng.random(members.size) < 0.5)
        return KLScan().audit(pairs.game(scores, seed), ERROR).bound > 0


def _nearest(scores: FloatArray, members: IntArray, others: IntArray) -> tuple[IntArray, IntArray]:
    """Match each member in turn with the non-member of the nearest score that is left."""
    left, matched = others.tolist(), list[int]()
    for row in members.tolist():
        near = min(left, key=lambda one: abs(scores[one] - scores[row]))
        left.remove(near)
        matched.append(near)
    return members, np.array(matched)


def _policies(pairs: int) -> dict[str, CutPolicy | None]:
    return {
        "planned": None,
        "union": UnionBound(),
        "fixed": Fixed(pairs // 2),
    }


_DESIGNS: tuple[Design, ...] = ("stratified", "grouped")
_TWO: tuple[Mechanism, ...] = ("response", "tied")
_SHARES = {"50/50": (80, 80), "80/20": (320, 80), "93/7": (930, 70), "20/80": (80, 320)}


def _valid() -> Iterator[Case]:
    """Yield the rows of valid audits at the boundary."""
    row = partial(Case, audit="random-split", sides="pairs", error=ERROR, long=MODERATE)
    pure: tuple[Mechanism, ...] = ("noise", "response", "tied")
    for shares, (members, others) in _SHARES.items():
        for mechanism in pure:
            game = SplitGame(members=members, others=others, mechanism=mechanism)
            trial = Split(game, PureDP())
            yield row(claim="pure DP", cuts="planned", truth=f"{mechanism}-{shares}", trial=trial)
    for cuts, policy in list(_policies(80).items())[1:]:
        for mechanism in ("response", "tied"):
            game = SplitGame(members=320, others=80, mechanism=mechanism)
            trial = Split(game, PureDP(), policy)
            yield row(claim="pure DP", cuts=cuts, truth=f"{mechanism}-80/20", trial=trial)
    for design in _DESIGNS:
        for mechanism in pure:
            game = SplitGame(members=200, others=90, mechanism=mechanism, design=design)
            trial = Split(game, PureDP())
            yield row(claim="pure DP", cuts="planned", truth=f"{mechanism}-{design}", trial=trial)
    fixed, kl = Fixed(30), KLScan(min_guesses=20)
    rows: tuple[tuple[str, Claim, Mechanism, dict[str, CutPolicy | None]], ...] = (
        (
            "approx DP",
            ApproxDP(delta=_DELTA),
            "failing",
            {"planned": None, "fixed": fixed, "kl": kl},
        ),
        (
            "gaussian DP",
            GaussianDP(),
            "gaussian",
            {"planned": None, "fixed": fixed},
        ),
        ("laplace DP", LaplaceDP(), "tied", {"fixed": fixed}),
    )
    for name, claim, mechanism, policies in rows:
        for (cuts, policy), share in itertools.product(policies.items(), ("50/50", "80/20")):
            members, others = {"50/50": (120, 120), "80/20": (480, 120)}[share]
            game = SplitGame(members=members, others=others, mechanism=mechanism)
            trial = Split(game, claim, policy)
            yield row(claim=name, cuts=cuts, truth=f"{mechanism}-{share}", trial=trial, long=DEAR)


def _counted() -> Iterator[Case]:
    """Yield the rows of splits that are paired by a hash and counted."""
    pure, games = PureDP(), {**_SHARES, "99/1": (3960, 40)}
    rows: list[tuple[str, Claim, SplitGame]] = [
        (f"{one}-{share}", pure, SplitGame(members=members, others=others, mechanism=one))
        for share, (members, others) in games.items()
        for one in _TWO
    ]
    rows += [
        (f"{one}-{how}", pure, SplitGame(members=200, others=90, mechanism=one, design=how))
        for how in _DESIGNS
        for one in _TWO
    ]
    uneven = partial(SplitGame, members=480, others=120)
    rows.append(("failing-80/20", ApproxDP(delta=_DELTA), uneven(mechanism="failing")))
    rows.append(("gaussian-80/20", GaussianDP(), uneven(mechanism="gaussian")))
    row = partial(Case, audit="pair-tally", cuts="planned", sides="pairs", error=ERROR, long=DEAR)
    for truth, claim, game in rows:
        yield row(claim=claim.name, truth=truth, trial=CountedSplit(game, claim))


def split_cases() -> Iterator[Case]:
    """Yield the rows of random splits."""
    yield from _valid()
    yield from _counted()
    trap = partial(
        Case,
        audit="trap",
        claim="pure DP",
        cuts="planned",
        sides="pairs",
        error=ERROR,
        valid=False,
        quick=40,
        long=FUTILE,
    )
    sound = partial(
        Case,
        audit="random-split",
        claim="pure DP",
        cuts="planned",
        sides="pairs",
        error=ERROR,
        long=FUTILE,
    )
    across = partial(_across_strata, declared=False)
    yield trap(truth="pairs-across-strata", trial=_Claims(across))
    yield sound(truth="pairs-within-strata", trial=_Claims(partial(_across_strata, declared=True)))
    yield sound(truth="rows-by-score", trial=_Claims(_in_order))
    yield sound(truth="groups-stored-otherwise", trial=_Claims(_stored_otherwise))
    yield trap(truth="split-by-time", trial=_Claims(partial(_sorted, features=False)))
    yield trap(
        truth="best-of-20-checkpoints",
        trial=_Claims(partial(_selected, untouched=False)),
        quick=0,
    )
    yield sound(
        truth="best-of-20-checkpoints-untouched",
        trial=_Claims(partial(_selected, untouched=True)),
    )
    yield trap(truth="pairs-by-rank", trial=_Matched("rank"))
    yield trap(truth="pairs-nearest", trial=_Matched("nearest"), quick=0)
    yield sound(truth="pairs-at-random", trial=_Matched("random"))
    yield Case(
        audit="wrong design",
        claim="pure DP",
        cuts="random-split",
        sides="pairs",
        truth="split-by-time-with-features",
        error=_MISSES,
        trial=Missed(partial(_sorted, features=True)),
        quick=10,
        long=COSTLY,
    )
