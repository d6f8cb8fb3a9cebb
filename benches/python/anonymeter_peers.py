"""Certified counts next to the intervals of Anonymeter, on the same files.

Anonymeter needs an environment of its own (`pip install anonymeter`):

    python benches/python/anonymeter_peers.py write FOLDER      tables, and what leakbound certifies
    python benches/python/anonymeter_peers.py read FOLDER       what Anonymeter finds in them
    python benches/python/anonymeter_peers.py guess             a guess that it counts as right
"""

import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
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
    ages = rng.gamma(shape=9, scale=6, size=people)
    age = np.clip(ages, a_min=18, a_max=99).round()
    ward = rng.choice(7, size=people, p=[0.3, 0.2, 0.15, 0.12, 0.1, 0.08, 0.05])
    mean_log_stay = 0.8 + 0.15 * ward + 0.01 * (age - 50)
    stay = np.ceil(rng.lognormal(mean=mean_log_stay, sigma=0.7))
    log_cost_per_day = rng.normal(loc=6.5 + 0.05 * ward, scale=0.4, size=people)
    cost = np.exp(log_cost_per_day) * stay**0.8
    noise_of_cholesterol = rng.normal(loc=0, scale=0.8, size=people)
    cholesterol = 3.5 + 0.02 * age + noise_of_cholesterol
    diagnosis_group = age // 12 + ward * 3 + rng.integers(0, 4, size=people)
    diagnosis_codes = diagnosis_group.astype(int) % 40
    sex = rng.choice(["f", "m"], size=people)
    admission_day = rng.integers(0, 730, size=people)
    noise_of_pressure = rng.normal(loc=0, scale=12, size=people)
    pressure = 110 + 0.4 * age + noise_of_pressure
    cholesterol[rng.random(people) < 0.15] = np.nan
    region_codes = rng.integers(0, 25, size=people)
    return pd.DataFrame(
        {
            "age": age,
            "ward": pd.Categorical.from_codes(ward, list("ABCDEFG")).astype(str),
            "sex": sex,
            "admitted": admission_day,
            "stay": stay,
            "cost": cost.round(2),
            "pressure": pressure.round(),
            "cholesterol": cholesterol.round(2),
            "diagnosis": [f"I{code:02d}" for code in diagnosis_codes],
            "region": [f"R{code:02d}" for code in region_codes],
        }
    )


def with_noise(
    rows: pd.DataFrame, population: pd.DataFrame, rng: np.random.Generator
) -> pd.DataFrame:
    """Return rows whose numbers have noise of 2 % of their standard deviation, rounded alike."""
    noisy_rows = rows.copy()
    for name in noisy_rows.select_dtypes("number"):
        standard_deviation = population[name].std()
        noise = 0.02 * standard_deviation * rng.normal(size=len(rows))
        decimals = 0
        if name in {"cost", "cholesterol"}:
            decimals = 2
        noisy_column = noisy_rows[name] + noise
        noisy_rows[name] = noisy_column.round(decimals)
    return noisy_rows


