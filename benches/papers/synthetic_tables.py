"""Generators audited by the tables that they make of a made-up census.

4,000 people are split at random; each generator learns from one half and makes a table, and the
audit sees the table and all people. Copies with noise and trees with leaves of one person give
their members away, though no record is copied exactly; a Chow–Liu tree next to nobody, unless a
few of its records are copies; and noisy marginals, which are ε-differentially private for replacing
a person, nobody: their claim stands.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from census import CATEGORICAL, COLUMNS, Census
from leakbound._base.types import FloatArray
from leakbound.audits import audit_synthetic
from leakbound.generators import ChowLiuTree, NoisyMarginals, SequentialCART
from leakbound.results.synthetic import SyntheticResult
from outcomes import Cell, Outcome, Reproduction
from streams import generator

__all__ = ["CODES", "DOMAIN", "SYNTHETIC", "audits"]

PEOPLE, QUICK = 4_000, 600
NOISE = 0.02
"""Noise of copies, in standard deviations of each column; codes are copied as they are."""
FEW = 0.05
"""Share of copies in a table that a tree of pairs made for the rest."""
EPSILON = 1.0
"""What the noisy marginals claim."""
NAMES = (*COLUMNS, "high_income")
CODES = (*CATEGORICAL, len(COLUMNS))
"""Columns that hold codes, the label among them."""
DOMAIN = ((18, 90), (1, 16), (0, 1), (0, 5), (1, 99), (200, 5000), (0, 10_000), (0, 1))
"""What anybody knows of the columns."""


def audits(people: int, seed: int = 0) -> Iterator[tuple[str, SyntheticResult]]:
    """Yield the name of each generator and the audit of its table."""
    everybody = Census().sample(people, seed=seed)
    table = np.column_stack([everybody.values, np.asarray(everybody.labels)])
    order = generator("demos/synthetic-split", seed).permutation(people)
    members, others = table[order[: people // 2]], table[order[people // 2 :]]
    for name, made in _tables(members, seed):
        tables = (dict(zip(NAMES, part.T, strict=True)) for part in (members, others, made))
        codes: dict[str, Any] = {NAMES[code]: "codes" for code in CODES}
        yield name, audit_synthetic(*tables, columns=codes, seed=seed)


def _tables(members: FloatArray, seed: int) -> Iterator[tuple[str, FloatArray]]:
    n = len(members)
    spread = NOISE * members.std(axis=0)
    spread[list(CODES)] = 0
    rng = generator("demos/synthetic-copies", seed)
    drawn = members[rng.integers(0, n, n)]
    copies = drawn + spread * rng.standard_normal(drawn.shape)
    yield "copies, 2 % noise", copies
    trees = SequentialCART(categorical=CODES, leaf=1).fit(members)
    yield "CART, leaves of 1", trees.sample(n, seed=seed).values
    pairs = ChowLiuTree(categorical=CODES).fit(members).sample(n, seed=seed).values
    yield "tree of pairs", pairs
    few = round(FEW * n)
    yield "tree of pairs, 5 % of it copies", np.concatenate([copies[:few], pairs[few:]])
    private = NoisyMarginals(
        domain=DOMAIN, epsilon=EPSILON, categorical=CODES, centre=len(COLUMNS), seed=seed
    )
    yield f"noisy marginals, ε = {EPSILON:g}", private.fit(members).sample(n, seed=seed).values


def _table(*, full: bool) -> Outcome:
    rows: list[tuple[Cell, ...]] = []
    for name, result in audits(PEOPLE if full else QUICK):
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
        notes=(
            "Half of the people are members, and each table has as many. All but ε are metrics.",
        ),
    )


SYNTHETIC: dict[str, Reproduction] = {
    "synthetic-tables": Reproduction(
        "Generators by the tables that they make, beside similarity metrics",
        "docs/synthetic.md",
        _table,
    ),
}
"""Reproductions by name."""
