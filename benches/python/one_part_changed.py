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
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets

sys.path.append(f"{Path(__file__).parents[2]}/tests/support")
sys.path.append(f"{Path(__file__).parents[1]}/papers")

import leakbound as lb
from leakbound._base import shares
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.audits.pairs import Pairs, Units
from leakbound.audits.split_challenge import CONTRADICTED_BELOW, Challenge, bets, challenge
from leakbound.propensity import likeness, split_views
from one_part import MISTAKES, RIGHT, Parts
from real_data import ADULT, FOLDER, adult

CORPUS = Path(__file__).parents[1] / "corpus"
SHARE_OF_VIEW = {"pairs": shares.CLOSE_PAIRS, "usual": shares.USUAL_ROWS, "label": shares.LABELS}


def p_values(parts: Parts, seed: int) -> dict[str, float]:
    """Return the p-value of each view, corrected for the others."""
    rng = np.random.default_rng(seed)
    split = split_views.Split.of(parts.member, parts.labels, rng)
    points = likeness.ranked(parts.rows)
    closest_pairs = likeness.closest(points, split, rng)
    findings = {"pairs": split_views.across(closest_pairs, split, rng)}
    likelihoods = likeness.usual(parts.rows)
    rows_by_likelihood = likeness.in_order(likelihoods, rng)
    findings["usual"] = split_views.at_ends(rows_by_likelihood, split, rng)
    if parts.labels is not None:
        surprises = likeness.surprising(parts.rows, parts.labels, rng)
        assert surprises is not None
        (rows_with_surprise,) = np.nonzero(~np.isnan(surprises))
        order_of_surprise = likeness.in_order(surprises[rows_with_surprise], rng)
        rows_by_surprise = rows_with_surprise[order_of_surprise]
        findings["label"] = split_views.at_ends(rows_by_surprise, split, rng)
    corrected_p_values = {}
    for view, finding in findings.items():
        corrected_p_values[view] = SHARE_OF_VIEW[view].price() * finding.p_value
    return corrected_p_values


def units_of_records(member: BoolArray, strata: IntArray | None) -> Units:
    """Return the units of a split in which each record is one."""
    return Units.of(member, strata=strata, groups=None, aggregate="mean")


def challenged_split(
    member: BoolArray,
    strata: IntArray | None,
    features: FloatArray,
    labels: IntArray,
    *,
    seed: int,
    **options: Any,
) -> Challenge:
    """Challenge a split whose pairs are drawn at random."""
    units = units_of_records(member, strata)
    pairs = Pairs.drawn(units, seed=seed)
    return challenge(
        pairs=pairs, units=units, features=features, seed=seed, labels=labels, **options
    )


def table(games: int) -> None:
    """Print how many splits are refuted."""
    plays = dict(RIGHT)
    for name, (play, _) in MISTAKES.items():
        plays[name] = play
    for name, play in plays.items():
        refuted_by_view = Counter[str]()
        for game in range(games):
            rng = np.random.default_rng([game, 6])
            for view, p_value in p_values(play(rng), game).items():
                refuted_by_view[view] += p_value < CONTRADICTED_BELOW
        print(f"{name}: {dict(refuted_by_view)} of {games}", flush=True)


