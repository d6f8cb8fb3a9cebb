"""Cases of this package's audits as they are by default, and of an attack of the user's own."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from leakbound import simulate
from leakbound._base.checks import check_scores, integer, real
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, BoolArray, FloatArray, SidesChoice
from leakbound.audits import Coins, Panoramia, RandomSplit, Stream, ZeroRun, audit
from leakbound.audits.designs import audit_of
from leakbound.claims import FAMILIES, ApproxDP, Claim, GaussianDP, PureDP
from leakbound.cuts import CutPolicy, Fixed, KLScan, UnionBound
from leakbound.errors import InputTypeError
from leakbound.results import AuditResult
from leakbound.validity.suite import Case

# Share of false claims that audits may make here, unless a row says otherwise.
ERROR = 0.1
# δ at which curves of a family are compared with the truth.
_SMALL_DELTA = 1e-5
_SIDES: tuple[SidesChoice, ...] = ("both", "member")
# Examples of a game: so few that a thousand games take seconds.
_M = 150
# δ of the games: so large that failures happen in a thousand games.
_DELTA = 0.01

# From membership and a seed to scores.
Attack: TypeAlias = Callable[[BoolArray, int], ArrayInput]


class Audited(Protocol):
    """What a case needs of a game."""

    @property
    def scores(self) -> FloatArray: ...  # noqa: D102 (those of a game)
    @property
    def member(self) -> BoolArray: ...  # noqa: D102

    def epsilon(self, delta: float, /) -> float:
        """Return the ε that no bound at δ may exceed."""


# Something that plays the game of a keyword `seed`.
Play: TypeAlias = Callable[..., Audited]


@dataclass(frozen=True)
class Played:
    """A game that was played, and the leakage it has."""

    scores: FloatArray
    member: BoolArray
    truth: float

    def epsilon(self, _delta: float, /) -> float:
        """Return the truth at any δ."""
        return self.truth


@dataclass(frozen=True, kw_only=True)
class UserGame:
    """A game with a user's own attack, on coins that the suite tosses."""

    attack: Attack
    m: int
    truth: float

    def __call__(self, *, seed: int) -> Played:
        """Play the game of a seed."""
        rng = Purpose.USER_GAME.rng(seed)
        member = rng.random(self.m) < 0.5
        scores = check_scores(self.attack(member.copy(), int(rng.integers(2**32))), "attack(…)")
        return Played(scores, member, self.truth)


