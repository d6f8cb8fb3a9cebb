"""Rows of learnt log-odds, from other examples and the audited ones, over confidence sets."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from leakbound.claims import GaussianDP, PureDP
from validity.lengths import COSTLY
from validity.shifted import Leak, NoisySums, Shifted, ShiftedPlay
from validity.suite import Case
from validity.zero_run import FIXED, FORMS, OUTSIDE_IN, M, leak_of, zero_run_case

__all__ = ["learnt_cases"]

_HELD_OUT = 300
"""Examples to learn log-odds from besides those audited."""
_SHIFTS = (0.0, 0.5, 1.0, 1.5, 2.0)
_RATIOS = (1.0, 0.8, 0.6, 0.4, 0.2)
_GAMES = 200
"""Games of a long run: there is a row for every shift."""


def learnt_cases() -> Iterator[Case]:
    """Yield cases of learnt log-odds: at every shift."""
    for name, claim, _ in FORMS:
        if name in {"untampered", "paper"}:
            continue
        form = name, claim, FIXED
        game = partial(Shifted, m=M, failure=claim.delta, holdout=_HELD_OUT)
        kinds: dict[str, Leak] = {"nothing": "nothing", "leaks": leak_of(claim)}
        nothing = game(kind="nothing")
        yield zero_run_case(form, nothing, "learnt-nothing", over_set=True, long=COSTLY)
        for shift, ratio in zip(_SHIFTS, _RATIOS, strict=True):
            plays: dict[str, ShiftedPlay] = {
                f"learnt-{kind}-{shift:g}": game(kind=leak, shift=shift)
                for kind, leak in kinds.items()
            }
            if isinstance(claim, GaussianDP):
                sums = NoisySums(m=M, ratio=ratio, holdout=_HELD_OUT)
                plays[f"learnt-noisy-sum-{ratio:g}"] = sums
            for truth, play in plays.items():
                yield zero_run_case(form, play, truth, over_set=True, long=_GAMES)
    yield from _levels()
    yield from _bootstrapped()


def _levels() -> Iterator[Case]:
    """Yield cases of matching where labels choose the number of guesses from the outside in."""
    for name, claim, _ in FORMS:
        if name != "match" or isinstance(claim, PureDP):
            continue
        form = name, claim, dict[str, Any]()
        for kind in ("nothing", leak_of(claim)):
            for shift in _SHIFTS:
                game = Shifted(m=M, failure=claim.delta, holdout=_HELD_OUT, kind=kind, shift=shift)
                yield zero_run_case(
                    form,
                    game,
                    f"learnt-{kind}-{shift:g}",
                    cuts=OUTSIDE_IN,
                    over_set=True,
                    long=_GAMES,
                )


def _bootstrapped() -> Iterator[Case]:
    """Yield cases of the bootstrap, which is there to explore, at the paper's K = 600."""
    for form in (
        ("match", GaussianDP(), FIXED),
        ("tamper", GaussianDP(), FIXED),
        ("poisson_binomial", PureDP(), FIXED),
    ):
        for kind in ("nothing", leak_of(form[1])):
            game = Shifted(m=2 * M, kind=kind, holdout=2 * M)
            truth = f"bootstrap-{kind}"
            yield zero_run_case(form, game, truth, replicates=600, long=COSTLY)
