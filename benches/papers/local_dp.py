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
import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from scipy import stats

import leakbound as lb
from leakbound.mechanisms import GRR, OUE, SUE

PROTOCOLS: tuple[Any, ...] = (GRR, OUE, SUE)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 10.0)
KS = (2, 25, 100)
GAMES = 20
COLUMNS = ("LDP-Auditor", "LDP-Auditor, alpha halved once", "default", "Fixed")


def right(randomizer: Any, value: int, n: int, rng: np.random.Generator) -> int:
    """Return how many of n reports of users with a value are guessed to be of value 0."""
    reports = randomizer.reports(np.full(n, value), rng)
    if reports.ndim == 1:
        return int((reports == 0).sum())
    ones = reports.sum(axis=1)
    chance = np.where(ones == 0, 1 / randomizer.k, reports[:, 0] / np.maximum(ones, 1))
    return int((rng.random(n) < chance).sum())


def ldp_auditor(
    randomizer: Any, n: int, rng: np.random.Generator, alpha: float
) -> tuple[float, float]:
    """Return what LDP-Auditor prints at α, and what it would if it halved α once."""
    each = n // 2
    true = right(randomizer, value=0, n=each, rng=rng)
    false = right(randomizer, value=randomizer.k - 1, n=each, rng=rng)
    found = []
    for beta in (alpha / 4, alpha / 2):
        low = 0.0
        if true:
            low = stats.beta.ppf(beta, true, each - true + 1)
        high = 1.0
        if false < each:
            high = stats.beta.isf(beta, false + 1, each - false)
        epsilon = -math.inf
        if low:
            epsilon = math.log(low / high)
        found.append(epsilon)
    return found[0], found[1]


def ours(
    randomizer: Any, n: int, rng: np.random.Generator, alpha: float, seed: int
) -> tuple[float, float]:
    """Return the default bound, and that of all reports whose log ratio is not 0."""
    member = rng.random(n) < 0.5
    last = randomizer.k - 1
    reports = randomizer.reports(np.where(member, 0, last), rng)
    scores = randomizer.log_ratio(reports, 0, last)
    design = lb.Trials(member)
    told = int(np.count_nonzero(scores))
    default = lb.audit(scores, design, confidence=1 - alpha, seed=seed)
    fixed = lb.audit(scores, design, confidence=1 - alpha, seed=seed, cuts=lb.Fixed(max(told, 1)))
    return default.bound, fixed.bound


def bounds(randomizer: Any, n: int, alpha: float, games: int) -> np.ndarray[Any, Any]:
    """Return the bounds of all ways in all games, one row each; what is below 0 counts as 0."""
    found = []
    for seed in range(games):
        rng = np.random.default_rng(seed)
        theirs = ldp_auditor(randomizer, n=n, rng=rng, alpha=alpha)
        found.append([*theirs, *ours(randomizer, n=n, rng=rng, alpha=alpha, seed=seed)])
    return np.maximum(found, 0)


def proved() -> Iterator[str]:
    """Yield mean bounds over ε at 99 % confidence, the level of LDP-Auditor."""
    cells = 0
    below = [0, 0]
    for n, kind, k in product((1_000, 10_000, 100_000), PROTOCOLS, KS):
        for epsilon in EPSILONS:
            mean = bounds(kind(k, epsilon), n=n, alpha=0.01, games=GAMES).mean(axis=0)
            cells += 1
            below = [a + (b < mean[1]) for a, b in zip(below, mean[2:], strict=True)]
            shares = " | ".join(f"{one / epsilon:.2f}" for one in mean)
            yield f"{n:,} | {kind.__name__} | {k} | {epsilon:g} | {shares}"
    yield f"below the second column: default {below[0]}, Fixed {below[1]} of {cells} rows"


def two() -> Iterator[str]:
    """Yield mean bounds over ε of two values, 10,000 reports and 95 % confidence."""
    for kind, epsilon in product(PROTOCOLS, EPSILONS):
        mean = bounds(kind(2, epsilon), n=10_000, alpha=0.05, games=GAMES).mean(axis=0) / epsilon
        yield f"{kind.__name__} | {epsilon:g} | " + " | ".join(f"{one:.3f}" for one in mean)


def wrong() -> Iterator[str]:
    """Yield how many bounds are above ε, of 2,000 games with 1,000 reports at 95 % confidence."""
    games = 2_000
    for kind, k, epsilon in product(PROTOCOLS, (2, 25), (0.25, 1.0, 4.0)):
        false = (bounds(kind(k, epsilon), n=1_000, alpha=0.05, games=games) > epsilon).sum(axis=0)
        yield f"{kind.__name__} | {k} | {epsilon:g} | " + " | ".join(map(str, false.tolist()))


TABLES = {one.__name__: one for one in (proved, two, wrong)}

if __name__ == "__main__":
    for table in sys.argv[1:] or TABLES:
        print(f"\n{table}: " + " | ".join(COLUMNS))  # noqa: T201 (what the command prints)
        for row in TABLES[table]():
            print(row, flush=True)  # noqa: T201
