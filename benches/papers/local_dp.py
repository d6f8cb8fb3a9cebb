"""Audits of local randomisers next to LDP-Auditor (Arcolezi and Gambs 2023, arXiv 2309.01797).

`python benches/papers/local_dp.py [proved] [two] [wrong]` prints the tables of
`docs/audits/local-dp.md` and more.

LDP-Auditor takes n/2 reports of value 0 and n/2 of value k - 1. Its attack guesses the value: the
report itself under GRR, under unary encodings one of the bits that are 1, at random. It prints
ln(TPR / FPR) for the guess "0", from a lower limit of Clopper and Pearson for TPR and an upper one
for FPR. Its code halves α twice: once for two limits, and once as each is one end of a two-sided
interval. The first column repeats that, the second one halves α once. `Fixed` guesses about all
reports whose log ratio is not 0.
"""

import math
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

import leakbound as lb
from leakbound._base.types import BoolArray, FloatArray
from leakbound.mechanisms import GRR, OUE, SUE
from printed_tables import Row, print_tables

PROTOCOLS: tuple[Any, ...] = (GRR, OUE, SUE)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 10.0)
KS = (2, 25, 100)
GAMES = 20
COLUMNS = ("LDP-Auditor", "LDP-Auditor, alpha halved once", "default", "Fixed")


def guesses_of_value_0(randomizer: Any, value: int, n: int, rng: np.random.Generator) -> int:
    """Return how many of n reports of users with a value are guessed to be of value 0."""
    values = np.full(n, fill_value=value)
    reports = randomizer.reports(values, rng)
    if reports.ndim == 1:
        return int((reports == 0).sum())
    # Unary encodings: one of the bits that are 1 is guessed, or any value if there is none.
    bits_that_are_1 = reports.sum(axis=1)
    probability_if_any = reports[:, 0] / np.maximum(bits_that_are_1, 1)
    probability = np.where(bits_that_are_1, probability_if_any, 1 / randomizer.k)
    is_guessed = rng.random(n) < probability
    return int(is_guessed.sum())


def ldp_auditor(
    randomizer: Any, n: int, rng: np.random.Generator, alpha: float
) -> tuple[float, float]:
    """Return what LDP-Auditor prints at α, and what it would if it halved α once."""
    reports = n // 2
    last_value = randomizer.k - 1
    true_positives = guesses_of_value_0(randomizer, value=0, n=reports, rng=rng)
    false_positives = guesses_of_value_0(randomizer, value=last_value, n=reports, rng=rng)
    epsilon_at = partial(clopper_pearson_epsilon, true_positives, false_positives, reports)
    return epsilon_at(alpha / 4), epsilon_at(alpha / 2)


def clopper_pearson_epsilon(
    true_positives: int, false_positives: int, reports: int, beta: float
) -> float:
    """Return ln of a lower limit of the TPR over an upper one of the FPR, each at level β."""
    if not true_positives:
        return -math.inf
    lowest_tpr = stats.beta.ppf(beta, a=true_positives, b=reports - true_positives + 1)
    highest_fpr = 1.0
    if false_positives < reports:
        highest_fpr = stats.beta.isf(beta, a=false_positives + 1, b=reports - false_positives)
    if not lowest_tpr:
        return -math.inf
    return math.log(lowest_tpr / highest_fpr)


def log_ratios_of_reports(
    randomizer: Any, member: BoolArray, rng: np.random.Generator
) -> FloatArray:
    """Return log ratios of reports of value 0, by members, and of the last value, by others."""
    last_value = randomizer.k - 1
    values = np.where(member, 0, last_value)
    reports = randomizer.reports(values, rng)
    log_ratios: FloatArray = randomizer.log_ratio(reports, 0, last_value)
    return log_ratios


def our_bounds(
    randomizer: Any, n: int, rng: np.random.Generator, alpha: float, seed: int
) -> tuple[float, float]:
    """Return the default bound, and that of all reports whose log ratio is not 0."""
    member = rng.random(n) < 0.5
    log_ratios = log_ratios_of_reports(randomizer, member, rng)
    informative_reports = int(np.count_nonzero(log_ratios))
    audit = partial(lb.audit, log_ratios, lb.Trials(member), confidence=1 - alpha, seed=seed)
    default = audit()
    fixed = audit(cuts=lb.Fixed(max(informative_reports, 1)))
    return default.bound, fixed.bound


def bounds_of_games(randomizer: Any, n: int, alpha: float, games: int) -> pd.DataFrame:
    """Return a row of bounds for each game; a bound below 0 counts as 0."""
    rows = []
    for seed in range(games):
        rng = np.random.default_rng(seed)
        of_ldp_auditor = ldp_auditor(randomizer, n=n, rng=rng, alpha=alpha)
        of_ours = our_bounds(randomizer, n=n, rng=rng, alpha=alpha, seed=seed)
        rows.append([*of_ldp_auditor, *of_ours])
    return pd.DataFrame(rows, columns=COLUMNS).clip(lower=0)


def proved() -> Iterator[Row]:
    """Yield mean bounds over ε at 99 % confidence, the level of LDP-Auditor."""
    means_of_rows = []
    settings = product((1_000, 10_000, 100_000), PROTOCOLS, KS, EPSILONS)
    for n, protocol, k, epsilon in settings:
        bounds = bounds_of_games(protocol(k, epsilon), n=n, alpha=0.01, games=GAMES)
        means = bounds.mean()
        means_of_rows.append(means)
        yield n, protocol.__name__, k, f"{epsilon:g}", *(means / epsilon)
    _, halved_once, default, fixed = np.transpose(means_of_rows)
    default_below = np.count_nonzero(default < halved_once)
    fixed_below = np.count_nonzero(fixed < halved_once)
    rows = len(means_of_rows)
    counts = f"default {default_below}, Fixed {fixed_below} of {rows} rows"
    yield [f"below the second column: {counts}"]


def two() -> Iterator[Row]:
    """Yield mean bounds over ε of two values, 10,000 reports and 95 % confidence."""
    for protocol, epsilon in product(PROTOCOLS, EPSILONS):
        bounds = bounds_of_games(protocol(2, epsilon), n=10_000, alpha=0.05, games=GAMES)
        shares_of_epsilon = bounds.mean() / epsilon
        yield protocol.__name__, f"{epsilon:g}", *shares_of_epsilon.map("{:.3f}".format)


def wrong() -> Iterator[Row]:
    """Yield how many bounds are above ε, of 2,000 games with 1,000 reports at 95 % confidence."""
    for protocol, k, epsilon in product(PROTOCOLS, (2, 25), (0.25, 1.0, 4.0)):
        bounds = bounds_of_games(protocol(k, epsilon), n=1_000, alpha=0.05, games=2_000)
        false_bounds = (bounds > epsilon).sum()
        yield protocol.__name__, k, f"{epsilon:g}", *false_bounds


if __name__ == "__main__":
    print_tables({"proved": proved, "two": two, "wrong": wrong}, columns=" | ".join(COLUMNS))
