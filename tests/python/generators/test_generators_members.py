"""Members kept out of the audit, copies of members, and what gives samples away."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from census import Census
from leakbound.errors import InputError, InputTypeError, OptionError
from leakbound.generators import SequentialCART, check_duplicates, split_members


def test_parts_are_disjoint_complete_and_of_their_sizes() -> None:
    parts = split_members(1000, shares={"generator": 3, "train": 2, "test": 5}, seed=3)
    assert [part.size for part in parts.values()] == [300, 200, 500]
    np.testing.assert_array_equal(np.sort(np.concatenate([*parts.values()])), np.arange(1000))
    assert {name: part.size for name, part in split_members(10).items()} == {
        "generator": 4,
        "audit": 6,
    }


def test_a_split_is_random_and_reproducible() -> None:
    first, again, other = (split_members(500, seed=seed)["audit"] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    # Two independent splits share 0.6² of the members: 180 of 500, give or take 5 sd.
    assert 150 < np.intersect1d(first, other).size < 210


def test_documents_are_not_divided() -> None:
    rng = np.random.default_rng(0)
    documents = rng.permutation(np.repeat(np.arange(200), rng.integers(1, 20, 200)))
    split = split_members(documents.size, documents=documents, seed=5)
    assert not np.intersect1d(documents[split["generator"]], documents[split["audit"]]).size
    assert split["generator"].size == pytest.approx(0.4 * documents.size, abs=20)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"n": 0}, OptionError, "n must be at least 1"),
        ({"n": 10, "seed": -1}, OptionError, "seed"),
        ({"n": 10, "shares": {"generator": 0, "audit": 1}}, OptionError, "share of generator"),
        ({"n": 10, "shares": {"generator": "x"}}, InputTypeError, "share of generator"),
        ({"n": 1}, OptionError, "'generator' would be empty"),
        ({"n": 9, "documents": [1] * 9}, OptionError, "9 members in 1 documents"),
        ({"n": 3, "documents": [1]}, InputError, "documents has 1"),
    ],
)
def test_bad_splits_are_refused(
    options: dict[str, Any], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        split_members(**options)


def images(n: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).random((n, 4, 4)).astype(np.float32)


def test_every_copy_is_found_and_nothing_else() -> None:
    samples, members = images(100, 0), images(300, 1)
    check_duplicates(samples, members)
    samples[[7, 40]] = members[[299, 0]]
    with pytest.raises(InputError, match=r"2 of 100 samples .* positions 7, 40"):
        check_duplicates(samples, members)


def test_a_copy_is_a_copy_in_any_dtype() -> None:
    members = np.random.default_rng(2).normal(size=(50, 3))
    for samples, among in (
        (members[:5].astype(np.float32), members),
        (np.array([[1, 0], [2, 2]]), [[2.0, 2.0], [1.0, -0.0], [3.0, 0.5]]),
    ):
        n = len(samples)
        with pytest.raises(InputError, match=f"^{n} of {n} samples equal a member"):
            check_duplicates(samples, among)


def test_records_with_few_values_may_repeat_by_chance() -> None:
    people = Census().sample(6000, seed=0)
    few = people.values[:, [0, 1, 2, 3, 4]]
    members, fresh = few[:3000], few[3000:]
    assert (fresh[:, None] == members).all(2).any(1).sum() > 50
    check_duplicates(fresh, members)


def test_a_generator_that_copies_is_refused_all_the_same() -> None:
    people = Census().sample(3000, seed=1)
    members = people.values[:, [0, 1, 2, 3, 4]]
    copying, resting = (
        SequentialCART(leaf=leaf).fit(members).sample(3000, seed=2).values for leaf in (1, 30)
    )
    check_duplicates(resting, members)
    with pytest.raises(InputError, match="copies what it was trained on"):
        check_duplicates(copying, members)


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(2, 3\) and members \(2, 4\)"):
        check_duplicates(np.zeros((2, 3)), np.zeros((2, 4)))
    with pytest.raises(InputError, match="at least one row"):
        check_duplicates(np.zeros((0, 3)), np.zeros((2, 3)))
    with pytest.raises(InputTypeError, match="samples"):
        check_duplicates([["a"]], [["b"]])
    with pytest.raises(OptionError, match="nan at index 0, 0"):
        check_duplicates([[np.nan]], [[1.0]])
