"""Generators audited by the tables that they make of UCI Adult.

4,000 people are split at random; each generator learns from one half and makes a table, and the
audit sees the table and all people. Copies with noise and trees with leaves of one person give
their members away, though no record is copied exactly; a tree of pairs next to nobody, unless a
few of its records are copies; and noisy marginals, which are ε-differentially private for replacing
a person, nobody: their claim stands.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from leakbound._base.types import FloatArray
from leakbound.audits import audit_synthetic
from leakbound.generators import ChowLiuTree, SequentialCART
from leakbound.results.synthetic import SyntheticResult
from noisy_marginals import NoisyMarginals
from outcomes import Cell, Outcome, Reproduction
from real_data import Table, adult
from streams import generator

__all__ = ["SYNTHETIC", "audits"]

PEOPLE = 4_000
QUICK = 600
NOISE = 0.02
"""Noise of copies, in standard deviations of each column; codes are copied as they are."""
FEW = 0.05
"""Share of copies in a table that a tree of pairs made for the rest."""
EPSILON = 1.0
"""What the noisy marginals claim."""
NUMBERS = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 4_356),
    "hours-per-week": (1, 99),
    "fnlwgt": (10_000, 1_500_000),
}
"""What anybody knows of the columns that hold numbers."""
_SPLIT = (
    "UCI Adult. Half of the people are members, and each table has as many. All but ε are metrics."
)


def audits(people: int, seed: int = 0) -> Iterator[tuple[str, SyntheticResult]]:
    """Yield the name of each generator and the audit of its table."""
    known = adult()
    names = (*known.columns, "high_income")
    codes = (*known.categorical, len(known.columns))
    order = generator("papers/synthetic-split", seed).permutation(len(known.labels))[:people]
    table = np.column_stack([known.values[order], known.labels[order]])
    members = table[: people // 2]
    others = table[people // 2 :]
    for name, made in _tables(members, known=known, codes=codes, seed=seed):
        tables = (dict(zip(names, part.T, strict=True)) for part in (members, others, made))
        of_codes: dict[str, Any] = {names[code]: "codes" for code in codes}
        yield name, audit_synthetic(*tables, columns=of_codes, seed=seed)


def _tables(
    members: FloatArray, known: Table, codes: tuple[int, ...], seed: int
) -> Iterator[tuple[str, FloatArray]]:
    n = len(members)
    spread = NOISE * members.std(axis=0)
    spread[list(codes)] = 0
    rng = generator("papers/synthetic-copies", seed)
    drawn = members[rng.integers(0, n, size=n)]
    copies = drawn + spread * rng.standard_normal(drawn.shape)
    yield "copies, 2 % noise", copies
    trees = SequentialCART(categorical=codes, leaf=1).fit(members)
    yield "CART, leaves of 1", trees.sample(n, seed=seed).values
    pairs = ChowLiuTree(categorical=codes).fit(members).sample(n, seed=seed).values
    yield "tree of pairs", pairs
    few = round(FEW * n)
    yield "tree of pairs, 5 % of it copies", np.concatenate([copies[:few], pairs[few:]])
    domain = [NUMBERS.get(name) or (0, len(known.categories[name]) - 1) for name in known.columns]
    private = NoisyMarginals(
        domain=(*domain, (0, 1)),
        epsilon=EPSILON,
        categorical=codes,
        centre=len(known.columns),
        seed=seed,
    )
    yield f"noisy marginals, ε = {EPSILON:g}", private.fit(members).sample(n, seed=seed).values


def _table(*, full: bool, m: int | None = None, seed: int = 0) -> Outcome:
    rows: list[tuple[Cell, ...]] = []
    for name, result in audits(m or (PEOPLE if full else QUICK), seed):
        found = result.similarity
        rows.append(
            (
                name,
                result.bound,
                result.ceiling,
                found.copies_of_members,
                found.closer_to_members,
                found.distance_to_members,
                found.distance_to_nonmembers,
                found.ratio_to_members,
                found.ratio_to_nonmembers,
                found.marginals,
                found.correlations,
            )
        )
    return Outcome(
        columns=(
            "generator",
            "ε of replacing one at least",
            "ceiling",
            "equal to a member",
            "closer to a member",
            "DCR, members",
            "DCR, others",
            "NNDR, members",
            "NNDR, others",
            "marginals",
            "correlations",
        ),
        rows=tuple(rows),
        notes=(_SPLIT,),
    )


SYNTHETIC: dict[str, Reproduction] = {
    "synthetic-tables": Reproduction(
        title="Generators of tables: bounds and similarity metrics",
        source="docs/theory/synthetic.md",
        compute=_table,
    ),
}
"""Reproductions by name."""
