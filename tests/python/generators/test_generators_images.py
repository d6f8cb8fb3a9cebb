"""Generators of images, labels for what they make, filters, and samples from files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_digits

from leakbound.errors import FormatError, InputError, InputTypeError, OptionError
from leakbound.generators import (
    FolderOfSamples,
    Generator,
    Labeler,
    PCAMixture,
    Sampler,
    Samples,
)

Array = NDArray[Any]
MIXTURE = PCAMixture(components=20, mixtures=8)


@pytest.fixture(scope="module")
def digits() -> Samples:
    """Handwritten digits of 8 by 8 pixels, ink 1 and paper 0, with noise."""
    images, labels = load_digits(return_X_y=True)
    noise = np.random.default_rng(0).normal(0, 0.08, (600, 64))
    pixels = images[:600] / 16 + noise
    return Samples(values=pixels.reshape(600, 8, 8).astype(np.float32), labels=labels[:600])


def labels_of(samples: Samples) -> Array:
    assert samples.labels is not None
    return samples.labels


def test_images_have_the_members_mean_and_covariance(digits: Samples) -> None:
    made = MIXTURE.fit(digits.values).sample(4000, seed=1).values.reshape(-1, 64)
    real = digits.values.reshape(-1, 64)
    assert np.abs(made.mean(0) - real.mean(0)).max() < 0.06
    spread = np.linalg.norm(np.cov(real.T))
    assert np.linalg.norm(np.cov(made.T) - np.cov(real.T)) < 0.2 * spread


def test_shape_dtype_range_count_and_seed(digits: Samples) -> None:
    pixels = np.round(np.clip(digits.values, 0, 1) * 255).astype(np.uint8)[:, None]
    members = pixels[:100]
    sampler = MIXTURE.fit(members)
    first, again, other = (sampler.sample(17, seed=seed) for seed in (3, 3, 4))
    assert first.values.shape == (17, 1, 8, 8)
    assert first.values.dtype == np.uint8
    assert first.labels is None
    assert first.values.max() <= members.max()
    np.testing.assert_array_equal(first.values, again.values)
    assert not np.array_equal(first.values, other.values)
    refitted = MIXTURE.fit(members).sample(17, seed=3)
    np.testing.assert_array_equal(first.values, refitted.values)
    assert isinstance(MIXTURE, Generator)
    assert isinstance(sampler, Sampler)


def test_labels_come_from_the_labeler(digits: Samples) -> None:
    sampler = MIXTURE.fit(digits.values, digits.labels)
    samples = sampler.sample(2000, seed=2)
    counts = np.bincount(labels_of(samples), minlength=10) / 2000
    real = np.bincount(labels_of(digits), minlength=10) / 600
    assert np.abs(counts - real).max() < 0.06


def test_bad_images_are_refused() -> None:
    images = np.zeros((30, 2, 2))
    with pytest.raises(InputError, match="nan at index 3, 1, 0"):
        MIXTURE.fit(np.where(np.arange(120).reshape(30, 2, 2) == 14, np.nan, images))
    with pytest.raises(InputError, match="19 members"):
        MIXTURE.fit(images[:19])
    with pytest.raises(InputError, match=r"shape \(30,\)"):
        MIXTURE.fit(np.zeros(30))
    with pytest.raises(InputError, match="labels has 3"):
        MIXTURE.fit(images, [1, 2, 3])
    with pytest.raises(OptionError, match="n must be"):
        MIXTURE.fit(images).sample(0, seed=0)


def test_labels_are_drawn_and_not_the_likeliest() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=(4000, 2))
    high = rng.random(4000) < 1 / (1 + np.exp(-2 * values[:, 0]))
    fitted = Labeler().fit(values, np.where(high, "high", "low"))
    first, again, other = (labels_of(fitted.label(values, seed=seed)) for seed in (0, 0, 1))
    # Some real labels are on the unlikely side, and as many of the drawn ones must be.
    unlikely = (high != (values[:, 0] > 0)).mean()
    assert unlikely > 0.15
    assert ((first == "high") != (values[:, 0] > 0)).mean() == pytest.approx(unlikely, abs=0.03)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_any_classifier_labels_and_is_not_changed() -> None:
    from sklearn.naive_bayes import GaussianNB

    values = np.random.default_rng(6).normal(size=(200, 2))
    high, classifier = values[:, 1] > 0, GaussianNB()
    fitted = Labeler(classifier).fit(values, high)
    assert not hasattr(classifier, "classes_")
    chance = GaussianNB().fit(values, high).predict_proba(values)[np.arange(200), high.astype(int)]
    right = (labels_of(fitted.label(values, seed=0)) == high).mean()
    spread = np.sqrt((chance * (1 - chance)).sum()) / 200
    assert right == pytest.approx(chance.mean(), abs=4 * spread)
    one = Labeler().fit(values, np.full(200, 3))
    assert set(labels_of(one.label(values, seed=0))) == {3}
    with pytest.raises(InputTypeError, match="unfitted classifier"):
        Labeler(3)
    with pytest.raises(InputError, match="labels has 199"):
        Labeler().fit(values, high[1:])


def test_a_folder_gives_each_sample_once(tmp_path: Path, digits: Samples) -> None:
    values, labels = digits.values, labels_of(digits)
    np.savez(tmp_path / "b.npz", values=values[300:], labels=labels[300:])
    np.savez(tmp_path / "a.npz", values=values[:300], labels=labels[:300])
    (tmp_path / "notes.txt").write_text("not a sample")
    sampler = FolderOfSamples(tmp_path).fit(values[:50] + 1, labels[:50])
    np.testing.assert_array_equal(sampler.learnt.values, values)
    drawn = sampler.sample(600, seed=0)
    np.testing.assert_array_equal(np.sort(drawn.values.ravel()), np.sort(values.ravel()))
    again = sampler.sample(600, seed=0)
    np.testing.assert_array_equal(drawn.values, again.values)
    np.testing.assert_array_equal(labels_of(drawn), labels_of(again))
    with pytest.raises(InputError, match=r"601 samples .* only 600"):
        sampler.sample(601, seed=0)
    unlabelled = FolderOfSamples(tmp_path).fit(values[:50])
    assert unlabelled.sample(5, seed=0).labels is None


def test_images_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 4, 4, 3)).astype(np.uint8)
    for name, image in zip(("2.png", "10.png", "1.png"), pixels, strict=True):
        Image.fromarray(image).save(tmp_path / name)
    members = np.zeros((20, 4, 4, 3), np.uint8)
    sampler = FolderOfSamples(tmp_path).fit(members)
    np.testing.assert_array_equal(sampler.learnt.values, pixels[[2, 1, 0]])
    with pytest.raises(
        FormatError, match=r"1\.png .*dtype is uint8, but that of the members is float64"
    ):
        FolderOfSamples(tmp_path).fit(members / 255)
    with pytest.raises(FormatError, match=r"shape is \(1, 4, 4, 3\), but .*\(20, 4, 4\)"):
        FolderOfSamples(tmp_path).fit(members[..., 0])


def test_samples_without_labels_get_them_from_the_members(tmp_path: Path, digits: Samples) -> None:
    np.save(tmp_path / "made.npy", digits.values)
    sampler = FolderOfSamples(tmp_path / "made.npy").fit(digits.values, digits.labels)
    assert set(labels_of(sampler.sample(300, seed=0))) <= set(range(10))


def test_what_holds_no_samples_is_refused(tmp_path: Path) -> None:
    members = np.zeros((20, 2))
    with pytest.raises(FormatError, match="has no samples"):
        FolderOfSamples(tmp_path).fit(members)
    (tmp_path / "a.npy").write_bytes(b"nothing")
    with pytest.raises(FormatError, match=r"a\.npy cannot be read"):
        FolderOfSamples(tmp_path).fit(members)
    np.savez(tmp_path / "a.npz", other=members)
    with pytest.raises(FormatError, match=r"a\.npz cannot be read as samples: .*values"):
        FolderOfSamples(tmp_path / "a.npz").fit(members)
    np.save(tmp_path / "a.npy", members)
    np.savez(tmp_path / "a.npz", values=members, labels=np.arange(20))
    with pytest.raises(FormatError, match="some files have labels"):
        FolderOfSamples(tmp_path).fit(members, np.arange(20))
