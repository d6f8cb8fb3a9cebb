"""Columns whose extremes give members away, as a run reports them."""

import numpy as np
import pytest

from leakbound.errors import LengthMismatchError
from leakbound.experiments.demos.census_data import Census, features
from leakbound.panoramia import GameScores, Panoramia
from leakbound.panoramia.report.extremes import ends_of, warnings_of_ends
from memory import Memory


def game(far: float) -> tuple[np.ndarray, GameScores]:
    """A table with a column whose members alone go beyond 3, up to `far`."""
    rng = np.random.default_rng(1)
    member = rng.random(1200) < 0.5
    income = np.where(member, far * rng.random(1200), 3 * rng.random(1200))
    table = np.column_stack([rng.normal(size=1200), income])
    return table, GameScores(4, "generated", member, income.copy(), {}, {})


def test_a_heavy_tail_is_named_with_what_it_proves() -> None:
    table, played = game(9.0)
    ends = ends_of(table, played, ("age", "income"))
    assert (ends[0].name, ends[0].side) == ("income", "high")
    assert ends[0].beyond > 100
    assert ends[0].guesses == ends[0].beyond
    assert ends[0].c_lb > 2
    (note,) = warnings_of_ends(ends, 4.0)
    assert note.startswith(f"income gives members away at its high end: {ends[0].beyond} of them")
    assert "of the baseline's 4.00" in note
    assert warnings_of_ends(ends, 3 * ends[0].c_lb) == ()


def test_ends_like_those_of_members_prove_nothing() -> None:
    table, played = game(3.0)
    ends = ends_of(table, played, None)
    assert all(end.name.startswith("feature ") for end in ends)
    assert all(end.c_lb == 0 and 0 < end.beyond < 10 for end in ends)
    assert warnings_of_ends(ends, 0.0) == ()


def test_columns_need_as_many_names() -> None:
    people = Census().sample(600, seed=5)
    assert people.labels is not None
    audit = Panoramia(Census(), inputs=features, columns=("age",), seeds=(0,))
    with pytest.raises(LengthMismatchError, match="columns has 1 names and members have examples"):
        audit.run(
            target=Memory(people.values, people.labels), members=(people.values, people.labels)
        )
