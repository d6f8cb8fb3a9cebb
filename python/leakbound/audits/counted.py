"""Coins of examples that are counted: a tally."""

import numpy as np

from leakbound._base.tally import Tally
from leakbound.audits.coins import (
    Coins,
    MemberCount,
    assumptions,
    checked_prior,
    described,
    theorem,
)
from leakbound.audits.design import Request
from leakbound.audits.road import Attacks, Examples, delta_warnings
from leakbound.cuts import TallyGame
from leakbound.errors import IncompatibleOptionsError
from leakbound.results import Assumption

_COUNTED = Assumption(
    "every example counted once",
    "The counts are of different examples, each counted once, at a key of its score that has "
    "nothing of its membership; shards that were added twice are refused, copies within them are "
    "not seen.",
    "declared",
)
_HALF = 0.5
"""The probability of a fair coin."""


def counted(coins: Coins, tally: Tally, request: Request) -> tuple[Examples, MemberCount]:
    """Read examples that are counted."""
    _check_countable(coins, request)
    game = TallyGame(
        values=tally.values,
        counts=tally.examples_at,
        members=tally.members_at,
        sides=request.sides,
        seed=request.seed,
        name="keys of the tally",
    )
    if coins.prior != _HALF:
        game.check_labels()
    prior = checked_prior(request, coins.prior, tally.m)
    count = MemberCount.of_coins(tally.members, tally.m, prior)
    return Examples(
        attacks=Attacks({"": tally.values}),
        game=lambda _: game,
        prior=prior,
        theorem=theorem(request.claim, prior),
        assumptions=(
            *assumptions(request.claim, prior, count, "no other attack was"),
            _COUNTED,
        ),
        options={
            "sides": request.sides,
            "prior": described(prior),
            "tally": {
                "bits": tally.bits,
                "keys": len(tally),
                "shards": len(tally.shards),
            },
        },
        warnings=(
            *count.warnings(),
            *count.halved(),
            *delta_warnings(request.claim.delta, tally.m),
        ),
        inputs={
            "tally keys": tally.keys,
            "tally examples": tally.examples_at,
            "tally members": tally.members_at,
            **({} if prior is None else {"prior": prior}),
        },
    ), count


def _check_countable(coins: Coins, request: Request) -> None:
    """Raise where something tells examples apart, which counts do not."""
    if coins.member is not None:
        message = "a tally has counts of members: leave out member"
    elif request.ids is not None:
        message = "ids= has no meaning for a tally, which counts examples: join them beforehand"
    elif not isinstance(coins.prior, float | int | np.floating | np.integer):
        message = (
            "prior= must be one probability for a tally, which does not tell examples apart: "
            "audit those of each probability by themselves, or pass scores and member"
        )
    else:
        return
    raise IncompatibleOptionsError(message)
