"""The rows of `make test`: audits as they are by default, most of them near their nominal rate.

They allow a fifth of false claims in place of a tenth: so a thousand games are enough to see that
the level of an audit is twice what it states.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import leakbound as lb
from leakbound import simulate
from leakbound._base.types import CoinSides, SidesChoice
from leakbound.claims import ApproxDP, Claim, GaussianDP, LaplaceDP, PureDP
from leakbound.cuts import CutPolicy, Fixed, OutsideIn, Weighted
from validity.attackers import Informed
from validity.games import Attacks, Boundary, LaplaceNoise, Looks, Play, Played, Response
from validity.implied import CLOSED, Implies
from validity.lengths import COSTLY, MODERATE
from validity.looks import quick_look_cases
from validity.random_splits import CountedSplit, Split, SplitGame
from validity.shifted import Shifted, ShiftedPlay
from validity.streams import logit, stream
from validity.suite import Case
from validity.synthetic import Innocent, Responses
from validity.ties import Coarse
from validity.trials import Cautious, OneRun, Panoramia, Stream, ZeroRun

__all__ = ["ERROR", "default_cases", "either_end_cases"]

ERROR = 0.2
"""Share of false claims that the audits of these rows may make."""
_DELTA, _RARE = 0.01, 1e-5
_SIDES: tuple[SidesChoice, ...] = ("both", "member")

_row = partial(Case, error=ERROR, quick=1_000, long=MODERATE)


@dataclass(frozen=True)
class _Tallied:
    """A game whose scores are counted."""

    play: Play

    def __call__(self, *, seed: int) -> Any:
        """Play the game of a seed."""
        game = self.play(seed=seed)
        return _Counted(lb.Tally.of(game.scores, game.member), game.epsilon(0.0))


@dataclass(frozen=True)
class _Counted:
    scores: lb.Tally
    truth: float
    member: None = None

    def epsilon(self, _delta: float) -> float:
        return self.truth


@dataclass(frozen=True, kw_only=True)
class _Weights:
    """Guesses of "member" of different weight, of coins that nothing is known of."""

    m: int

    def __call__(self, *, seed: int) -> Played:
        """Play the game of a seed."""
        rng = stream("weights", seed)
        return Played(rng.random(self.m), rng.random(self.m) < 0.5, 0.0)


@dataclass(frozen=True, kw_only=True)
class _MembersFirst:
    """Reports of two values, right with odds e^ε, whose members are stored before the others."""

    m: int
    epsilon: float

    def __call__(self, *, seed: int) -> Played:
        """Play the game of a seed."""
        game = Coarse(m=self.m, values="2", epsilon=self.epsilon)(seed=seed)
        stored = np.argsort(~game.member, kind="stable")
        return Played(game.scores[stored], game.member[stored], self.epsilon)


@dataclass(frozen=True, kw_only=True)
class _Telling:
    """Noise, or rarely the truth about a few examples, at the two ends: (0, δ)-DP."""

    m: int
    told: int

    def __call__(self, *, seed: int) -> Played:
        """Play the game of a seed: an example's label is told with probability δ."""
        rng = stream("telling", seed)
        member, scores = rng.random(self.m) < 0.5, rng.normal(size=self.m)
        if rng.random() < self.m * _DELTA / self.told:
            told = rng.permutation(self.m)[: self.told]
            scores[told] = np.where(member[told], 9.0, -9.0)
        return Played(scores, member, 0.0)


def _one_run(
    truth: str,
    play: Play,
    claim: Claim,
    *,
    sides: CoinSides = "both",
    cuts: CutPolicy | None = None,
    games: int = 1_000,
    **options: Any,
) -> Case:
    given = {"sides": sides, "cuts": cuts, **options}
    return _row(
        audit="one-run",
        claim=claim.name,
        cuts="default" if cuts is None else type(cuts).__name__,
        sides=sides,
        truth=truth,
        trial=OneRun(play, claim, given, ERROR),
        quick=games,
    )


