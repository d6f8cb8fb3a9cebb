"""What a reader of a ranking should know; nothing here changes a bound."""

import math

import leakbound._core as _core

_INVERTED = 3
"""Standard deviations below 1/2 from which an AUC looks inverted rather than random."""
_TIED = 0.1
"""Share of tied examples from which fewer ties may show more."""


def tied_share(ranking: _core.Ranking, units: str = "examples", value: str = "score") -> str:
    """Return how many examples share their score with another, in words; "" if few."""
    share = ranking.tied / ranking.examples
    if share <= _TIED:
        return ""
    return f"{100 * share:.0f}% of the {units} share their {value} with another; "


def tie_warnings(ranking: _core.Ranking) -> tuple[str, ...]:
    """Say that many ties were broken at random, in a ranking by scores as given."""
    return order_warnings(tied_share(ranking))


def order_warnings(share: str) -> tuple[str, ...]:
    """Say that ties were broken at random, given how many in words, "" for few."""
    if not share:
        return ()
    note = "their order was drawn at random, so a score of finer precision may show more"
    return (share + note,)


def inverted_warnings(ranking: _core.Ranking) -> tuple[str, ...]:
    """Say that scores are higher on non-members."""
    members, others = ranking.members, ranking.examples - ranking.members
    # the spread of the AUC of scores that say nothing: Mann and Whitney 1947
    spread = math.sqrt((ranking.examples + 1) / (12 * max(1, members * others)))
    below = (0.5 - ranking.auc) / spread
    if below <= _INVERTED:
        return ()
    note = (
        f"AUC {ranking.auc:.3f} is {below:.1f} standard deviations below 1/2: the scores look "
        "inverted (higher must mean likelier a member); they are used as given"
    )
    return (note,)
