"""Rows whose truth is a verdict: one audit of a correct system, asked all that is true of it.

A system satisfies what it is asked about exactly, at the boundary. A game counts if any of its
questions is answered "refuted" or, in rows of sentences, if any page says more than the truth.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from statistics import NormalDist
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from leakbound import simulate
from leakbound._base.types import BoolArray, FloatArray
from leakbound.audits import Stream
from leakbound.audits.designs import audit_of
from leakbound.claims import (
    ApproxDP,
    Claim,
    GaussianDP,
    LaplaceDP,
    PureDP,
    SubsampledGaussianDP,
)
from leakbound.cuts import Fixed
from leakbound.results.base import Audit
from validity.games import reports
from validity.lengths import COSTLY, DEAR, FUTILE, MODERATE
from validity.questions import Question, endless, epsilon_at, joint, questions, refuted
from validity.shifted import Leak, Shifted
from validity.streams import logit, stream
from validity.suite import Case
from validity.synthetic import Responses
from validity.trials import Cautious, OneRun, Panoramia, ZeroRun

__all__ = ["ERROR", "GAMES", "Asked", "Said", "System", "systems", "verdict_cases"]

ERROR = 0.2
"""Share of games in which a true guarantee may be refuted."""
GAMES = 130
"""Games of a quick row: enough to see twice the rate, with probability 0.8."""
_M = 100
"""Examples, pairs or secrets of a game."""
_EPSILON, _MU, _DELTA, _RARE = 1.0, 1.0, 0.01, 1e-6
_MANY = 1_000
"""Examples of a game whose cut is fixed."""
_FEW = 40
"""Runs of a game whose whole ranking is audited."""
_FIXED: dict[str, Any] = {"cuts": Fixed(_MANY // 2)}


Law: TypeAlias = Literal["normal", "laplace"]
"""What noise is drawn from, at scale 1."""


class Trial(Protocol):
    """A trial that returns what it played and the result of auditing it."""

    def outcome(self, seed: int) -> tuple[object, Audit]:
        """Return the game of a seed and the result of its audit."""
        ...


@dataclass(frozen=True)
class Asked:
    """Whether the audit of a correct system refutes anything that is true of it."""

    trial: Trial
    questions: tuple[Question, ...]

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed, audit it once and ask everything."""
        _, result = self.trial.outcome(seed)
        # all are asked, as a question that is not answered is an error
        answers = [refuted(result, question) for question in self.questions]
        return any(answers)


# What headlines say is proved, and at which δ
_PROVED = re.compile(r"(?:ε < |ε is at least )(?P<epsilon>\d+(?:\.\d+)?)")
_AT = re.compile(r"at δ = (?P<delta>[\d.e-]+\d)")
_ANSWERED = ("is not refuted", "Inconclusive:", "cannot be tested")


