"""Baseline and attack: what they find, that they find nothing in noise, and what they refuse."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

import leakbound as lb
from leakbound.panoramia import StackedAttack
from leakbound.panoramia.examples import Examples, Sample
from leakbound.panoramia.models.images import DENSE, Pictures
from scored import DEVICES

CHOICE: dict[str, Any] = {"seed": 0, "level": 0.025, "cuts": lb.KLScan()}


def game(n: int, seed: int, *, by_signal: float = 0.0, by_table: float = 0.0) -> Sample:
    """Members differ from others in the outputs of two models, or in how two columns agree."""
    rng = np.random.default_rng(seed)
    member = np.arange(2 * n) < n
    table = rng.normal(size=(2 * n, 3))
    agree = member & (rng.random(2 * n) < by_table)
    table[agree, 1] = np.abs(table[agree, 1]) * np.sign(table[agree, 0])
    signals = rng.normal(size=(2 * n, 1, 1)) + np.zeros((1, 2, 1))
    signals[:, 1, 0] += rng.normal(size=2 * n) * 0.3 + by_signal * member
    return Sample(Examples(table, rng.integers(0, 2, 2 * n)), signals, member)


def bound(train: Sample, validation: Sample, test: Sample) -> float:
    fitted = StackedAttack().fit(train, validation, **CHOICE)
    scores = fitted.score(test.examples, test.signals)
    noise = np.random.default_rng(0).random(len(test))
    return lb.audit(scores, lb.Panoramia(test.member, baseline=noise, real_nonmembers=True)).bound


@pytest.mark.parametrize("kind", ["by_signal", "by_table"])
def test_it_finds_what_signals_and_columns_say(kind: str) -> None:
    train, validation, test = (game(n, n, **{kind: 0.9}) for n in (400, 150, 600))
    assert bound(train, validation, test) > 0.4


def test_hyper_parameters_are_chosen_on_validation_data() -> None:
    train, validation = game(300, 1, by_signal=1.0), game(150, 2, by_signal=1.0)
    fitted = StackedAttack().fit(train, validation, **CHOICE)
    assert set(fitted.options) == {"learning_rate", "max_leaf_nodes", "trees"}
    other = StackedAttack().fit(train, game(150, 9), **CHOICE)
    assert fitted.options != other.options
    np.testing.assert_array_equal(
        fitted.score(validation.examples, validation.signals), fitted.validation
    )


def pictures(n: int, seed: int, *, by_signal: float, by_shape: float) -> Sample:
    """Members have brighter middles, or are known to the second model, as often as asked for."""
    rng = np.random.default_rng(seed)
    sample = game(n, seed, by_signal=by_signal)
    images = rng.normal(size=(2 * n, 6, 6))
    images[sample.member & (rng.random(2 * n) < by_shape), 2:4, 2:4] += 2.0
    return replace(sample, examples=Examples(images, sample.examples.y))


@pytest.mark.parametrize(("by_signal", "by_shape"), [(0.9, 0.0), (0.0, 0.9)])
def test_it_finds_what_signals_and_images_say(by_signal: float, by_shape: float) -> None:
    parts = [pictures(n, n, by_signal=by_signal, by_shape=by_shape) for n in (400, 150, 600)]
    train, validation, test = parts
    attack = StackedAttack("image")
    ready = attack.prepare(train, validation, seed=0)
    fitted = attack.fit(train, validation, **CHOICE, prepared=ready)
    scores = fitted.score(test.examples, test.signals)
    found = lb.audit(scores, lb.Panoramia(test.member, baseline=scores))
    assert found.attack.bound > 0.4


def test_what_was_prepared_is_what_a_fit_prepares() -> None:
    train, validation, test = (pictures(n, n, by_signal=0.9, by_shape=0.9) for n in (150, 80, 100))
    attack = StackedAttack("image")
    ready = attack.prepare(train, validation, seed=0)
    fitted = attack.fit(train, validation, **CHOICE, prepared=ready)
    again = attack.fit(train, validation, **CHOICE)
    np.testing.assert_array_equal(
        again.score(test.examples, test.signals), fitted.score(test.examples, test.signals)
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("modality", ["image", "text"])
def test_networks_train_on_the_device_and_random_state_is_left(device: str, modality: Any) -> None:
    samples = []
    for n in (120, 60):
        sample = pictures(n, n, by_signal=0.9, by_shape=0.0)
        tokens = np.random.default_rng(n).integers(0, 9, (2 * n, 5))
        samples.append(
            sample if modality == "image" else replace(sample, examples=Examples(tokens, None))
        )
    seen = set[str]()

    def see(module: nn.Module, inputs: Any, _: Any) -> None:
        seen.update(part.device.type for part in (*module.parameters(), *inputs))

    states = [torch.get_rng_state(), *torch.cuda.get_rng_state_all()]
    with register_module_forward_hook(see):
        fitted = StackedAttack(modality).fit(*samples, **CHOICE, device=device)
        assert fitted.score(samples[0].examples, samples[0].signals).shape == (240,)
    assert seen == {device}
    now = [torch.get_rng_state(), *torch.cuda.get_rng_state_all()]
    assert all(map(torch.equal, states, now))


def test_images_whose_corners_agree_are_told_by_the_dense_network() -> None:
    """Two corners have the same sign or not; of one of them alone there is nothing to say."""
    samples = []
    for n in (600, 300, 600):
        rng = np.random.default_rng(n)
        member = np.arange(2 * n) < n
        images = 0.3 * rng.normal(size=(2 * n, 40, 36))
        sign = rng.choice([-1.0, 1.0], 2 * n)
        images[:, :6, :6] += sign[:, None, None]
        images[:, -6:, -6:] += np.where(member, sign, -sign)[:, None, None]
        samples.append(Sample(Examples(images, None), np.empty((2 * n, 0, 0)), member))
    train, validation, test = samples
    ((epochs, dense),) = Pictures.train(train, validation, 0, DENSE)
    assert epochs == DENSE.stages[-1]
    assert (dense.logits(test.examples)[test.member] > 0).mean() > 0.9


def test_images_without_labels_and_models_and_with_colours() -> None:
    parts = []
    for n in (300, 150, 400):
        plain = pictures(n, n, by_signal=0.0, by_shape=0.9)
        colours = np.repeat(plain.examples.x[:, None], 3, axis=1)
        parts.append(Sample(Examples(colours, None), np.empty((2 * n, 0, 0)), plain.member))
    train, validation, test = parts
    fitted = StackedAttack("image").fit(train, validation, **CHOICE)
    scores = fitted.score(test.examples, test.signals)
    assert lb.audit(scores, lb.Panoramia(test.member, baseline=scores)).auc > 0.7