_RESPONSE = partial(simulate.randomized_response, 80, 1.0)
_RARELY = partial(simulate.randomized_response, 300, 1.0, delta=_RARE)
_FAILING = partial(simulate.randomized_response, 150, 1.0, delta=_DELTA)
_TAKEN: tuple[tuple[str, Claim, Play, int], ...] = (
    ("noise", PureDP(), partial(simulate.null, 150), 1_000),
    ("response", PureDP(), _RESPONSE, 1_000),
    ("p=0.95", PureDP(), Boundary(m=300, p=0.95), 1_000),
    ("noise", ApproxDP(delta=_RARE), partial(simulate.null, 40), 1_000),
    ("response", ApproxDP(delta=_RARE), _RARELY, 1_000),
    ("noise", GaussianDP(), partial(simulate.null, 150), 1_000),
    ("failing", ApproxDP(delta=_DELTA), _FAILING, 1_000),
    ("tied", PureDP(), Boundary(m=80, p=0.73, tied=True), 1_000),
    ("gaussian", GaussianDP(), partial(simulate.gaussian, 150, 1.0), 300),
    ("mixture", GaussianDP(), partial(simulate.mixture, 150, 1.0), 300),
)
"""Games of coins that guesses of any sides are played on, their claim, and how many of each."""


def either_end_cases() -> Iterator[Case]:
    """Yield rows of guesses from whichever end of the scores says more."""
    # Of noise a few guesses are tested, whose counts take few values: the rate moves in jumps.
    yield _one_run("noise", partial(simulate.null, 60), PureDP(), sides="auto")
    for truth, claim, play, games in _TAKEN[1:]:
        yield _one_run(truth, play, claim, sides="auto", games=games)
    for claim, epsilon in ((PureDP(), 0.0), (PureDP(), 1.0), (GaussianDP(), 0.0)):
        play = _MembersFirst(m=60, epsilon=epsilon)
        yield _one_run(f"members-first,ε={epsilon:g}", play, claim, sides="auto")
    for m, told in ((100, 6), (150, 8)):
        play = _Telling(m=m, told=told)
        yield _one_run(f"telling,m={m}", play, ApproxDP(delta=_DELTA), sides="auto")


def _coins() -> Iterator[Case]:
    pure, response, rarely = PureDP(), _RESPONSE, _RARELY
    for truth, claim, play, games in _TAKEN:
        yield _one_run(truth, play, claim, games=games)
    for truth, claim, play, games in _TAKEN[:6]:
        yield _one_run(truth, play, claim, sides="member", games=games)
    yield _one_run("laplace", LaplaceNoise(m=150), LaplaceDP(), games=300)
    yield _one_run("wavering", Boundary(m=80, p=0.73, wavering=True), pure)
    for prior, epsilon in ((0.2, 0.0), (0.9, 1.0)):
        play = Response(m=120, prior=prior, epsilon=epsilon)
        yield _one_run(f"π={prior:g},ε={epsilon:g}", play, pure, prior=prior)
    yield _one_run("three-response", Attacks(play=response, number=3), pure)
    yield _one_run("three-rare", Looks(play=rarely, number=3), ApproxDP(delta=_RARE))
    yield _one_run("values=3,ε=1", Coarse(m=60, values="3", epsilon=1.0), pure)
    yield _one_run("tally-response", _Tallied(response), pure)
    yield _one_run("response", response, pure, cuts=Fixed(40))
    yield _one_run("noise", partial(simulate.null, 150), GaussianDP(), cuts=Fixed(75))
    yield _one_run("response", rarely, ApproxDP(delta=_RARE), cuts=OutsideIn([50, 150, 300]))
    yield _one_run("weights", _Weights(m=30), pure, sides="member", cuts=Weighted())
    trial = OneRun(response, pure, {}, ERROR)
    numbers = tuple(vars(CLOSED["response"]))
    yield _row(
        audit="one-run",
        claim=pure.name,
        cuts="default implied",
        sides="both",
        truth="response",
        trial=Implies(trial, CLOSED["response"], numbers),
    )


def _splits() -> Iterator[Case]:
    row = partial(_row, audit="random-split", cuts="default", sides="pairs")
    plain = {"50/50": (80, 80), "80/20": (320, 80)}
    for share, (members, others) in plain.items():
        for mechanism in ("noise", "response"):
            game = SplitGame(members=members, others=others, mechanism=mechanism)
            trial = Split(game, PureDP(), error=ERROR)
            yield row(claim="pure DP", truth=f"{mechanism}-{share}", trial=trial)
    game = SplitGame(members=320, others=80, mechanism="tied")
    yield row(claim="pure DP", truth="tied-80/20", trial=Split(game, PureDP(), error=ERROR))
    for design in ("stratified", "grouped"):
        game = SplitGame(members=200, others=90, mechanism="response", design=design)
        trial = Split(game, PureDP(), error=ERROR)
        yield row(claim="pure DP", truth=f"response-{design}", trial=trial)
        tally = CountedSplit(game, PureDP(), error=ERROR)
        yield row(audit="pair-tally", claim="pure DP", truth=f"response-{design}", trial=tally)
    game = SplitGame(members=120, others=120, mechanism="gaussian")
    yield row(claim="Gaussian DP", truth="gaussian", trial=Split(game, GaussianDP(), error=ERROR))
    game = replace(game, mechanism="failing")
    claim = ApproxDP(delta=_DELTA)
    yield row(claim=claim.name, truth="failing", trial=Split(game, claim, error=ERROR))


