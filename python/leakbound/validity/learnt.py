"""Rows of propensities learnt from other examples."""

from collections.abc import Iterator
from functools import partial

from leakbound.claims import GaussianDP
from leakbound.validity.shifted import Leak, NoisySums, Shifted, ShiftedPlay
from leakbound.validity.suite import COSTLY, Case
from leakbound.validity.zero_run import FIXED, FORMS, M, leak_of, zero_run_case

__all__ = ["learnt_cases"]

_HELD_OUT = 300
"""Examples to learn propensities from."""
_SHIFTS = (0.0, 0.5, 1.0, 1.5, 2.0)
_RATIOS = (1.0, 0.8, 0.6, 0.4, 0.2)
_QUICK_REPLICATES, _REPLICATES = 79, 600
_GAMES = 200
"""Games of a long run: each refits 600 times, and there is a row for every shift."""


def learnt_cases() -> Iterator[Case]:
    """Yield cases of propensities learnt from other examples: some quick, some at every shift.

    All take one number of guesses: scans of the replicates cost more and are no other bound.
    """
    for name, claim, _ in FORMS:
        form = name, claim, FIXED
        game = partial(Shifted, m=M, failure=claim.delta, holdout=_HELD_OUT)
        kinds: dict[str, Leak] = {"nothing": "nothing", "leaks": leak_of(claim)}
        yield zero_run_case(
            form,
            game(kind="nothing"),
            "learnt-nothing",
            replicates=_QUICK_REPLICATES,
            quick=25,
            long=COSTLY,
        )
        for shift, ratio in zip(_SHIFTS, _RATIOS, strict=True):
            plays: dict[str, ShiftedPlay] = {
                f"learnt-{kind}-{shift:g}": game(kind=leak, shift=shift)
                for kind, leak in kinds.items()
            }
            if isinstance(claim, GaussianDP):
                sums = NoisySums(m=M, ratio=ratio, holdout=_HELD_OUT)
                plays[f"learnt-noisy-sum-{ratio:g}"] = sums
            for truth, play in plays.items():
                yield zero_run_case(
                    form, play, truth, replicates=_REPLICATES, platt=False, quick=0, long=_GAMES
                )
