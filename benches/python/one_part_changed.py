"""What was done to one part of a split: how often each view sees it, right splits, and seconds.

python one_part_changed.py table [GAMES]    splits refuted by each view at its part of 0.001
python one_part_changed.py nulls [GAMES]    right splits that all views together would withhold
python one_part_changed.py standard [SPLITS] right splits of standard data sets that are withheld
python one_part_changed.py seconds          of the views and of the classifiers, by records
"""

import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pyarrow import parquet
from sklearn import datasets

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parents[1] / "papers"))

from leakbound._base import shares
from leakbound.audits.pairs import Pairs, Units
from leakbound.audits.split_challenge import CONTRADICTED_BELOW, bets, challenge
from leakbound.propensity import likeness, surprise, views
from one_part import MISTAKES, RIGHT, Parts
from real_data import ADULT, FOLDER, adult

CORPUS = Path(__file__).parents[1] / "corpus"
SHARES = {"pairs": shares.CLOSE_PAIRS, "usual": shares.USUAL_ROWS, "label": shares.LABELS}


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def p_values(parts: Parts, seed: int) -> dict[str, float]:
    """Return the p-value of each view, corrected for the others."""
    rng = np.random.default_rng(seed)
    split = views.Split.of(parts.member, parts.labels, rng)
    points = likeness.ranked(parts.rows)
    found = {"pairs": views.across(likeness.closest(points, split, rng), split, rng).p_value}
    usual = likeness.in_order(likeness.usual(parts.rows), rng)
    found["usual"] = views.at_ends(usual, split, rng).p_value
    if parts.labels is not None:
        surprises = surprise.surprising(parts.rows, parts.labels, rng)
        assert surprises is not None
        found["label"] = views.at_ends(likeness.in_order(surprises, rng), split, rng).p_value
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
    """Print how many right splits of 120 records, in two strata, all views together withhold.

    How surprising labels are does not depend on membership: it is learnt once for 25 splits.
    """
    rng, again = np.random.default_rng(7), 25
    learn = surprise.surprising
    withheld, small = Counter[str](), Counter[str]()
    for game in range(games):
        if game % again == 0:
            rows = np.column_stack([rng.integers(0, 5, (120, 2)), rng.normal(size=(120, 2))])
            labels = (rows[:, 2] + rng.normal(size=120) > 0).astype(np.int64)
            strata = rng.integers(0, 2, 120)
            surprises = learn(rows, labels, np.random.default_rng(game))
            surprise.surprising = lambda *_, known=surprises: known
        member = rng.permutation(120) < rng.integers(50, 75)
        units = Units.of(member, strata, None, "mean")
        found = challenge(Pairs.drawn(units, game), units, rows, game, labels=labels)
        for one in found.findings:
            withheld[one.view] += one.contradicts
            small[one.view] += one.p_value < 0.05
        withheld["any"] += found.contradicted
        small["any"] += found.p_value < 0.05
    say(f"{games} right splits: withheld {dict(withheld)}, p < 0.05 {dict(small)}")


def standard(splits: int) -> None:
    """Print how many right splits of each standard data set are withheld."""
    for name, (rows, labels) in standard_data().items():
        numbers = np.unique(labels).size > 30
        contradicted, least = Counter[str](), 1.0
        for split in range(splits):
            rng = np.random.default_rng([split, 8])
            member = rng.permutation(len(rows)) < len(rows) * rng.choice([0.5, 0.8])
            strata = labels if split % 2 and not numbers else None
            units = Units.of(member, strata, None, "mean")
            pairs = Pairs.drawn(units, split)
            found = challenge(pairs, units, rows, split, labels=labels, most_bets=2_000)
            contradicted["withheld"] += found.contradicted
            least = min(least, found.p_value)
        say(
            f"{name}, {rows.shape}: {contradicted['withheld']} of {splits} withheld, the "
            f"smallest p = {least:.2g}"
        )


def standard_data() -> dict[str, tuple[NDArray[np.float64], NDArray[np.int64]]]:
    """Return features and labels: of scikit-learn, and of UCI Adult if `make data` has been run."""
    names = ("breast_cancer", "diabetes", "digits", "iris", "wine")
    found = {name: getattr(datasets, f"load_{name}")(return_X_y=True) for name in names}
    table = parquet.read_table(CORPUS / "fashion-mnist.parquet").to_pandas()
    found["fashion-mnist, 4 components"] = (
        table[["x0", "x1", "x2", "x3"]].to_numpy(float),
        table["label"].to_numpy(),
    )
    sites = parquet.read_table(CORPUS / "tutorials" / "sites.parquet").to_pandas()
    columns = [f"x{column}" for column in range(8)]
    found["fashion-mnist, 8 components"] = (
        sites[columns].to_numpy(float),
        sites["label"].to_numpy(),
    )
    if (FOLDER / ADULT.file).is_file():
        people = adult()
        found["adult"] = (people.values, people.labels)
    return found


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
        points = likeness.ranked(rows)
        views.across(likeness.closest(points, split, rng_), split, rng_)
        views.at_ends(likeness.in_order(likeness.usual(rows), rng_), split, rng_)
        surprises = surprise.surprising(rows, label, rng_)
        assert surprises is not None
        asked = np.flatnonzero(~np.isnan(surprises))
        views.at_ends(asked[likeness.in_order(surprises[asked], rng_)], split, rng_)
        middle = time.process_time()
        bets(Pairs.drawn(Units.of(member, label, None, "mean"), 0), rows, 0)
        end = time.process_time()
        say(f"{count:,} x {width}: views {middle - begin:.2f} s, classifiers {end - middle:.2f} s")


if __name__ == "__main__":
    what, *games = sys.argv[1:]
    if what == "seconds":
        seconds()
    else:
        {"table": table, "nulls": nulls, "standard": standard}[what](int(games[0]) if games else 40)
