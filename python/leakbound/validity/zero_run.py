"""The table of Zero-Run cases: corrections, claims, what is known of propensities, and shifts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from leakbound._base.odds import expit
from leakbound._base.streams import Purpose
from leakbound._base.types import Correction, SidesChoice
from leakbound.audits import audit_zero_run
from leakbound.claims import ApproxDP, Claim, GaussianDP, PureDP
from leakbound.cuts import Fixed
from leakbound.validity.shifted import Leak, Shifted, ShiftedPlay
from leakbound.validity.suite import COSTLY, DEAR, FUTILE, Case
from leakbound.validity.trials import ERROR, Cautious, ZeroRun

__all__ = ["FIXED", "FORMS", "OUTSIDE_IN", "M", "leak_of", "zero_run_case", "zero_run_cases"]

M = 150
FIXED: dict[str, Any] = {"cuts": Fixed(40)}
OUTSIDE_IN = "match-outside-in"
"""What rows of matching are called where labels choose the number of guesses."""
_FAILURE = 1e-3
_RARE = 1e-6

FORMS: tuple[tuple[str, Claim, dict[str, Any]], ...] = (
    ("match", PureDP(), {}),
    ("match", ApproxDP(delta=_FAILURE), FIXED),
    ("match", GaussianDP(), FIXED),
    ("poisson_binomial", PureDP(), {}),
    ("untampered", ApproxDP(delta=_RARE), FIXED),
    ("tamper", PureDP(), FIXED),
    ("tamper", ApproxDP(delta=_FAILURE), FIXED),
    ("tamper", GaussianDP(), FIXED),
    ("composition", PureDP(), {}),
    ("composition", ApproxDP(delta=_FAILURE), FIXED),
    ("composition", GaussianDP(), FIXED),
)
"""Corrections, claims that each is for, and how the games are cut."""


def zero_run_cases() -> Iterator[Case]:
    """Yield the cases of Zero-Run audits."""
    for form in FORMS:
        for sides in ("both", "member"):
            for kind in ("nothing", leak_of(form[1])):
                game = Shifted(m=M, kind=kind, failure=form[1].delta)
                yield zero_run_case(form, game, f"shifted-{kind}", sides, quick=40, long=DEAR)
    yield from _fixed_numbers()
    yield from _levels()
    yield from _in_order()


def leak_of(claim: Claim) -> Leak:
    """Return the kind of mechanism that is at the boundary of a claim."""
    return "gaussian" if isinstance(claim, GaussianDP) else "response"


def zero_run_case(
    form: tuple[str, Claim, dict[str, Any]],
    game: ShiftedPlay,
    truth: str,
    sides: SidesChoice = "both",
    *,
    cuts: str = "",
    design: str = "coins",
    over_set: bool = False,
    quick: int,
    long: int,
) -> Case:
    """Return the case of a form of audit on a game."""
    name, claim, options = form
    asked = {"variant": name} if name == "untampered" else {"correction": name}
    return Case(
        audit="zero-run",
        claim=claim.name,
        cuts=cuts or name,
        sides=sides,
        truth=truth,
        error=ERROR,
        trial=Cautious(
            ZeroRun(
                game,
                claim,
                asked | {"sides": sides, "design": design} | options,
                over_set=over_set,
            )
        ),
        quick=quick,
        long=long,
    )


@dataclass(frozen=True)
class _Sorted:
    """Whether an audit of rows in the order of their odds, which leak nothing, claims anything."""

    claim: Claim
    correction: Correction
    first: bool = False

    def __call__(self, seed: int) -> bool:
        """Play the game of a seed and audit it, perhaps with members stored first."""
        odds = np.linspace(2.0, -2.0, 400)
        member = Purpose.SORTED_GAME.rng(seed).random(400) < expit(odds)
        rows = np.argsort(~member, kind="stable") if self.first else np.arange(400)
        result = audit_zero_run(
            odds[rows],
            member[rows],
            expit(odds[rows]),
            claim=self.claim,
            correction=self.correction,
            adversary="raw",
            cuts=Fixed(100),
            sides="member",
            confidence=1 - ERROR,
            seed=seed,
        )
        return result.bound > 0


def _in_order() -> Iterator[Case]:
    """Yield cases where rows are in the order of their odds."""
    corrections: tuple[Correction, ...] = ("match", "tamper")
    for correction in corrections:
        for claim in (PureDP(), GaussianDP()):
            yield Case(
                audit="zero-run",
                claim=claim.name,
                cuts=correction,
                sides="member",
                truth="rows-by-odds",
                error=ERROR,
                trial=_Sorted(claim, correction),
                quick=40,
                long=FUTILE,
            )
    yield Case(
        audit="zero-run",
        claim=PureDP().name,
        cuts="tamper",
        sides="member",
        truth="members-first",
        error=ERROR,
        trial=_Sorted(PureDP(), "tamper", first=True),
        quick=200,
        long=FUTILE,
    )


def _fixed_numbers() -> Iterator[Case]:
    """Yield cases of as many members as non-members, whose claim is about replacing one."""
    for form in FORMS:
        for kind in ("nothing", leak_of(form[1])):
            game = Shifted(m=2 * M, kind=kind, failure=form[1].delta, design="fixed_size")
            yield zero_run_case(
                form, game, f"fixed-size-{kind}", design="fixed_size", quick=20, long=DEAR
            )


def _levels() -> Iterator[Case]:
    """Yield cases of matching where labels choose the number of guesses from the outside in."""
    claims: tuple[Claim, ...] = (ApproxDP(delta=_FAILURE), GaussianDP())
    for claim in claims:
        for kind in ("nothing", leak_of(claim)):
            game = Shifted(m=M, kind=kind, failure=claim.delta)
            for sides in ("both", "member"):
                yield zero_run_case(
                    ("match", claim, {}),
                    game,
                    f"shifted-{kind}",
                    sides,
                    cuts=OUTSIDE_IN,
                    quick=20,
                    long=COSTLY,
                )
            yield zero_run_case(
                ("match", claim, {"derandomize": True}),
                game,
                f"shifted-{kind}-of-draws",
                cuts=OUTSIDE_IN,
                quick=0,
                long=FUTILE,
            )