def _zero_runs() -> Iterator[Case]:
    def case(
        truth: str,
        play: ShiftedPlay,
        claim: Claim,
        sides: SidesChoice = "both",
        *,
        games: int = 1_000,
        over_set: bool = False,
        replicates: int = 0,
        **options: Any,
    ) -> Case:
        given = options | {"sides": sides}
        trial = ZeroRun(play, claim, given, replicates, over_set=over_set, error=ERROR)
        cuts = " ".join(["default", *map(str, options.values())])
        return _row(
            audit="zero-run",
            claim=claim.name,
            cuts=cuts,
            sides=sides,
            truth=truth,
            trial=Cautious(trial),
            quick=games,
        )

    pure, gaussian, approx = PureDP(), GaussianDP(), ApproxDP(delta=1e-3)
    nothing = Shifted(m=150, kind="nothing")
    for sides in _SIDES:
        yield case("nothing", nothing, pure, sides)
    yield case("nothing", nothing, gaussian)
    yield case("response", Shifted(m=150, kind="response"), pure)
    yield case("gaussian", Shifted(m=150, kind="gaussian"), gaussian, games=300)
    yield case("response", Shifted(m=150, kind="response", failure=1e-3), approx)
    few = Informed(m=40, knows="odds", kind="nothing", spread=2.0)
    yield case("knows-odds", few, approx)
    odds = Informed(m=150, knows="odds", kind="nothing", spread=2.0)
    yield case("knows-odds", odds, pure)
    yield case("knows-odds", odds, gaussian, cuts=Fixed(40))
    yield case("nothing", nothing, pure, correction="match")
    yield case("knows-odds", odds, gaussian, correction="tamper", cuts=Fixed(40))
    yield case("nothing", Shifted(m=150, kind="nothing", shift=0.0), pure, correction="composition")
    learnt = Shifted(m=150, kind="nothing", holdout=300)
    yield case("learnt-nothing", learnt, pure, over_set=True, games=300)
    yield case("learnt-nothing", learnt, gaussian, over_set=True, games=200)
    yield case("bootstrap-nothing", learnt, gaussian, replicates=79, games=200)


def _others() -> Iterator[Case]:
    row = partial(_row, audit="panoramia", cuts="default", sides="member")
    for pair in ((0.5, 0.5), (0.5, 0.73), (0.8, 0.8)):
        trial = Panoramia(*pair, None, {}, ERROR)
        yield row(claim="c, c+ε", truth="p={:g},{:g}".format(*pair), trial=trial)
    relaxed = Panoramia(0.8, 0.8, None, {"gamma": 1e-4, "delta": 1e-4}, ERROR)
    yield row(claim="(c, γ), (c+ε, γ+δ)", truth="p=0.8,0.8", trial=relaxed)
    limited = Panoramia(0.5, 0.73, logit(0.73), {"c_upper": 0.0}, ERROR)
    yield row(claim="ε, c-upper", truth="p=0.5,0.73", trial=limited)
    yield _row(
        audit="stream",
        claim="pure DP",
        cuts="default",
        sides="both",
        truth="p=0.73",
        trial=Stream(Boundary(m=50, p=0.73), "both", batches=4, error=ERROR),
    )
    row = partial(_row, audit="synthetic", claim="pure DP", cuts="default", sides="pairs")
    yield row(truth="innocent", trial=Innocent(0.5, error=ERROR), quick=200, long=COSTLY)
    yield row(truth="responses", trial=Responses(1.0, error=ERROR), quick=200, long=COSTLY)


def default_cases() -> Iterator[Case]:
    """Yield the rows of audits as they are by default."""
    yield from _coins()
    yield from quick_look_cases(ERROR)
    yield from _splits()
    yield from _zero_runs()
    yield from _others()