@dataclass(frozen=True)
class OneRun:
    """Whether an audit of one run claims more than the truth, at the claim's δ or a small one."""

    play: Play
    claim: Claim
    options: dict[str, Any] = field(default_factory=dict)
    error: float = ERROR

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it."""
        game, result = self.outcome(seed)
        delta = _SMALL_DELTA if isinstance(self.claim, FAMILIES) else self.claim.delta
        return result.epsilon(delta) > game.epsilon(delta)

    def outcome(self, seed: int) -> tuple[Audited, AuditResult]:
        """Return the game of a seed and the result of its audit."""
        game = self.play(seed=2 * seed)
        result = audit_of(
            "coins",
            game.scores,
            member=game.member,
            claim=self.claim,
            confidence=1 - self.error,
            seed=2 * seed + 1,
            **self.options,
        )
        return game, result


def pure_policies(m: int) -> dict[str, CutPolicy]:
    """Return the policies that a pure claim is tried with, by name."""
    return {
        "kl": KLScan(),
        "union": UnionBound(),
        "geometric": UnionBound(grid="geometric"),
        "hoeffding": UnionBound(tail="hoeffding"),
        "fixed": Fixed(m // 2),
    }


def _split(seed: int) -> bool:
    """Whether noise in a random split, whose members other noise chose, counts as leakage."""
    scores, chance = (simulate.null(_M, seed=2 * seed + part).scores for part in (0, 1))
    member = chance > np.median(chance)
    return audit(scores, RandomSplit(member), confidence=1 - ERROR, seed=seed).bound > 0


def _zero_run(seed: int) -> bool:
    """Whether Zero-Run claims more than the noisy sum of shifted people has."""
    game = simulate.noisy_sum(_M, mu=1.0, shift=0.8, seed=2 * seed)
    design = ZeroRun(game.member, game.propensity)
    result = audit(game.scores, design, confidence=1 - ERROR, seed=2 * seed + 1)
    return result.bound > game.truth


def _panoramia(seed: int) -> bool:
    """Whether either of two rankings by noise is taken to know something."""
    game, other = (simulate.null(_M, seed=2 * seed + part) for part in (0, 1))
    design = Panoramia(game.member, baseline=other.scores)
    result = audit(game.scores, design, confidence=1 - ERROR, seed=seed)
    return max(result.c_lb, result.c_plus_epsilon_lb) > 0


def _stream(seed: int) -> bool:
    """Whether a stream is above the truth after any of its batches."""
    stream = Stream(confidence=1 - ERROR)
    batches = (simulate.randomized_response(30, 1.0, seed=5 * seed + part) for part in range(5))
    return any(stream.update(batch.scores, batch.member).bound > 1.0 for batch in batches)


def _peeking(seed: int) -> bool:
    """Whether noise counts as leakage once it was centred on members and on others apart."""
    game = simulate.null(_M, seed=seed)
    scores, member = game.scores.copy(), game.member
    scores[member] -= scores[member].min()
    scores[~member] -= scores[~member].max()
    return audit(scores, Coins(member), confidence=1 - ERROR, seed=seed).bound > 0


def _defaults() -> Iterator[Case]:
    failing = partial(simulate.randomized_response, _M, 1.0, delta=_DELTA)
    games: tuple[tuple[str, Claim, Play], ...] = (
        ("noise", PureDP(), partial(simulate.null, _M)),
        ("response", PureDP(), partial(simulate.randomized_response, _M, 1.0)),
        ("response", ApproxDP(delta=_DELTA), failing),
        ("gaussian", GaussianDP(), partial(simulate.gaussian, _M, 1.0)),
        ("mixture", GaussianDP(), partial(simulate.mixture, _M, 1.0)),
    )
    for truth, claim, play in games:
        for sides in _SIDES:
            yield _one_run("default", truth, play, claim, None, sides)
    row = partial(Case, cuts="default", error=ERROR)
    pure = partial(row, claim="pure DP")
    yield pure(audit="random-split", sides="pairs", truth="noise", trial=_split)
    yield row(audit="zero-run", claim="Gaussian DP", sides="both", truth="shifted", trial=_zero_run)
    yield row(audit="panoramia", claim="c, c+ε", sides="member", truth="noise", trial=_panoramia)
    yield pure(audit="stream", sides="both", truth="response", trial=_stream)
    yield pure(audit="trap", sides="both", truth="scores-that-peek", trial=_peeking, valid=False)


def _one_run(
    cuts: str, truth: str, play: Play, claim: Claim, policy: CutPolicy | None, sides: SidesChoice
) -> Case:
    return Case(
        audit="one-run",
        claim=claim.name,
        cuts=cuts,
        sides=sides,
        truth=truth,
        error=ERROR,
        trial=OneRun(play, claim, {"cuts": policy, "sides": sides}),
    )


def cases(words: str = "") -> tuple[Case, ...]:
    """Return the cases of this package's audits, each as it is by default.

    Parameters
    ----------
    words : str
        Words that a case must have, all of them, such as "one-run pure both"; all cases if empty.

    Returns
    -------
    tuple of Case
        The cases; empty if no case has these words.

    Examples
    --------
    >>> cases("trap")[0].valid
    False
    """
    wanted = set(words.split())
    return tuple(case for case in _defaults() if wanted <= set(case.name.split()))


def attack_cases(attack: Attack, *, truth: float = 0.0, m: int = 200) -> tuple[Case, ...]:
    """Return cases that put an attack of yours, and what it attacks, under every cut policy.

    Parameters
    ----------
    attack : callable
        ``attack(member, seed)`` returns scores, array-like of shape (m,). `member` says what the
        coins said, a bool array of shape (m,): train on the members, or ignore it to see what your
        scoring makes of noise. All randomness comes from the integer `seed`.
    truth : float
        The ε that your training keeps, at least 0; 0 if it ignores `member`.
    m : int
        Examples of each game, at least 8.

    Returns
    -------
    tuple of Case
        One case for each cut policy and choice of sides.

    Examples
    --------
    >>> def honest(member, seed):
    ...     return np.random.default_rng(seed).normal(size=member.size)
    >>> def cheat(member, seed):  # the coins leak through a threshold chosen on them
    ...     return honest(member, seed) + 0.5 * member
    >>> from leakbound.validity import run
    >>> [run(attack_cases(a)[:1], repetitions=50).ok for a in (honest, cheat)]
    [True, False]
    """
    if not callable(cast("object", attack)):
        message = f"attack must be callable as attack(member, seed), got {attack!r}"
        raise InputTypeError(message)
    size = integer(m, "m", least=8)
    play = UserGame(attack=attack, m=size, truth=real(truth, "truth", least=0))
    return tuple(
        _one_run(name, "attack", play, PureDP(), policy, sides)
        for name, policy in pure_policies(size).items()
        for sides in _SIDES
    )
