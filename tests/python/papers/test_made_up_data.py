"""The procedural data sets that members and non-members are drawn from."""

import numpy as np
import pytest

from census import CATEGORICAL, COLUMNS, Census, features
from glyphs import Glyphs
from leakbound.generators import Generator, Sampler

PROCESSES = [Census(), Census(heavy_tails=True), Glyphs()]

processes = pytest.mark.parametrize("process", PROCESSES, ids=repr)


@processes
def test_a_process_is_a_generator_that_needs_no_members(process: Generator) -> None:
    sampler = process.fit(np.zeros(0))
    assert isinstance(sampler, Sampler)
    first, again, other = (sampler.sample(50, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.values, again.values)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert not np.array_equal(first.values, other.values)
    assert len(first) == 50


def test_the_census_has_the_columns_it_says() -> None:
    people = Census().sample(4000, seed=0)
    values = dict(zip(COLUMNS, people.values.T, strict=True))
    assert values["age"].min() >= 18
    assert values["age"].max() <= 90
    for name in ("age", "schooling", "hours"):
        np.testing.assert_array_equal(values[name], values[name].round())
    assert [set(people.values[:, j]) for j in CATEGORICAL] == [{0, 1}, set(range(6))]
    assert (values["gains"] == 0).mean() == pytest.approx(0.92, abs=0.02)
    np.testing.assert_array_equal(values["gains"] % 10, 0)
    table = features(people.values)
    assert table.dtype == np.float32
    np.testing.assert_array_equal(table[:, 6:].sum(1), 1)
    assert table.std(0).max() < 1.1


def test_the_label_can_be_learnt_though_not_quite() -> None:
    people = Census().sample(8000, seed=1)
    assert people.labels is not None
    x = np.column_stack([features(people.values), np.ones(8000)])
    train, test = slice(0, 4000), slice(4000, None)
    weights = np.linalg.lstsq(x[train], people.labels[train] - 0.5, rcond=None)[0]
    assert 0.68 < ((x[test] @ weights > 0) == people.labels[test]).mean() < 0.85


def test_heavy_tails_reach_far() -> None:
    light, heavy = (Census(heavy_tails=tails).sample(9000, seed=0) for tails in (False, True))
    assert light.values[:, 5:].max() < 1e5
    assert heavy.values[:, 5].max() > 20 * light.values[:, 5].max()


def test_glyphs_are_digits_with_noise_and_some_wrong_labels() -> None:
    images = Glyphs().sample(2000, seed=0)
    assert images.labels is not None
    assert images.values.dtype == np.float32
    assert images.values.shape == (2000, 8, 8)
    np.testing.assert_array_equal(np.unique(images.labels), np.arange(10))
    corners = images.values[:, [0, 0, -1, -1], [0, -1, 0, -1]]
    assert corners.std() == pytest.approx(0.08, abs=0.004)
    means = np.stack([images.values[:1000][images.labels[:1000] == k].mean(0) for k in range(10)])
    far = ((images.values[1000:, None] - means) ** 2).sum((2, 3))
    assert 0.5 < (far.argmin(1) == images.labels[1000:]).mean() < 0.9