@dataclass(frozen=True)
class Said:
    """Whether the page of a correct system says that it leaks, or breaks what is true of it."""

    trial: Trial
    questions: tuple[Question, ...]
    epsilon: Callable[[float], float]
    """The largest ε at δ that may be called proved, in what the bound compares."""

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed, audit it once and read the pages of all questions."""
        _, result = self.trial.outcome(seed)
        pages = [result.summary()]
        wrong = []
        for question in self.questions:
            if question.certain:
                page = result.with_check(**question.claimed).summary()
                pages.append(page)
                said_so = any(words in page.answer for words in _ANSWERED)
                wrong.append(not said_so or "leaks" in page.headline or page.leaks)
        return any(wrong) or any(self._proves_more(page.headline) for page in pages)

    def _proves_more(self, headline: str) -> bool:
        proved, at = _PROVED.search(headline), _AT.search(headline)
        delta = 0.0 if at is None else float(at["delta"])
        return proved is not None and float(proved["epsilon"]) > self.epsilon(delta)


@dataclass(frozen=True)
class Played:
    """Scores, and what was drawn: members, or the candidates that were chosen."""

    scores: FloatArray
    member: Any
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Audited:
    """A game of another design than coins, audited."""

    design: str
    play: Callable[[int], Played]
    claim: Claim
    options: dict[str, Any] = field(default_factory=dict)
    error: float = ERROR

    def outcome(self, seed: int) -> tuple[Played, Audit]:
        """Return the game of a seed and the result of its audit."""
        game = self.play(2 * seed)
        how = {"claim": self.claim, "confidence": 1 - self.error, "seed": 2 * seed + 1}
        how |= game.options | self.options
        return game, audit_of(self.design, game.scores, member=game.member, **how)


@dataclass(frozen=True)
class Streamed:
    """Games of independent examples as the batches of a stream, with the result at its end."""

    play: Callable[..., Any]
    claim: Claim
    batches: int = 2
    error: float = ERROR

    def outcome(self, seed: int) -> tuple[None, Audit]:
        """Return the result of a stream after the batches of a seed."""
        whole = Stream(claim=self.claim, confidence=1 - self.error)
        for number in range(self.batches):
            batch = self.play(seed=self.batches * seed + number)
            whole.update(batch.scores, batch.member)
        return None, whole.result()


# Sizes of scores that are seen to be the truth: beyond all others
_TOLD = 50.0


def _with_failures(
    rng: np.random.Generator, scores: FloatArray, member: BoolArray, failure: float
) -> FloatArray:
    """Tell the truth about an example with some chance, and show that it is told."""
    told = rng.random(member.size) < failure
    size = _TOLD + rng.random(member.size)
    return np.where(told, np.where(member, size, -size), scores)


def _noise(rng: np.random.Generator, size: int, law: Law) -> FloatArray:
    return rng.normal(size=size) if law == "normal" else rng.laplace(size=size)


@dataclass(frozen=True, kw_only=True)
class Noise:
    """±μ/2 and noise for each example, whose truth is told with some chance.

    Normal noise is μ-Gaussian DP with these failures; Laplace's at ε = μ has none.
    """

    m: int
    mu: float
    failure: float = 0.0
    law: Law = "normal"

    def __call__(self, *, seed: int) -> Played:
        """Play the game of a seed."""
        rng = stream("verdict-noise", seed)
        member = rng.random(self.m) < 0.5
        scores = np.where(member, self.mu / 2, -self.mu / 2) + _noise(rng, self.m, self.law)
        return Played(_with_failures(rng, scores, member, self.failure), member)


def _responses(
    rng: np.random.Generator, member: BoolArray, epsilon: float, failure: float
) -> FloatArray:
    """Return a report about each example that is (ε, δ)-DP for adding or removing it.

    To replace one changes two of the reports: (2ε, (1 + e^ε) δ)-DP, and no less at δ = 0.
    """
    return _with_failures(rng, reports(rng, member, epsilon), member, failure)


@dataclass(frozen=True, kw_only=True)
class SplitResponses:
    """A random split, of whose every record there is a report."""

    pairs: int
    epsilon: float
    failure: float = 0.0

    def __call__(self, seed: int) -> Played:
        """Play the game of a seed."""
        rng = stream("verdict-split", seed)
        member = rng.permutation(2 * self.pairs) < self.pairs
        return Played(_responses(rng, member, self.epsilon, self.failure), member)


def _two_sides(
    rng: np.random.Generator, first: BoolArray, mu: float, failure: float, law: Law
) -> FloatArray:
    """Return a value for each pair of records, of which one or the other is in the training set.

    Its mean is μ with the first one, -μ with the second and 0 without both: μ for adding or
    removing one, and exactly 2μ for replacing one by the other.
    """
    scores = np.where(first, mu, -mu) + _noise(rng, first.size, law)
    return _with_failures(rng, scores, first, failure)


@dataclass(frozen=True, kw_only=True)
class SplitNoise:
    """Public pairs, one record of each in the training set, and one noisy value of both."""

    pairs: int
    mu: float
    failure: float = 0.0
    law: Law = "normal"

    def __call__(self, seed: int) -> Played:
        """Play the game of a seed."""
        rng = stream("verdict-split", seed)
        first = rng.random(self.pairs) < 0.5
        value = _two_sides(rng, first, self.mu, self.failure, self.law)
        member = np.stack([first, ~first], axis=1).ravel()
        strata = np.repeat(np.arange(self.pairs), 2)
        return Played(np.stack([value, -value], axis=1).ravel(), member, {"strata": strata})


@dataclass(frozen=True, kw_only=True)
class ChoiceResponses:
    """Secrets with k candidates, about each of which there is a report."""

    m: int
    k: int
    epsilon: float
    failure: float = 0.0

    def __call__(self, seed: int) -> Played:
        """Play the game of a seed."""
        rng = stream("verdict-choices", seed)
        chosen = rng.integers(self.k, size=self.m)
        member = (np.arange(self.k) == chosen[:, None]).ravel()
        scores = _responses(rng, member, self.epsilon, self.failure)
        # of two values and, where the truth is told, others: several candidates may be reported
        levels = np.sign(scores) * np.ceil(np.abs(scores))
        return Played(levels.reshape(self.m, self.k), chosen, {"k": self.k})


@dataclass(frozen=True, kw_only=True)
class ChoiceNoise:
    """Secrets with two candidates, and one noisy value of both."""

    m: int
    mu: float
    failure: float = 0.0
    law: Law = "normal"

    def __call__(self, seed: int) -> Played:
        """Play the game of a seed."""
        rng = stream("verdict-choices", seed)
        chosen = rng.integers(2, size=self.m)
        value = _two_sides(rng, chosen == 0, self.mu, self.failure, self.law)
        return Played(np.stack([value, -value], axis=1), chosen, {"k": 2})


_APPROX, _FAILING = ApproxDP(delta=_DELTA), GaussianDP(delta=_DELTA)
_CLAIMS: tuple[Claim, ...] = (PureDP(), _APPROX, GaussianDP(), _FAILING, LaplaceDP())
_NOISY = (GaussianDP, LaplaceDP)
"""Claims at whose boundary there is noise, and not a report."""


@dataclass(frozen=True, kw_only=True)
class System:
    """A correct system, how it is audited, and what is asked about it."""

    design: str
    claim: Claim
    trial: Trial
    truth: float
    """The claim's parameter at the system's boundary, in what the bound compares."""
    questions: tuple[Question, ...]
    cuts: str = "default"
    game: str = "boundary"
    quick: int = GAMES
    """Games of a quick row of verdicts."""
    sentences: int = 0
    """Games of a quick row of sentences."""
    long: int = DEAR

    def row(self, audit: str, trial: Callable[[int], bool], quick: int) -> Case:
        """Return a row of the audits of this system."""
        return Case(
            audit=audit,
            claim=self.claim.name,
            cuts=f"{self.design.replace('_', '-')} {self.cuts}",
            sides="asked",
            truth=self.game if self.truth else "noise",
            error=ERROR,
            trial=Cautious(trial),
            quick=quick,
            long=self.long,
        )


def _law(claim: Claim) -> Law:
    return "laplace" if isinstance(claim, LaplaceDP) else "normal"


def _coins(claim: Claim, truth: float, m: int = _M) -> Callable[..., Any]:
    """Return the game of coins, or of runs, at the boundary of a claim."""
    if isinstance(claim, _NOISY):
        return Noise(m=m, mu=truth, failure=claim.delta, law=_law(claim))
    return partial(simulate.randomized_response, m, truth, delta=claim.delta)


def _of_adding(claim: Claim, truth: float) -> Iterator[System]:
    """Yield audits whose bound is on adding or removing one example."""
    family = isinstance(claim, _NOISY)
    asked = questions(claim, truth, replaced=False)
    system = partial(System, claim=claim, truth=truth, questions=asked)
    # 1. Coins of one run.
    soon = 0 if isinstance(claim, LaplaceDP) or claim == _FAILING else GAMES
    coins = OneRun(_coins(claim, truth), claim, error=ERROR)
    yield system(design="coins", trial=coins, quick=soon, sentences=0 if family else GAMES)
    if family:
        fixed = OneRun(_coins(claim, truth, _MANY), claim, _FIXED, ERROR)
        yield system(design="coins", trial=fixed, cuts="fixed", quick=0)
    # 2. Many runs: by the whole ranking, which takes long, unless the claim is pure.
    slow = claim != PureDP()
    play = _coins(claim, truth, _FEW if slow else _M)
    trials = OneRun(play, claim, error=ERROR, design="trials")
    quick, long = (0, FUTILE) if slow else (GAMES, DEAR)
    yield system(design="trials", trial=trials, quick=quick, long=long)
    # 3. Batches of either.
    streamed = Streamed(_coins(claim, truth, _M // 2), claim)
    yield system(design="stream", trial=streamed, quick=quick, long=long)


def _of_replacing(claim: Claim, truth: float) -> Iterator[System]:
    """Yield audits whose bound is on replacing one example, which is twice the truth."""
    family, twice = isinstance(claim, _NOISY), 2 * truth
    asked = questions(claim, twice, replaced=True)
    system = partial(System, claim=claim, truth=twice, questions=asked)
    for design in ("random_split", "choices"):
        play = _noisy(design, claim, truth, _M) if family else _reported(design, claim, truth)
        trial = Audited(design, play, claim)
        # candidates are quicker than splits to audit
        late = isinstance(claim, LaplaceDP) or (claim == _FAILING and design != "choices")
        quick, sentences = 0 if late else GAMES, 0 if family else GAMES
        yield system(design=design, trial=trial, quick=quick, sentences=sentences)
        if family:
            fixed = Audited(design, _noisy(design, claim, truth, _MANY), claim, _FIXED)
            yield system(design=design, trial=fixed, cuts="fixed", quick=0)


def _noisy(design: str, claim: Claim, truth: float, pairs: int) -> Callable[[int], Played]:
    """Return a game of pairs of which a noisy value is known."""
    noise: dict[str, Any] = {"mu": truth, "failure": claim.delta, "law": _law(claim)}
    if design == "choices":
        return ChoiceNoise(m=pairs, **noise)
    return SplitNoise(pairs=pairs, **noise)


def _reported(design: str, claim: Claim, truth: float) -> Callable[[int], Played]:
    """Return a game of records or candidates, each of which is reported."""
    # δ of adding or removing one example that becomes the claim's of replacing one
    failure = claim.delta / (1 + math.exp(truth))
    if design == "choices":
        return ChoiceResponses(m=_M, k=4, epsilon=truth, failure=failure)
    return SplitResponses(pairs=_M, epsilon=truth, failure=failure)


def _of_zero_run(claim: Claim) -> Iterator[System]:
    """Yield audits of members that differ from others."""
    kind: Leak = "gaussian" if isinstance(claim, GaussianDP) else "response"
    play = Shifted(m=150, kind=kind, failure=claim.delta)
    for cuts in ("default", "fixed"):
        options = {"correction": "match"} | ({"cuts": Fixed(40)} if cuts == "fixed" else {})
        yield System(
            design="zero_run",
            claim=claim,
            cuts=cuts,
            trial=ZeroRun(play, claim, options, error=ERROR),
            truth=1.0,
            questions=questions(claim, 1.0, replaced=False),
            quick=GAMES if cuts == "fixed" and claim != _FAILING else 0,
            long=DEAR if cuts == "fixed" else FUTILE,
        )


_RIGHT, _GUESSED = 0.73, 0.6
"""Probabilities with which PANORAMIA's attack, and its baseline, guess right."""


