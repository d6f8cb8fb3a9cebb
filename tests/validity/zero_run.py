"""The table of Zero-Run cases: corrections, claims, what is known of propensities, and shifts."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from leakbound._base.numerics import expit
from leakbound._base.types import Correction, SidesChoice
from leakbound.audits.designs import audit_of
from leakbound.claims import ApproxDP, Claim, GaussianDP, PureDP
from leakbound.cuts import Fixed
from validity.lengths import COSTLY, DEAR, FUTILE
from validity.shifted import Leak, Shifted, ShiftedPlay
from validity.streams import stream
from validity.suite import Case
from validity.trials import ERROR, Cautious, ZeroRun

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
    ("paper", PureDP(), FIXED | {"adversary": "raw"}),
    ("paper", ApproxDP(delta=_FAILURE), FIXED),
    ("paper", GaussianDP(), FIXED | {"adversary": "paper_aware"}),
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
                game = partial(Shifted, m=M, kind=kind, failure=form[1].delta)
                for shift, word in ((1.0, ""), (2.0, "-2")):
                    play, truth = game(shift=shift), f"shifted-{kind}{word}"
                    yield zero_run_case(form, play, truth, sides, long=DEAR)
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
    over_set: bool = False,
    replicates: int = 0,
    long: int,
) -> Case:
    """Return the case of a form of audit on a game."""
    name, claim, options = form
    asked = {
        "untampered": {"variant": "untampered"},
        "paper": {"correction": "tamper", "variant": "paper"},
    }.get(name, {"correction": name})
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
                asked | {"sides": sides} | options,
                replicates,
                over_set=over_set,
            )
        ),
        long=long,
    )


def _claims_by_odds(seed: int, *, claim: Claim, correction: Correction) -> bool:
    """Whether an audit of rows in the order of their odds, which leak nothing, claims anything."""
    odds = np.linspace(2.0, -2.0, 400)
    member = stream("sorted-game", seed).random(400) < expit(odds)
    how: dict[str, Any] = {"adversary": "raw", "cuts": Fixed(100), "sides": "member", "seed": seed}
    how |= {"claim": claim, "correction": correction, "confidence": 1 - ERROR}
    return bool(audit_of("zero_run", odds, member=member, propensity=expit(odds), **how).bound > 0)


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
                trial=partial(_claims_by_odds, claim=claim, correction=correction),
                long=FUTILE,
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
                    long=COSTLY,
                )
