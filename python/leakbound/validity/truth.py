"""Games whose truth is known, and whether an audit of one claims more.

The public names are those of `leakbound.validity`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from leakbound._base.checks import check_scores
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, BoolArray, FloatArray
from leakbound.audits import audit_one_run
from leakbound.claims import FAMILIES, Claim
from leakbound.results import AuditResult

ERROR = 0.1
"""Share of false claims that audits may make here, unless a row says otherwise."""
_SMALL_DELTA = 1e-5
"""δ at which curves of a family are compared with the truth."""

Attack: TypeAlias = Callable[[BoolArray, int], ArrayInput]
"""From membership and a seed to scores."""


class Audited(Protocol):
    """What a case needs of a game."""

    @property
    def scores(self) -> FloatArray:
        """Scores of the examples."""

    @property
    def member(self) -> BoolArray:
        """Membership of the examples."""

    def epsilon(self, delta: float, /) -> float:
        """Return the ε that no bound at δ may exceed."""


Play: TypeAlias = Callable[..., Audited]
"""Something that plays the game of a keyword `seed`."""


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
        result = audit_one_run(
            game.scores,
            game.member,
            claim=self.claim,
            confidence=1 - self.error,
            seed=2 * seed + 1,
            **self.options,
        )
        return game, result
