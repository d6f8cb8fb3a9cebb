"""Pairs of a split, guessed in the memory of one sort, as from differences that are stored."""

from typing import Any

import numpy as np
import pytest

from leakbound import _core
from leakbound._base.types import FloatArray
from leakbound.audits.pairs import _PAIRS_AT_ONCE, Pairs, Units, stretched
from leakbound.cuts.games import PairGame

RNG = np.random.default_rng(0)
M = 3 * _PAIRS_AT_ONCE
NORMAL = RNG.normal(size=M)
FEW = RNG.normal(size=301)
SCORES: dict[str, FloatArray] = {
    "distinct": NORMAL,
    "single precision": NORMAL.astype(np.float32).astype(np.float64),
    "rounded": NORMAL.round(2),
    "tied in part": np.where(NORMAL > 0.5, 1.0, NORMAL),
    "infinite": np.where(np.abs(FEW) > 1, np.copysign(np.inf, FEW), FEW),
    "most are zero": np.where(FEW > 1, FEW, -0.0),
    "two values": np.where(FEW > 0, 1.0, 0.0),
    "no pair differs": np.concatenate([np.zeros(300), [1.0]]),
    "only infinite": np.where(FEW > 0, np.inf, -np.inf),
}


def told(ranking: _core.Ranking) -> Any:
    """Return all that can be asked of a ranking."""
    path = ranking.path("member")
    ends = range(1, path.guesses + 1, max(1, path.guesses // 2000))
    return (
        (ranking.examples, ranking.members, ranking.blocks, ranking.tied, ranking.auc),
        [part.tolist() for part in ranking.roc(200)],
        (path.guesses, path.correct, [path.count(end) for end in ends]),
    )


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
def test_rankings_are_those_of_stored_differences(scores: FloatArray) -> None:
    member = np.arange(scores.size) % 2 == 0
    if (scores[:300] == scores[0]).all():
        member[-1] = False  # the one that differs is left over
        member[:200] = True
    pairs = Pairs.drawn(Units.of(member, None, None, "mean"), seed=3)
    game = pairs.game(scores, seed=5)
    even = stretched(scores)
    apart = even[pairs.members] - even[pairs.others]
    stored = PairGame(
        scores=np.where(pairs.first, apart, -apart),
        member=pairs.first,
        given=scores,
        members=pairs.members,
        others=pairs.others,
        seed=5,
    )
    for ties in ("together", "broken"):
        assert told(game.ranked(ties)) == told(stored.ranked(ties))
    assert told(game.untied()) == told(stored.untied())
    assert told(game.rated()) == told(stored.rated())
