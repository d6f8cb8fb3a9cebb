"""Real data: read as published where it is at hand, and named with its command where it is not."""

from pathlib import Path

import numpy as np
import pytest

import real_data
from at_hand import at_hand
from leakbound.errors import FormatError, MissingExtraError
from shipped_model import members

PACKAGES = (real_data.FASHION, real_data.ADULT, real_data.CENSUS, real_data.ADDRESSES)


def test_fashion_mnist_has_its_published_sizes() -> None:
    train, test = at_hand(real_data.fashion_mnist)
    assert train.values.shape == (60_000, 28, 28)
    assert np.bincount(train.labels).tolist() == [6000] * 10
    assert np.bincount(test.labels).tolist() == [1000] * 10


def test_adult_has_its_published_sizes() -> None:
    table = at_hand(real_data.adult)
    assert table.values.shape == (45_222, 14)
    assert table.labels.sum() == 11_208
    assert len(table.categorical) == 8


def test_a_network_reads_numbers_of_unit_spread_and_categories_one_by_one() -> None:
    table = at_hand(real_data.adult)
    encoded = table.encoded()
    assert encoded.shape == (45_222, 6 + sum(map(len, table.categories.values())))
    assert encoded.std(axis=0)[0] == pytest.approx(1, abs=0.01)
    assert np.array_equal(encoded[:9], table.encoded(table.values[:9]))


def test_the_census_has_its_published_sizes() -> None:
    table = at_hand(real_data.census_income)
    assert table.values.shape == (299_285, 41)
    years = table.values[:, table.columns.index("year")]
    assert np.unique(years, return_counts=True)[1].tolist() == [149_643, 149_642]
    assert table.labels.sum() == 12_382 + 6_186


def test_the_address_parser_was_trained_on_addresses_that_it_splits_as_their_labels_do() -> None:
    addresses = at_hand(members)
    assert len(addresses) == 1488
    assert addresses[0].text == "8128 S. DR MARTIN LUTHER KING JR Drive"


@pytest.mark.parametrize("package", PACKAGES, ids=lambda one: one.file)
def test_what_is_not_there_or_another_version_is_named(
    package: real_data.Package, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_data, "FOLDER", tmp_path)
    with pytest.raises(MissingExtraError, match=f"{package.data}.*{package.install}"):
        package.path()
    (tmp_path / package.file).write_bytes(b"another version")
    with pytest.raises(FormatError, match=package.sha256):
        package.path()
