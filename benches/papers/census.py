"""People drawn from a made-up census: a procedural table with columns of every kind.

The process is known, so that it is also the perfect generator: an audit of its samples against its
members shows what the target leaks and nothing else.
"""

from dataclasses import dataclass

import numpy as np

from leakbound._base.numerics import expit
from leakbound._base.types import ArrayInput, FloatArray
from leakbound.generators import Samples
from streams import generator

__all__ = ["CATEGORICAL", "COLUMNS", "Census", "features"]

COLUMNS = ("age", "schooling", "sex", "occupation", "hours", "weight", "gains")
"""What the columns of the table hold: see `Census`."""
CATEGORICAL = (2, 3)
"""Positions of the columns that hold codes."""
OCCUPATIONS = (0.25, 0.2, 0.2, 0.15, 0.1, 0.1)
"""Share of each occupation."""
LOG_ODDS_OF_OCCUPATION = (0.0, 0.1, 0.5, 0.0, -0.6, 0.0)
"""What each occupation adds to the log-odds of a high income."""
SHARE_WITH_GAINS = 0.08
"""Share of people with capital gains."""
FLIPPED_SHARE = 0.15
"""Share of labels that are turned round: what a target can only memorise."""


@dataclass(frozen=True)
class Census:
    """Where the people come from: a generator that knows the truth, and needs no members.

    Columns are the age (whole years), years of schooling, sex (0 or 1), occupation (0 to 5), hours
    worked a week, the weight of the person in the survey (a positive number, independent of all
    else) and capital gains (multiples of ten; mostly 0). The label is 1 for a high income: its
    log-odds are linear in the columns, and 15 % of labels are turned round.

    Examples
    --------
    >>> people = Census().sample(4000, seed=0)
    >>> people
    Samples(n=4000, shape=(7,), labels=2)
    >>> features(people.values).shape
    (4000, 12)
    """

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> "Census":  # noqa: ARG002
        """Return the process itself: there is nothing to learn."""
        return self

    def sample(self, n: int, *, seed: int) -> Samples:
        """Draw people."""
        rng = generator("demos/census", seed)
        age = whole_numbers(rng.normal(loc=42, scale=13, size=n), least=18, most=90)
        schooling = whole_numbers(rng.normal(loc=10, scale=2.6, size=n), least=1, most=16)
        sex = rng.integers(0, 2, size=n)
        occupation = rng.choice(len(OCCUPATIONS), size=n, p=OCCUPATIONS)
        mean_hours = 38 + 0.4 * (schooling - 10)
        hours = whole_numbers(rng.normal(loc=mean_hours, scale=9), least=1, most=99)
        log_weight = rng.normal(loc=0, scale=0.4, size=n)
        weight = 1000 * np.exp(log_weight)
        gains_if_any = 500 + 9500 * rng.beta(a=2, b=5, size=n)
        has_gains = rng.random(n) < SHARE_WITH_GAINS
        gains = np.where(has_gains, gains_if_any.round(-1), 0)
        log_odds = (
            0.08 * (age - 42)
            + 0.5 * (schooling - 10)
            + 0.07 * (hours - 38)
            + 0.5 * (sex - 0.5)
            + np.array(LOG_ODDS_OF_OCCUPATION)[occupation]
            + np.minimum(gains, 10_000) / 4000
        )
        has_high_income = rng.random(n) < expit(log_odds)
        is_flipped = rng.random(n) < FLIPPED_SHARE
        labels = has_high_income ^ is_flipped
        columns = [age, schooling, sex, occupation, hours, weight, gains]
        return Samples(values=np.column_stack(columns), labels=labels.astype(np.int64))


def whole_numbers(values: FloatArray, *, least: float, most: float) -> FloatArray:
    """Return values rounded, and moved to the end of a range if they are beyond it."""
    return np.clip(values, a_min=least, a_max=most).round()


def features(table: FloatArray) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return what a network is trained on: columns of about unit size, occupations one by one."""
    age, schooling, sex, occupation, hours, weight, gains = table.T
    occupation_codes = np.arange(len(OCCUPATIONS))[:, None]
    columns = [
        (age - 42) / 13,
        (schooling - 10) / 2.6,
        sex - 0.5,
        (hours - 38) / 9,
        np.log(weight / 1000) / 0.4,
        np.log1p(gains) / 4,
        *(occupation == occupation_codes),
    ]
    return np.stack(columns, axis=1, dtype=np.float32, casting="same_kind")
