"""What each attack on a synthetic table proves: the table of docs/theory/synthetic.md, printed.

Run it as `python benches/python/synthetic_attacks.py`.
"""

import sys
from collections.abc import Callable

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes

import leakbound as lb
from leakbound._base.types import FloatArray
from leakbound.attacks.synthetic import ATTACKS
from leakbound.generators import ChowLiuTree, Samples, SequentialCART

Made = Callable[[FloatArray, int], FloatArray]
"""From members and a seed to a synthetic table."""

SPLITS = 3


def _values(samples: Samples) -> FloatArray:
    table: FloatArray = np.asarray(samples.values, dtype=np.float64)
    return table


def _noisy(records: FloatArray, spread: FloatArray, rng: np.random.Generator) -> FloatArray:
    noisy: FloatArray = records + spread * rng.standard_normal(records.shape)
    return noisy


def each(noise: float) -> Made:
    """Return what adds noise to every member."""

    def make(members: FloatArray, seed: int) -> FloatArray:
        rng = np.random.default_rng(seed)
        return _noisy(members, spread=members.std(axis=0) * noise, rng=rng)

    return make


def drawn(noise: float) -> Made:
    """Return what draws as many members as there are, with replacement, and adds noise."""

    def make(members: FloatArray, seed: int) -> FloatArray:
        rng = np.random.default_rng(seed)
        picked = members[rng.integers(0, len(members), len(members))]
        return _noisy(picked, spread=members.std(axis=0) * noise, rng=rng)

    return make


def cart(leaf: int) -> Made:
    """Return what draws from trees whose leaves have so many members."""

    def make(members: FloatArray, seed: int) -> FloatArray:
        return _values(SequentialCART(leaf=leaf).fit(members).sample(len(members), seed=seed))

    return make


def pairs(members: FloatArray, seed: int) -> FloatArray:
    """Draw from the strongest pairwise dependences."""
    return _values(ChowLiuTree().fit(members).sample(len(members), seed=seed))


def normal(members: FloatArray, seed: int) -> FloatArray:
    """Draw from the normal distribution of the members' mean and covariance."""
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal(members.mean(axis=0), np.cov(members.T), len(members))


GENERATORS: dict[str, Made] = {
    "every member once, 2 %": each(0.02),
    "members drawn, 10 %": drawn(0.1),
    "members drawn, 30 %": drawn(0.3),
    "members drawn, 60 %": drawn(0.6),
    "CART, leaves of 1": cart(1),
    "CART, leaves of 5": cart(5),
    "tree of pairs": pairs,
    "Gaussian fit": normal,
}


def halves(table: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """Split a table at random."""
    order = np.random.default_rng(seed).permutation(len(table))
    return table[order[: len(table) // 2]], table[order[len(table) // 2 :]]


def bound(table: FloatArray, make: Made, split: int, attacks: str) -> float:
    """Return the bound of an audit of one split."""
    members, others = halves(table, split)
    made = make(members, split)
    result = lb.audit_synthetic(members, others, made, attacks=attacks, challenge=False)
    return result.bound


def main() -> None:
    """Print means over splits for each attack by itself, then the default attacks together."""
    diabetes = load_diabetes(return_X_y=True)[0]
    sys.stdout.write("|".join(["generator", *ATTACKS]) + "\n")
    for name, make in GENERATORS.items():
        means = [
            np.mean(
                [bound(diabetes, make=make, split=split, attacks=attack) for split in range(SPLITS)]
            )
            for attack in ATTACKS
        ]
        sys.stdout.write("|".join([name, *(f"{mean:.2f}" for mean in means)]) + "\n")
    for table, title in (
        (diabetes, "diabetes"),
        (load_breast_cancer(return_X_y=True)[0], "cancer"),
    ):
        for name in ("every member once, 2 %", "Gaussian fit"):
            found = [
                bound(table, make=GENERATORS[name], split=split, attacks="default")
                for split in range(SPLITS)
            ]
            sys.stdout.write(f"{title}, {name}: {', '.join(f'{one:.2f}' for one in found)}\n")


if __name__ == "__main__":
    main()
