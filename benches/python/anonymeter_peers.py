"""Certified counts next to the intervals of Anonymeter, on the same files.

Anonymeter needs an environment of its own (`pip install anonymeter`):

    python benches/python/anonymeter_peers.py write FOLDER      tables, and what leakbound certifies
    python benches/python/anonymeter_peers.py read FOLDER       what Anonymeter finds in them
    python benches/python/anonymeter_peers.py guess             a guess that it counts as right
"""

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

FILES = 5
PEOPLE = 1_000
ATTACKS = 500
ATTEMPTS = 20_000
"""Of Anonymeter: attacks on a file, and queries that it tries for them at most."""
SECRETS = ("cost", "diagnosis")


def visits(rng: np.random.Generator, people: int) -> pd.DataFrame:
    """Return invented hospital visits: numbers with heavy tails, days, words, missing values."""
    age = np.clip(rng.gamma(9, 6, people), 18, 99).round()
    ward = rng.choice(7, people, p=[0.3, 0.2, 0.15, 0.12, 0.1, 0.08, 0.05])
    stay = np.ceil(rng.lognormal(0.8 + 0.15 * ward + 0.01 * (age - 50), 0.7))
    cost = (np.exp(rng.normal(6.5 + 0.05 * ward, 0.4, people)) * stay**0.8).round(2)
    cholesterol = (3.5 + 0.02 * age + rng.normal(0, 0.8, people)).round(2)
    codes = (age // 12 + ward * 3 + rng.integers(0, 4, people)).astype(int) % 40
    return pd.DataFrame(
        {
            "age": age,
            "ward": np.array(list("ABCDEFG"))[ward],
            "sex": rng.choice(["f", "m"], people),
            "admitted": rng.integers(0, 730, people),
            "stay": stay,
            "cost": cost,
            "pressure": (110 + 0.4 * age + rng.normal(0, 12, people)).round(),
            "cholesterol": np.where(rng.random(people) < 0.15, np.nan, cholesterol),
            "diagnosis": [f"I{code:02d}" for code in codes],
            "region": [f"R{place:02d}" for place in rng.integers(0, 25, people)],
        }
    )


def noisy(rows: pd.DataFrame, spread: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return rows whose numbers have noise of 2 % of their standard deviation, rounded alike."""
    found = rows.copy()
    for name in found.select_dtypes("number"):
        noise = 0.02 * spread[name].std() * rng.normal(size=len(rows))
        digits = 2 if name in {"cost", "cholesterol"} else 0
        found[name] = (found[name] + noise).round(digits)
    return found


def copying(share: float) -> Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]:
    """Return a generator of fresh people, a share of whom are members with a little noise."""

    def make(members: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        copies = round(share * PEOPLE)
        picked = members.iloc[rng.choice(PEOPLE, copies, replace=False)]
        fresh = visits(rng, PEOPLE - copies)
        return pd.concat([fresh, noisy(picked, members, rng)], ignore_index=True)

    return make


GENERATORS = {"nothing": copying(0.0), "5 % copies": copying(0.05), "1 % copies": copying(0.01)}


def write(folder: Path) -> None:
    """Write tables, and print in how many files each risk has a certified count."""
    import leakbound as lb
    from leakbound.attacks.synthetic import Tables

    halves: Any = None
    for number, (title, make) in enumerate(GENERATORS.items()):
        counts = []
        for file in range(FILES):
            rng = np.random.default_rng([number, file])
            members, others = visits(rng, PEOPLE), visits(rng, PEOPLE)
            made = make(members, rng)
            for name, table in (("members", members), ("others", others), ("made", made)):
                table.to_csv(folder / f"{number}-{file}-{name}.csv", index=False)
            result = lb.audit_synthetic(members, others, made, challenge=False, seed=file)
            counts.append([risk.certified or 0 for _, risk in result.risks or ()])
            halves = halves or Tables.of(pd.concat([members, others]), made, seed=file).halves
        above = (np.array(counts) > 0).sum(axis=0).tolist()
        sys.stdout.write(f"{title}: certified in {above} of {FILES}, mean {np.mean(counts, 0)}\n")
    (folder / "halves.json").write_text(json.dumps(halves), encoding="utf-8")


def evaluators(
    tables: dict[str, pd.DataFrame], halves: Any
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield Anonymeter's attacks on a file, and the options of their evaluation."""
    peers = import_module("anonymeter.evaluators")

    given = {"ori": tables["members"], "syn": tables["made"], "control": tables["others"]}
    for mode in ("univariate", "multivariate"):
        options = {**given, "n_attacks": ATTACKS, "max_attempts": ATTEMPTS}
        yield f"singling out, {mode}", peers.SinglingOutEvaluator(**options), {"mode": mode}
    linked = peers.LinkabilityEvaluator(**given, n_attacks=ATTACKS, aux_cols=halves, n_neighbors=1)
    yield "linkability", linked, {"n_jobs": 1}
    for secret in SECRETS:
        known = [name for name in tables["made"] if name != secret]
        inferred = peers.InferenceEvaluator(
            **given, n_attacks=ATTACKS, aux_cols=known, secret=secret
        )
        yield f"inference of {secret}", inferred, {"n_jobs": 1}


def read(folder: Path) -> None:
    """Print in how many files the 95 % interval of each of Anonymeter's risks is above 0."""
    halves = json.loads((folder / "halves.json").read_text(encoding="utf-8"))
    for number, title in enumerate(GENERATORS):
        above: dict[str, int] = {}
        for file in range(FILES):
            names = ("members", "others", "made")
            tables = {one: pd.read_csv(folder / f"{number}-{file}-{one}.csv") for one in names}
            for name, peer, options in evaluators(tables, halves):
                above.setdefault(name, 0)
                try:
                    peer.evaluate(**options)
                    above[name] += peer.risk(confidence_level=0.95).ci[0] > 0
                except RuntimeError:  # it found no query
                    continue
        sys.stdout.write(f"{title}: {above} of {FILES}\n")


def guess() -> None:
    """Print whether Anonymeter counts a guess of -1 as right where the secret is 50."""
    peer = import_module("anonymeter.evaluators.inference_evaluator")
    right = peer.evaluate_inference_guesses(
        guesses=pd.Series([-1.0]), secrets=pd.Series([50.0]), regression=True
    )
    sys.stdout.write(f"a guess of -1 where the secret is 50 counts as right: {bool(right[0])}\n")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    job, *places = sys.argv[1:]
    if job == "guess":
        guess()
    else:
        place = Path(places[0])
        place.mkdir(parents=True, exist_ok=True)
        {"write": write, "read": read}[job](place)
