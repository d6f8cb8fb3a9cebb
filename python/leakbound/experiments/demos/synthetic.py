"""Generators audited by the tables that they make of a made-up census.

4,000 people are split at random; each generator learns from one half and makes a table, and the
audit sees the table and all people. Copies with noise and trees with leaves of one person give
their members away, though no record is copied exactly; a Gaussian copula next to nobody; and noisy
marginals, which are ε-differentially private for replacing a person, nobody: their claim stands.
"""

import csv
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

import numpy as np

from leakbound._base.files import write_text
from leakbound._base.streams import Purpose
from leakbound._base.types import ArrayInput, FloatArray, JsonValue
from leakbound._base.validation import integer, real
from leakbound.audits import audit_synthetic
from leakbound.experiments.demos.census_data import CATEGORICAL, COLUMNS, Census
from leakbound.generators import (
    GaussianCopula,
    Generator,
    NoisyMarginals,
    Samples,
    SequentialCART,
)
from leakbound.results.synthetic import SyntheticResult

__all__ = ["Copies", "SyntheticDataReport", "SyntheticDataRow", "run"]

Progress: TypeAlias = Callable[[str, float], None]

PEOPLE = 4_000
NOISE = 0.02
"""Noise of copies, in standard deviations of each column."""
LABEL = "high_income"
CODES = (*CATEGORICAL, len(COLUMNS))
"""Columns that hold codes, the label among them."""
DOMAIN = ((18, 90), (1, 16), (0, 1), (0, 5), (1, 99), (200, 5000), (0, 10_000), (0, 1))
"""What anybody knows of the columns."""
_ERROR = 0.05
"""Probability that a headline about all generators says too much."""


@dataclass(frozen=True)
class Copies:
    """A generator that returns its members with a little noise: what an audit has to find.

    Codes of categories are copied as they are.
    """

    noise: float = NOISE
    categorical: tuple[int, ...] = CODES

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> "FittedCopies":  # noqa: ARG002
        """Keep the members."""
        table = np.asarray(members, dtype=np.float64)
        spread = self.noise * table.std(axis=0)
        spread[list(self.categorical)] = 0
        return FittedCopies(table, spread)


@dataclass(frozen=True, eq=False)
class FittedCopies:
    """Members, and how much noise is added to each column."""

    members: FloatArray
    spread: FloatArray

    def sample(self, n: int, *, seed: int) -> Samples:
        """Draw members with replacement, and add noise."""
        rng = Purpose.SYNTHETIC_COPIES.rng(seed)
        drawn = self.members[rng.integers(0, len(self.members), n)]
        return Samples(drawn + self.spread * rng.standard_normal(drawn.shape))


@dataclass(frozen=True, kw_only=True)
class SyntheticDataRow:
    """One generator and its audit.

    `epsilon` is what it claims for replacing a person, if it claims anything: `result` has the
    verdict.
    """

    name: str
    epsilon: float | None
    auc: float
    seconds: float
    result: SyntheticResult
    simultaneous: SyntheticResult

    def to_dict(self) -> dict[str, JsonValue]:
        """Return everything as numbers, strings, lists and dicts."""
        return vars(self) | {
            "result": self.result.to_dict(),
            "simultaneous": self.simultaneous.to_dict(),
        }


@dataclass(frozen=True, kw_only=True)
class SyntheticDataReport:
    """All generators of the demo."""

    rows: tuple[SyntheticDataRow, ...]
    people: int
    seed: int
    seconds: float

    def to_dict(self) -> dict[str, JsonValue]:
        """Return everything as numbers, strings, lists and dicts."""
        return vars(self) | {"rows": [row.to_dict() for row in self.rows]}


def run(
    out: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    people: int = PEOPLE,
    epsilon: float = 1.0,
    progress: Progress | None = None,
) -> SyntheticDataReport:
    """Fit the generators and audit each; with `out`, keep the tables that were audited there."""
    began = perf_counter()
    seed = integer(seed, "seed", least=0)
    everybody = Census().sample(integer(people, "people", least=100), seed=seed)
    table = np.column_stack([everybody.values, np.asarray(everybody.labels)])
    order = Purpose.SYNTHETIC_SPLIT.rng(seed).permutation(people)
    members, others = table[order[: people // 2]], table[order[people // 2 :]]
    if out is not None:
        folder = Path(out) / "tables"
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "members.csv", members)
        _write(folder / "nonmembers.csv", others)
    rows = []
    generators = list(_generators(real(epsilon, "epsilon", above=0), seed))
    for number, (name, generator, claimed) in enumerate(generators):
        if progress is not None:
            progress(name, number / len(generators))
        start = perf_counter()
        made = generator.fit(members).sample(len(members), seed=seed).values
        if out is not None:
            _write(folder / f"{name.replace(' ', '-').replace(',', '')}.csv", made)
        result, simultaneous = (
            audit_synthetic(
                _named(members),
                _named(others),
                _named(made),
                categorical=[[*COLUMNS, LABEL][code] for code in CODES],
                confidence=confidence,
                seed=seed,
                progress=False,
            )
            for confidence in (1 - _ERROR, 1 - _ERROR / len(generators))
        )
        if claimed is not None:
            result = result.with_check(epsilon=claimed, relation="replace")
        rows.append(
            SyntheticDataRow(
                name=name,
                epsilon=claimed,
                auc=result.auc,
                seconds=perf_counter() - start,
                result=result,
                simultaneous=simultaneous,
            )
        )
    return SyntheticDataReport(
        rows=tuple(rows), people=people, seed=seed, seconds=perf_counter() - began
    )


def _generators(epsilon: float, seed: int) -> Iterator[tuple[str, Generator, float | None]]:
    """Yield the name of each generator, the generator, and the ε that it claims."""
    yield "copies, 2 % noise", Copies(), None
    yield "CART, leaves of 1", SequentialCART(categorical=CODES, leaf=1), None
    yield "Gaussian copula", GaussianCopula(categorical=CODES), None
    private = NoisyMarginals(
        domain=DOMAIN, epsilon=epsilon, categorical=CODES, centre=len(COLUMNS), seed=seed
    )
    yield f"noisy marginals, ε = {epsilon:g}", private, epsilon


def _named(table: FloatArray) -> dict[str, ArrayInput]:
    return dict(zip((*COLUMNS, LABEL), table.T, strict=True))


def _write(path: Path, table: FloatArray) -> None:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*COLUMNS, LABEL))
    writer.writerows([[f"{value:.10g}" for value in row] for row in table.tolist()])
    write_text(path, text.getvalue())
