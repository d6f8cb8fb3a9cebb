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
    pairs = likeness.closest(points, split, rng)
    found = {"pairs": views.across(pairs, split, rng).p_value}
    usual = likeness.in_order(likeness.usual(parts.rows), rng)
    found["usual"] = views.at_ends(usual, split, rng).p_value
    if parts.labels is not None:
        surprises = surprise.surprising(parts.rows, parts.labels, rng)
        assert surprises is not None
        asked = np.flatnonzero(~np.isnan(surprises))
        order = asked[likeness.in_order(surprises[asked], rng)]
        found["label"] = views.at_ends(order, split, rng).p_value
    return {view: SHARES[view].price() * p_value for view, p_value in found.items()}


def table(games: int) -> None:
    """Print how many splits are refuted."""
    plays = {**RIGHT, **{name: play for name, (play, _) in MISTAKES.items()}}
    for name, play in plays.items():
        refuted: dict[str, int] = {}
        for game in range(games):
            parts = play(np.random.default_rng([game, 6]))
            for view, p_value in p_values(parts, game).items():
                refuted[view] = refuted.get(view, 0) + (p_value < CONTRADICTED_BELOW)
        say(f"{name}: {refuted} of {games}")


def nulls(games: int) -> None:
    """Print how many right splits of 120 records, in two strata, all views together withhold.

    How surprising labels are does not depend on membership: it is learnt once for 25 splits.
    """
    rng = np.random.default_rng(7)
    again = 25
    learn = surprise.surprising
    withheld = Counter[str]()
    small = Counter[str]()
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
        contradicted = 0
        least = 1.0
        for split in range(splits):
            rng = np.random.default_rng([split, 8])
            member = rng.permutation(len(rows)) < len(rows) * rng.choice([0.5, 0.8])
            strata = None
            if split % 2 and not numbers:
                strata = labels
            units = Units.of(member, strata, None, "mean")
            pairs = Pairs.drawn(units, split)
            found = challenge(pairs, units, rows, split, labels=labels, most_bets=2_000)
            contradicted += found.contradicted
            least = min(least, found.p_value)
        say(
            f"{name}, {rows.shape}: {contradicted} of {splits} withheld, the "
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
        p_values(Parts(rows, member, label), seed=9)
        of_views = time.process_time() - begin
        begin = time.process_time()
        units = Units.of(member, label, None, "mean")
        bets(Pairs.drawn(units, 0), rows, 0)
        of_classifiers = time.process_time() - begin
        say(f"{count:,} x {width}: views {of_views:.2f} s, classifiers {of_classifiers:.2f} s")


if __name__ == "__main__":
    what, *numbers = [*sys.argv[1:], "40"]
    if what == "seconds":
        seconds()
    else:
        {"table": table, "nulls": nulls, "standard": standard}[what](int(numbers[0]))