def nulls(games: int) -> None:
    """Print how many right splits of 120 records, in two strata, all views together withhold.

    How surprising labels are does not depend on membership: it is learnt once for 25 splits.
    """
    rng = np.random.default_rng(7)
    games_per_table = 25
    learn_surprises = likeness.surprising
    withheld = Counter[str]()
    small_p_values = Counter[str]()
    for game in range(games):
        if game % games_per_table == 0:
            whole_numbers = rng.integers(0, 5, size=(120, 2))
            real_numbers = rng.normal(size=(120, 2))
            features = np.column_stack([whole_numbers, real_numbers])
            noisy_feature = features[:, 2] + rng.normal(size=120)
            labels = (noisy_feature > 0).astype(np.int64)
            strata = rng.integers(0, 2, size=120)
            surprises = learn_surprises(features, labels, np.random.default_rng(game))
            likeness.surprising = lambda *_, known=surprises: known
        member = rng.permutation(120) < rng.integers(50, 75)
        challenged = challenged_split(member, strata, features, labels, seed=game)
        for finding in challenged.findings:
            withheld[finding.view] += finding.contradicts
            small_p_values[finding.view] += finding.p_value < 0.05
        withheld["any"] += challenged.contradicted
        small_p_values["any"] += challenged.p_value < 0.05
    print(f"{games} right splits: withheld {dict(withheld)}, p < 0.05 {dict(small_p_values)}")


def standard(splits: int) -> None:
    """Print how many right splits of each standard data set are withheld."""
    for name, (features, labels) in standard_data().items():
        are_numbers = np.unique(labels).size > 30
        contradicted = 0
        smallest_p_value = 1.0
        for split in range(splits):
            rng = np.random.default_rng([split, 8])
            shuffled_places = rng.permutation(len(features))
            members = rng.choice([0.5, 0.8]) * len(features)
            member = shuffled_places < members
            strata = None
            if split % 2 and not are_numbers:
                strata = labels
            challenged = challenged_split(
                member, strata, features, labels, seed=split, most_bets=2_000
            )
            contradicted += challenged.contradicted
            smallest_p_value = min(smallest_p_value, challenged.p_value)
        print(
            f"{name}, {features.shape}: {contradicted} of {splits} withheld, the "
            f"smallest p = {smallest_p_value:.2g}",
            flush=True,
        )


def standard_data() -> dict[str, tuple[FloatArray, IntArray]]:
    """Return features and labels: of scikit-learn, and of UCI Adult if `make data` has been run."""
    data_sets = {}
    for name in ("breast_cancer", "diabetes", "digits", "iris", "wine"):
        load = getattr(datasets, f"load_{name}")
        data_sets[name] = load(return_X_y=True)
    data_sets["fashion-mnist, 4 components"] = scored_images(CORPUS / "fashion-mnist.parquet")
    data_sets["fashion-mnist, 8 components"] = scored_images(lb.datasets.path("sites"))
    file_of_adult = FOLDER / ADULT.file
    if file_of_adult.is_file():
        people = adult()
        data_sets["adult"] = (people.values, people.labels)
    return data_sets


def scored_images(path: Path) -> tuple[FloatArray, IntArray]:
    """Return components and labels of a file of the corpus."""
    images = pd.read_parquet(path)
    components = images.filter(regex=r"^x\d$")
    return components.to_numpy(float), images["label"].to_numpy()


def seconds() -> None:
    """Print seconds of processor time of all views, and of the classifiers on all pairs."""
    rng = np.random.default_rng(8)
    shapes = ((1_000, 10), (10_000, 10), (100_000, 10), (100_000, 30), (1_000_000, 10))
    for records, columns in shapes:
        features = rng.normal(size=(records, columns))
        noisy_feature = features[:, 0] + rng.normal(size=records)
        labels = (noisy_feature > 0).astype(np.int64)
        member = rng.permutation(records) < records // 2
        start = time.process_time()
        p_values(Parts(features, member, labels), seed=9)
        seconds_of_views = time.process_time() - start
        start = time.process_time()
        units = units_of_records(member, labels)
        pairs = Pairs.drawn(units, seed=0)
        bets(pairs, features=features, seed=0)
        seconds_of_classifiers = time.process_time() - start
        print(
            f"{records:,} x {columns}: views {seconds_of_views:.2f} s, "
            f"classifiers {seconds_of_classifiers:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    command, *numbers = [*sys.argv[1:], "40"]
    if command == "seconds":
        seconds()
    else:
        commands = {"table": table, "nulls": nulls, "standard": standard}
        commands[command](int(numbers[0]))
