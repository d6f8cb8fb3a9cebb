"""What was done to one part of a split: how often each view sees it, right splits, and seconds.

python one_part_changed.py table [GAMES]    splits refuted by each view at its part of 0.001
python one_part_changed.py nulls [GAMES]    right splits that any of the views would withhold
python one_part_changed.py seconds          of the views and of the classifiers, by records
"""

import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from leakbound._base import shares
from leakbound.audits.pairs import Pairs, Units
from leakbound.audits.split_challenge import CONTRADICTED_BELOW, bets
from leakbound.propensity import views
from one_part import MISTAKES, RIGHT, Parts

SHARES = {"pairs": shares.CLOSE_PAIRS, "usual": shares.USUAL_ROWS, "label": shares.LABELS}


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def p_values(parts: Parts, seed: int, *, labels: bool = True) -> dict[str, float]:
    """Return the p-value of each view, corrected for the others."""
    rng = np.random.default_rng(seed)
    split = views.Split.of(parts.member, parts.labels, rng)
    points = views.ranked(parts.rows)
    found = {"pairs": views.across(views.closest(points, split, rng), split, rng).p_value}
    usual = views.in_order(views.usual(parts.rows), rng)
    found["usual"] = views.at_ends(usual, split, rng).p_value
    if labels and parts.labels is not None:
        surprise = views.surprising(points, parts.labels, rng)
        assert surprise is not None
        found["label"] = views.at_ends(views.in_order(surprise, rng), split, rng).p_value
    return {view: SHARES[view].price() * p_value for view, p_value in found.items()}


def table(games: int) -> None:
    """Print how many splits are refuted."""
    plays = {**RIGHT, **{name: play for name, (play, _) in MISTAKES.items()}}
    for name, play in plays.items():
        refuted: dict[str, int] = {}
        for game in range(games):
            for view, p_value in p_values(play(np.random.default_rng([game, 6])), game).items():
                refuted[view] = refuted.get(view, 0) + (p_value < CONTRADICTED_BELOW)
        say(f"{name}: {refuted} of {games}")


def nulls(games: int) -> None:
    """Print how many right splits of 200 records, in two strata, are withheld."""
    rng, withheld, small = np.random.default_rng(7), 0, 0
    for game in range(games):
        rows = np.column_stack([rng.integers(0, 5, (200, 2)), rng.normal(size=(200, 2))])
        member = rng.permutation(200) < rng.integers(40, 160)
        found = p_values(Parts(rows, member, rng.integers(0, 2, 200)), game, labels=False)
        least = min(found.values())
        withheld, small = withheld + (least < CONTRADICTED_BELOW), small + (least < 0.05)
    say(f"{games} right splits: {withheld} withheld, {small} with p < 0.05")


def seconds() -> None:
    """Print seconds of processor time of all views, and of the classifiers on all pairs."""
    rng = np.random.default_rng(8)
    for count, width in ((1_000, 10), (10_000, 10), (100_000, 10), (100_000, 30), (1_000_000, 10)):
        rows = rng.normal(size=(count, width))
        label = (rows[:, 0] + rng.normal(size=count) > 0).astype(np.int64)
        member = rng.permutation(count) < count // 2
        begin = time.process_time()
        rng_ = np.random.default_rng(9)
        split = views.Split.of(member, label, rng_)
        points = views.ranked(rows)
        views.across(views.closest(points, split, rng_), split, rng_)
        views.at_ends(views.in_order(views.usual(rows), rng_), split, rng_)
        surprise = views.surprising(points, label, rng_)
        assert surprise is not None
        asked = np.flatnonzero(~np.isnan(surprise))
        views.at_ends(asked[views.in_order(surprise[asked], rng_)], split, rng_)
        middle = time.process_time()
        bets(Pairs.drawn(Units.of(member, label, None, "mean"), 0), rows, 0)
        end = time.process_time()
        say(f"{count:,} x {width}: views {middle - begin:.2f} s, classifiers {end - middle:.2f} s")


if __name__ == "__main__":
    what, *games = sys.argv[1:]
    if what == "seconds":
        seconds()
    else:
        {"table": table, "nulls": nulls}[what](int(games[0]) if games else 40)
