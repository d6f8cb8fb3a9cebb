"""Generators of tables: what they keep of the members, and what they never do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import ks_2samp, spearmanr

from leakbound.errors import InputError, InputTypeError, OptionError
from leakbound.generators import ChowLiuTree, Generator, SequentialCART

Array = NDArray[Any]
GENERATORS = [SequentialCART(), ChowLiuTree()]
ROWS = 2000

generators = pytest.mark.parametrize("generator", GENERATORS, ids=lambda g: type(g).__name__)


def mixed(rows: int = ROWS, seed: int = 0) -> tuple[Array, Array]:
    """Return a skewed, a whole, a binary, a tied and a constant column, and a dependent label."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(rows, 4))
    z[:, 1] = 0.8 * z[:, 0] + 0.6 * z[:, 1]
    z[:, 2] = -0.6 * z[:, 0] + 0.8 * z[:, 2]
    skewed = np.exp(z[:, 0])
    tens = (5 * z[:, 1]).round() * 10
    sometimes = np.where(z[:, 3] > 1, np.exp(z[:, 3] + z[:, 0]).round(2), 0)
    table = np.column_stack([skewed, tens, z[:, 2] > 0.5, sometimes, np.full(rows, 7.0)])
    return table, (z[:, 1] + 0.5 * rng.normal(size=rows) > 0).astype(np.int64)


@generators
def test_columns_keep_distributions_dependence_grid_and_range(generator: Generator) -> None:
    members, labels = mixed()
    samples = generator.fit(members, labels).sample(8000, seed=1)
    values = samples.values
    for column in range(4):
        # Two samples of the same distribution differ by more than this once in 10,000 times.
        assert ks_2samp(members[:, column], values[:, column]).statistic < 0.056
    assert samples.labels is not None
    assert samples.labels.mean() == pytest.approx(labels.mean(), abs=0.05)
    real = spearmanr(np.column_stack([members[:, :4], labels])).statistic
    made = spearmanr(np.column_stack([values[:, :4], samples.labels])).statistic
    assert np.abs(real - made).max() < 0.08
    assert (values.min(0) >= members.min(0)).all()
    assert (values.max(0) <= members.max(0)).all()
    np.testing.assert_array_equal(values[:, 1] % 10, 0)
    assert set(values[:, 2]) == {0, 1}
    np.testing.assert_array_equal(values[:, 3], values[:, 3].round(2))


@generators
def test_the_number_of_samples_is_exact_and_the_seed_decides_all(generator: Generator) -> None:
    members, labels = mixed(200)
    first, second = generator.fit(members, labels), generator.fit(members, labels)
    for n in (1, 7, 321):
        one, other = first.sample(n, seed=5), second.sample(n, seed=5)
        assert len(one) == n == len(one.values)
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.labels, other.labels)
    assert not np.array_equal(first.sample(7, seed=5).values, first.sample(7, seed=6).values)


@generators
def test_samples_have_the_dtype_of_the_members_and_no_labels_unless_asked(
    generator: Generator,
) -> None:
    rng = np.random.default_rng(6)
    for members in (
        rng.integers(0, 50, (100, 3)),
        rng.normal(size=(100, 3)).astype(np.float32),
        rng.random((100, 2)) < 0.5,
    ):
        samples = generator.fit(members).sample(50, seed=0)
        assert samples.values.dtype == members.dtype
        assert samples.labels is None
    names = np.array(["no", "yes"])[rng.integers(0, 2, 100)]
    labelled = generator.fit(members, names).sample(50, seed=0)
    assert labelled.labels is not None
    assert set(labelled.labels) == {"no", "yes"}


@generators
@pytest.mark.parametrize(
    ("spoil", "error", "match"),
    [
        (lambda x, y: (np.where(x > 5, np.nan, x), y), InputError, r"nan at index \d+, \d"),
        (lambda x, y: (np.where(x > 5, np.inf, x), y), InputError, "inf at index"),
        (lambda x, y: (x[..., None], y), InputError, "must be a table"),
        (lambda x, y: (x[:19], y[:19]), InputError, "19 members"),
        (lambda x, y: (x, y.cumsum() < 5), InputError, "merge rare labels"),
        (lambda x, y: (x, y[1:]), InputError, "labels has 99"),
        (lambda x, y: (x.astype(str), y), InputTypeError, "encode strings"),
        (lambda x, y: (x, y / 2), InputTypeError, "labels must be classes"),
    ],
)
def test_bad_members_are_refused(
    generator: Generator,
    spoil: Callable[[Array, Array], tuple[Array, Array]],
    error: type[Exception],
    match: str,
) -> None:
    members, labels = spoil(*mixed(100))
    with pytest.raises(error, match=match):
        generator.fit(members, labels)


@generators
def test_bad_options_are_refused(generator: Generator) -> None:
    sampler = generator.fit(mixed(100)[0])
    with pytest.raises(OptionError, match="n must be at least 1"):
        sampler.sample(0, seed=0)
    with pytest.raises(InputTypeError, match="seed"):
        sampler.sample(1, seed=0.5)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="column 5"):
        type(generator)(categorical=(5,)).fit(mixed(100)[0])  # type: ignore[call-arg]


@generators
def test_categories_are_those_of_the_members(generator: Generator) -> None:
    rng = np.random.default_rng(4)
    codes = rng.choice(np.array([3, 5, 40, 41, 900]), ROWS)
    members = np.column_stack([codes, rng.normal(size=ROWS)])
    values = generator.fit(members).sample(3000, seed=4).values
    assert set(values[:, 0]) == set(codes)