def copying_generator(
    copied_share: float,
) -> Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]:
    """Return a generator of fresh people, a share of whom are members with a little noise."""

    def synthesise(members: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
        copies = round(copied_share * PEOPLE)
        copied_rows = rng.choice(PEOPLE, size=copies, replace=False)
        fresh_people = visits(rng, PEOPLE - copies)
        copied_members = members.iloc[copied_rows]
        copied_people = with_noise(copied_members, population=members, rng=rng)
        return pd.concat([fresh_people, copied_people], ignore_index=True)

    return synthesise


GENERATORS = {
    "nothing": copying_generator(0.0),
    "5 % copies": copying_generator(0.05),
    "1 % copies": copying_generator(0.01),
}


def table_path(folder: Path, generator: int, file: int, table: str) -> Path:
    """Return where a table is: "members", "others" or "made", of a generator."""
    return folder / f"{generator}-{file}-{table}.csv"


def path_of_halves(folder: Path) -> Path:
    """Return where the columns of each half are, which linkability attacks take."""
    return folder / "halves.json"


def write(folder: Path) -> None:
    """Write tables, and print in how many files each risk has a certified count."""
    import leakbound as lb
    from leakbound.attacks.synthetic import Tables

    halves: Any = None
    for number, (title, synthesise) in enumerate(GENERATORS.items()):
        certified_counts = []
        for file in range(FILES):
            rng = np.random.default_rng([number, file])
            members = visits(rng, PEOPLE)
            others = visits(rng, PEOPLE)
            synthetic = synthesise(members, rng)
            tables = {"members": members, "others": others, "made": synthetic}
            for name, table in tables.items():
                table.to_csv(table_path(folder, number, file, name), index=False)
            result = lb.audit_synthetic(members, others, synthetic, challenge=False, seed=file)
            risks = result.risks or ()
            certified_counts.append([risk.certified or 0 for _, risk in risks])
            if halves is None:
                real_people = pd.concat([members, others])
                halves = Tables.of(real_people, synthetic, seed=file).halves
        files_above_0 = np.count_nonzero(certified_counts, axis=0).tolist()
        mean_counts = np.mean(certified_counts, axis=0)
        print(f"{title}: certified in {files_above_0} of {FILES}, mean {mean_counts}")
    path_of_halves(folder).write_text(json.dumps(halves), encoding="utf-8")


def evaluators(
    tables: dict[str, pd.DataFrame], halves: Any
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield Anonymeter's attacks on a file, and the options of their evaluation."""
    anonymeter = import_module("anonymeter.evaluators")

    options = {
        "ori": tables["members"],
        "syn": tables["made"],
        "control": tables["others"],
        "n_attacks": ATTACKS,
    }
    for mode in ("univariate", "multivariate"):
        singling_out = anonymeter.SinglingOutEvaluator(**options, max_attempts=ATTEMPTS)
        yield f"singling out, {mode}", singling_out, {"mode": mode}
    linkability = anonymeter.LinkabilityEvaluator(**options, aux_cols=halves, n_neighbors=1)
    yield "linkability", linkability, {"n_jobs": 1}
    for secret in SECRETS:
        known_columns = [name for name in tables["made"] if name != secret]
        inference = anonymeter.InferenceEvaluator(**options, aux_cols=known_columns, secret=secret)
        yield f"inference of {secret}", inference, {"n_jobs": 1}


def read(folder: Path) -> None:
    """Print in how many files the 95 % interval of each of Anonymeter's risks is above 0."""
    halves = json.loads(path_of_halves(folder).read_text(encoding="utf-8"))
    for number, title in enumerate(GENERATORS):
        files_above_0 = Counter[str]()
        for file in range(FILES):
            tables = {}
            for name in ("members", "others", "made"):
                tables[name] = pd.read_csv(table_path(folder, number, file, name))
            for attack, evaluator, options in evaluators(tables, halves):
                lower_limit = 0.0
                with suppress(RuntimeError):  # it found no query
                    evaluator.evaluate(**options)
                    lower_limit, _ = evaluator.risk(confidence_level=0.95).ci
                files_above_0[attack] += lower_limit > 0
        print(f"{title}: {dict(files_above_0)} of {FILES}")


def guess() -> None:
    """Print whether Anonymeter counts a guess of -1 as right where the secret is 50."""
    anonymeter = import_module("anonymeter.evaluators.inference_evaluator")
    is_right = anonymeter.evaluate_inference_guesses(
        guesses=pd.Series([-1.0]), secrets=pd.Series([50.0]), regression=True
    )
    print(f"a guess of -1 where the secret is 50 counts as right: {bool(is_right[0])}")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    command, *folders = sys.argv[1:]
    if command == "guess":
        guess()
    else:
        folder = Path(folders[0])
        folder.mkdir(parents=True, exist_ok=True)
        commands = {"write": write, "read": read}
        commands[command](folder)
