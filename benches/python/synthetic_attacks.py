"""What each attack on a synthetic table proves: the table of docs/theory/synthetic.md, printed.

Run it as `python benches/python/synthetic_attacks.py`.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes

import leakbound as lb
from leakbound._base.types import FloatArray
from leakbound.attacks.synthetic import ATTACKS
from leakbound.generators import ChowLiuTree, Samples, SequentialCART

Generator: TypeAlias = Callable[[FloatArray, int], FloatArray]
"""From members and a seed to a synthetic table."""

SPLITS = 3


def _values(samples: Samples) -> FloatArray:
    table: FloatArray = np.asarray(samples.values, dtype=np.float64)
    return table


def _with_noise(
    records: FloatArray, members: FloatArray, relative_noise: float, rng: np.random.Generator
) -> FloatArray:
    """Return records with noise in units of the members' standard deviations."""
    standard_deviations = members.std(axis=0) * relative_noise
    noisy_records: FloatArray = records + standard_deviations * rng.standard_normal(records.shape)
    return noisy_records


def every_member_with_noise(relative_noise: float) -> Generator:
    """Return what adds noise to every member."""

    def generate(members: FloatArray, seed: int) -> FloatArray:
        rng = np.random.default_rng(seed)
        return _with_noise(members, members, relative_noise, rng)

    return generate


def drawn_members_with_noise(relative_noise: float) -> Generator:
    """Return what draws as many members as there are, with replacement, and adds noise."""

    def generate(members: FloatArray, seed: int) -> FloatArray:
        rng = np.random.default_rng(seed)
        drawn_rows = rng.integers(0, len(members), size=len(members))
        return _with_noise(members[drawn_rows], members, relative_noise, rng)

    return generate


def cart(leaf: int) -> Generator:
    """Return what draws from trees whose leaves have so many members."""

    def generate(members: FloatArray, seed: int) -> FloatArray:
        fitted = SequentialCART(leaf=leaf).fit(members)
        return _values(fitted.sample(len(members), seed=seed))

    return generate


def pairs(members: FloatArray, seed: int) -> FloatArray:
    """Draw from the strongest pairwise dependences."""
    fitted = ChowLiuTree().fit(members)
    return _values(fitted.sample(len(members), seed=seed))


def normal(members: FloatArray, seed: int) -> FloatArray:
    """Draw from the normal distribution of the members' mean and covariance."""
    rng = np.random.default_rng(seed)
    mean = members.mean(axis=0)
    covariance = np.cov(members.T)
    return rng.multivariate_normal(mean=mean, cov=covariance, size=len(members))


GENERATORS: dict[str, Generator] = {
    "every member once, 2 %": every_member_with_noise(0.02),
    "members drawn, 10 %": drawn_members_with_noise(0.1),
    "members drawn, 30 %": drawn_members_with_noise(0.3),
    "members drawn, 60 %": drawn_members_with_noise(0.6),
    "CART, leaves of 1": cart(1),
    "CART, leaves of 5": cart(5),
    "tree of pairs": pairs,
    "Gaussian fit": normal,
}


def bounds_of_splits(table: FloatArray, generator: Generator, attacks: str) -> list[float]:
    """Return the bounds of audits of some splits."""
    bounds = []
    for split in range(SPLITS):
        order = np.random.default_rng(split).permutation(len(table))
        members, others = np.split(table[order], [len(table) // 2])
        synthetic = generator(members, split)
        result = lb.audit_synthetic(
            members, others, synthetic, attacks=attacks, challenge=False, seed=split
        )
        bounds.append(result.bound)
    return bounds


def main() -> None:
    """Print means over splits for each attack by itself, then the default attacks together."""
    diabetes, _ = load_diabetes(return_X_y=True)
    cancer, _ = load_breast_cancer(return_X_y=True)
    print("generator", *ATTACKS, sep="|")
    for name, generator in GENERATORS.items():
        cells = [name]
        for attack in ATTACKS:
            bounds = bounds_of_splits(diabetes, generator, attacks=attack)
            cells.append(f"{np.mean(bounds):.2f}")
        print(*cells, sep="|", flush=True)
    for title, table in (("diabetes", diabetes), ("cancer", cancer)):
        for name in ("every member once, 2 %", "Gaussian fit"):
            bounds = bounds_of_splits(table, GENERATORS[name], attacks="default")
            rounded_bounds = ", ".join(f"{bound:.2f}" for bound in bounds)
            print(f"{title}, {name}: {rounded_bounds}", flush=True)


if __name__ == "__main__":
    main()
