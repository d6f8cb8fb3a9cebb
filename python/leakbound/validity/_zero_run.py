"""The table of Zero-Run cases: corrections, claims, what is known of propensities, and shifts."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from leakbound._typing import Sides
from leakbound.claims import ApproxDP, Claim, GaussianDP, PureDP
from leakbound.cuts import Fixed
from leakbound.validity._run import Case
from leakbound.validity._shifted import Leak, NoisySums, Shifted, ShiftedPlay
from leakbound.validity._trials import ERROR, ZeroRun

__all__ = ["zero_run_cases"]

_M = 150
_HELD_OUT = 300
"""Examples to learn propensities from."""
_FIXED: dict[str, Any] = {"cuts": Fixed(40)}
_FAILURE = 1e-3
_RARE = 1e-6

_FORMS: tuple[tuple[str, Claim, dict[str, Any]], ...] = (
    ("match", PureDP(), {}),
    ("match", ApproxDP(delta=_FAILURE), _FIXED),
    ("match", GaussianDP(), _FIXED),
    ("poisson_binomial", PureDP(), {}),
    ("untampered", ApproxDP(delta=_RARE), _FIXED),
    ("tamper", PureDP(), _FIXED),
    ("tamper", ApproxDP(delta=_FAILURE), _FIXED),
    ("tamper", GaussianDP(), _FIXED),
    ("composition", PureDP(), {}),
    ("composition", ApproxDP(delta=_FAILURE), _FIXED),
    ("composition", GaussianDP(), _FIXED),
)
"""Corrections, claims that each is for, and how the games are cut."""

_SHIFTS = (0.0, 0.5, 1.0, 1.5, 2.0)
_RATIOS = (1.0, 0.8, 0.6, 0.4, 0.2)
_QUICK_REPLICATES, _REPLICATES = 79, 600


def zero_run_cases() -> Iterator[Case]:
    """Yield the cases of Zero-Run audits.

    Yields
    ------
    Case
        With propensities that are known, with fixed numbers of members, and with propensities that
        are learnt.
    """
    for form in _FORMS:
        for sides in ("both", "member"):
            for kind in ("nothing", _leak(form[1])):
                game = Shifted(m=_M, kind=kind, failure=form[1].delta)
                yield _case(form, game, f"shifted-{kind}", sides, quick=40, long=2000)
    yield from _fixed_numbers()
    yield from _learnt()


def _leak(claim: Claim) -> Leak:
    return "gaussian" if isinstance(claim, GaussianDP) else "response"


def _case(
    form: tuple[str, Claim, dict[str, Any]],
    game: ShiftedPlay,
    truth: str,
    sides: Sides = "both",
    *,
    design: str = "coins",
    replicates: int = 0,
    platt: bool = True,
    quick: int,
    long: int,
) -> Case:
    name, claim, options = form
    asked = {"variant": name} if name == "untampered" else {"correction": name}
    return Case(
        audit="zero-run",
        claim=claim.name,
        cuts=name,
        sides=sides,
        truth=truth,
        error=ERROR,
        trial=ZeroRun(
            game, claim, asked | {"sides": sides, "design": design} | options, replicates, platt
        ),
        quick=quick,
        long=long,
    )


def _fixed_numbers() -> Iterator[Case]:
    """Yield cases of as many members as non-members, whose claim is about replacing one."""
    for form in _FORMS:
        for kind in ("nothing", _leak(form[1])):
            game = Shifted(m=2 * _M, kind=kind, failure=form[1].delta, design="fixed_size")
            yield _case(form, game, f"fixed-size-{kind}", design="fixed_size", quick=20, long=2000)


def _learnt() -> Iterator[Case]:
    """Yield cases of propensities learnt from other examples: some quick, some at every shift.

    All take one number of guesses: scans of the replicates cost more and are no other bound.
    """
    for name, claim, _ in _FORMS:
        form = name, claim, _FIXED
        game = partial(Shifted, m=_M, failure=claim.delta, holdout=_HELD_OUT)
        kinds: dict[str, Leak] = {"nothing": "nothing", "leaks": _leak(claim)}
        yield _case(
            form,
            game(kind="nothing"),
            "learnt-nothing",
            replicates=_QUICK_REPLICATES,
            quick=25,
            long=1000,
        )
        for shift, ratio in zip(_SHIFTS, _RATIOS, strict=True):
            plays: dict[str, ShiftedPlay] = {
                f"learnt-{kind}-{shift:g}": game(kind=leak, shift=shift)
                for kind, leak in kinds.items()
            }
            if isinstance(claim, GaussianDP):
                sums = NoisySums(m=_M, ratio=ratio, holdout=_HELD_OUT)
                plays[f"learnt-noisy-sum-{ratio:g}"] = sums
            for truth, play in plays.items():
                yield _case(
                    form, play, truth, replicates=_REPLICATES, platt=False, quick=0, long=400
                )
