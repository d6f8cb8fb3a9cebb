"""PANORAMIA on people, images and text: a tiny run, and the docs' figures at length."""

from pydoc_data import topics
from typing import Any

import numpy as np
import pytest
import torch

from at_hand import at_hand
from panoramia_run import SMALL, Blends, audit_images, audit_people, of_images
from panoramia_text import audit_text, divided
from targets import Audited, Training

AUDITS = (
    "PANORAMIA",
    "PANORAMIA, union",
    "Zero-Run, match",
    "Zero-Run, Poisson-binomial",
    "RM;RN",
    "O(1)",
)


def test_targets_are_audited_in_six_ways_and_the_process_left_as_it_was() -> None:
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    training = Training(of_images(SMALL), (1,), (8.0,), private_epochs=1, prefix="small, ")
    made = at_hand(lambda: audit_images([training], members=600, seeds=1, conditional=True))
    names = ["small, 1 epoch", "small, DP-SGD, ε = 8"]
    assert [target.name for target in made.targets] == names
    assert [(row.target, row.audit) for row in made.found.rows] == [
        (name, audit) for name in names for audit in AUDITS
    ]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_blends_lie_between_two_images_of_a_class() -> None:
    dark = np.linspace(0, 0.2, 12, dtype=np.float32)
    images = np.concatenate([dark, 1 - dark])[:, None, None] * np.ones((2, 2), np.float32)
    drawn = Blends().fit(images, np.repeat([0, 1], 12)).sample(50, seed=0)
    assert drawn.labels is not None
    for label, lowest, highest in ((0, 0.0, 0.2), (1, 0.8, 1.0)):
        of_one = drawn.values[drawn.labels == label]
        assert lowest <= of_one.min() < of_one.max() <= highest


def test_members_and_non_members_are_different_chunks_in_the_order_of_the_text() -> None:
    material = divided(3000, 1)
    inside, outside = np.asarray(material.members), np.asarray(material.nonmembers)
    assert inside.shape == outside.shape == (3000, 64)
    assert len(np.unique(np.concatenate([inside, outside]), axis=0)) == 6000
    everything = "\0".join(topics.topics.values()).encode()
    places = [everything.find(bytes(chunk.tolist())) for chunk in inside]
    assert min(places) >= 0
    assert np.mean(np.diff(places) > 0) > 0.95  # some chunks are in two places, at other offsets
    assert not np.array_equal(inside, np.asarray(divided(3000, 2).members))


def middle(made: Audited, target: str, number: str = "epsilon_tilde") -> float:
    """Return the median over seeds of what PANORAMIA finds."""
    results: Any = made.found.row(target).results
    return float(np.median([getattr(result, number) for result in results]))


def certified(made: Audited, target: str) -> float:
    """Return the mean bound on ε against real non-members."""
    found = made.found.row(target, "RM;RN").epsilon
    assert found is not None
    return found.mean


@pytest.mark.validity
def test_what_is_estimated_on_adult_grows_with_epochs() -> None:
    made = at_hand(lambda: audit_people(conditional=False))
    assert middle(made, "MLP, 10 epochs", "c_lb") > 0.4
    assert middle(made, "MLP, 100 epochs") > middle(made, "MLP, 10 epochs") + 0.4
    assert middle(made, "MLP, DP-SGD, ε = 8") < 0.15
    assert certified(made, "MLP, DP-SGD, ε = 8") < 0.1


@pytest.mark.validity
def test_what_is_estimated_on_text_grows_with_epochs_and_is_nothing_under_dp_sgd() -> None:
    made = audit_text()
    sweep = [middle(made, f"GPT, {epochs} epochs") for epochs in (3, 6, 12, 20)]
    assert sweep[0] < sweep[1] < sweep[2] < sweep[3] + 0.2
    assert sweep[-1] > sweep[0] + 0.5
    assert 2 < middle(made, "GPT, 3 epochs", "c_lb") < 4.5
    assert certified(made, "GPT, 20 epochs") > 0.3
    for epsilon in (1, 3):
        assert middle(made, f"GPT, DP-SGD, ε = {epsilon}") == 0
        assert certified(made, f"GPT, DP-SGD, ε = {epsilon}") < 0.1