def _of_panoramia(claim: Claim) -> Iterator[System]:
    """Yield PANORAMIA by itself, with a limit on c, and of real non-members."""
    c, c_and_epsilon = logit(_GUESSED), logit(_RIGHT)
    kinds: tuple[tuple[str, float, float, float, dict[str, Any]], ...] = (
        ("joint", _GUESSED, c, c_and_epsilon - c, {}),
        ("c-upper", _GUESSED, c, c_and_epsilon - c, {"c_upper": c}),
        # both answers change where one real example replaces the other
        ("real-nonmembers", 0.5, 0.0, 2 * c_and_epsilon, {"real_nonmembers": True}),
    )
    for cuts, baseline, at, epsilon, options in kinds:
        given = options | ({"delta": claim.delta} if claim.delta else {})
        yield System(
            design="panoramia",
            claim=claim,
            cuts=cuts,
            trial=Panoramia(baseline, _RIGHT, None, given, error=ERROR),
            truth=epsilon,
            questions=joint(epsilon, at, claim.delta),
            sentences=0 if claim.delta or cuts == "joint" else GAMES,
            long=MODERATE,
        )


def _others() -> Iterator[System]:
    """Yield a synthetic table, noise as of DP-SGD, and reports whose audit takes them for noise."""
    yield System(
        design="synthetic",
        claim=PureDP(),
        trial=Responses(2 * _EPSILON, error=ERROR),
        truth=2 * _EPSILON,
        questions=questions(PureDP(), 2 * _EPSILON, replaced=True),
        quick=0,
        long=COSTLY,
    )
    one_step = SubsampledGaussianDP(sampling_rate=1.0, steps=1)
    yield System(
        design="coins",
        claim=one_step,
        cuts="fixed",
        trial=OneRun(_coins(GaussianDP(), _MU, _MANY), one_step, _FIXED, ERROR),
        truth=_MU,
        questions=questions(one_step, _MU, replaced=False),
        quick=0,
        long=COSTLY,
    )
    # the least μ whose curve allows all that ε-DP does: they meet at its corner
    mu = 2 * NormalDist().inv_cdf(1 / (1 + math.exp(-_EPSILON)))
    pure = [Question(claimed={"epsilon": _EPSILON}, certain=False)]
    pure += [Question(claimed=one, certain=False) for one in endless(GaussianDP(), mu)]
    for design in ("coins", "trials"):
        play = partial(simulate.randomized_response, _M if design == "coins" else _FEW, _EPSILON)
        yield System(
            design=design,
            claim=GaussianDP(),
            game="response",
            trial=OneRun(play, GaussianDP(), error=ERROR, design=design),
            truth=mu,
            questions=(Question(claimed={"parameter": mu}), *pure),
            quick=GAMES if design == "coins" else 0,
            long=DEAR if design == "coins" else FUTILE,
        )


def systems() -> tuple[System, ...]:
    """Return all systems that are asked something."""
    return tuple(_systems())


def _systems() -> Iterator[System]:
    for claim in _CLAIMS:
        truth = _MU if isinstance(claim, GaussianDP) else _EPSILON
        yield from _of_adding(claim, truth)
        yield from _of_replacing(claim, truth)
        if not isinstance(claim, LaplaceDP):
            yield from _of_zero_run(claim)
    for claim in (PureDP(), ApproxDP(delta=_RARE)):
        yield from _of_panoramia(claim)
    # systems that leak nothing
    yield from _of_adding(PureDP(), 0.0)
    yield from _of_replacing(PureDP(), 0.0)
    yield from _others()


def verdict_cases() -> Iterator[Case]:
    """Yield the rows of verdicts and of sentences."""
    for one in systems():
        yield one.row("verdict", Asked(one.trial, one.questions), one.quick)
        readable = one.cuts != "joint" and one.game == "boundary" and one.long > COSTLY
        if readable:  # neither estimates, which prove nothing, nor what takes long
            truth = partial(epsilon_at, one.claim, one.truth)
            said = Said(one.trial, one.questions, truth)
            yield one.row("sentence", said, one.sentences)
