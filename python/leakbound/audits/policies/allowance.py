"""Independent trials under (ε, δ)-DP: guesses chosen in any way, with an allowance for failures.

Each trial is randomised response at ε, or fails and tells its coin, with probability δ and whatever
the coin. So the number of trials that fail is binomial, and it is all that a choice of guesses can
exploit: `docs/theory/trials.md` has theorem and proof.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import leakbound._core as _core
from leakbound._base import shares
from leakbound._base.types import JsonObject, JsonValue, Sides
from leakbound.claims import ApproxDP
from leakbound.cuts import OutsideIn, SecondLook
from leakbound.cuts.look import Look, Part, Parts
from leakbound.cuts.outside_in import Allowed, LadderPolicy, planned_rule
from leakbound.cuts.policy import BestCut, DerivedPolicy


def allowance(claim: ApproxDP, trials: int) -> Parts:
    """Return the tests of independent trials: outside-in, and a second look."""
    cuts = SecondLook()
    ladder = TrialsOutsideIn(base=OutsideIn(), delta=claim.delta, trials=trials)
    parts = Part("outside-in", ladder, 1 - cuts.look), Part("look", Look(ladder=ladder), cuts.look)
    return Parts(base=cuts, parts=parts)


@dataclass(frozen=True, kw_only=True)
class TrialsOutsideIn(LadderPolicy, DerivedPolicy[OutsideIn]):
    """The number of guesses chosen by labels from the outside in, of which some may be failures."""

    free = True
    method = (
        f"{OutsideIn.design} Where scores have few values, it lies between two of them, and labels "
        "of a part of each value choose it. Labels that are tested do not influence the choice. Of "
        "m trials, a binomial number F fails with probability δ each. For each number k of "
        "failures, k is taken off the guesses and off the right ones, and Clopper and Pearson's "
        "limit is taken at a probability of error fixed in advance, whose mean over F is the error "
        "probability; the smallest of these limits counts."
    )
    delta: float
    trials: int

    def rule(self, examples: int, level: float, sides: Sides, /) -> _core.OutsideIn:
        """See `LadderPolicy.rule`: planned for these limits."""
        return planned_rule(self.base, examples, level, sides, "trials", self.delta)

    def allowed(self, level: float, /) -> Allowed:
        """See `LadderPolicy.allowed`: scores may choose, as the choice is free."""
        return tuple(self._levels_of_failures(level).kappas)

    def limit(
        self, _rule: _core.OutsideIn | None, guesses: int, correct: int, level: float, /
    ) -> float:
        """See `LadderPolicy.limit`."""
        return self._levels_of_failures(level).limit(guesses, correct)

    def told(self, best: BestCut, level: float, /) -> JsonObject:
        """See `PathPolicy.told`: numbers of failures too, and the level of each."""
        said: Any = super().told(best, level)["outside_in"]
        failures: list[JsonValue] = [[most, part] for most, part in self.allowed(level)]
        return {"outside_in": said | {"failures": failures}}

    def _levels_of_failures(self, level: float) -> _core.Allowance:
        """Return the levels for each number of failures, which no score and no label chose."""
        return _allowance_for_failures(
            self.trials, delta=self.delta, level=shares.ALLOWANCE.of(level)
        )


@lru_cache(maxsize=256)
def _allowance_for_failures(trials: int, delta: float, level: float) -> _core.Allowance:
    """Return the levels for each number of failures among so many trials."""
    return _core.Allowance(trials, delta, level)
