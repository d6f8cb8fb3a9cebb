"""Rows of Zero-Run's second look: its default, and each of its tests alone, with noise at the ends.

As in `validity.looks`, a test with a small share of the error probability is played alone, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from leakbound.claims import ApproxDP, Claim, GaussianDP, PureDP
from validity.lengths import COSTLY, DEAR
from validity.looks import PARTS, noisy
from validity.shifted import Shifted, ShiftedGame, ShiftedPlay
from validity.suite import Case
from validity.zero_run import leak_of, zero_run_case

__all__ = ["shifted_look_cases"]

_FAILURE = 1e-3
_M = 300
_HELD_OUT = 300
_FORMS: tuple[tuple[str, Claim, dict[str, Any]], ...] = (
    ("poisson_binomial", PureDP(), {}),
    ("match", PureDP(), {}),
    ("match", ApproxDP(delta=_FAILURE), {}),
    ("match", GaussianDP(), {}),
)


@dataclass(frozen=True)
class _Noisy:
    """A game of members that differ from others, with noise at the ends."""

    play: ShiftedPlay

    def __call__(self, *, seed: int) -> ShiftedGame:
        """Play the game of a seed."""
        game = self.play(seed=seed)
        return replace(game, scores=noisy(game.scores, seed))


def shifted_look_cases() -> Iterator[Case]:
    """Yield the rows of known log-odds, and of confidence sets with D' and without."""
    for name, claim, options in _FORMS:
        for part in ("whole", "look-alone", "first-alone"):
            form = name, claim, options | {"cuts": PARTS[part]}
            for kind in ("nothing", leak_of(claim)):
                known = _Noisy(Shifted(m=_M, kind=kind, failure=claim.delta))
                cuts = f"{name}-{part}"
                yield zero_run_case(form, known, f"noisy-{kind}", cuts=cuts, long=DEAR)
                learnt = Shifted(m=_M, kind=kind, failure=claim.delta, holdout=_HELD_OUT)
                truth = f"noisy-learnt-{kind}"
                play = _Noisy(learnt)
                yield zero_run_case(form, play, truth, cuts=cuts, over_set=True, long=COSTLY)
