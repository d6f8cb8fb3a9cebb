"""PANORAMIA on a table, images and text: a tiny run, and at length what docs say of them."""

from itertools import pairwise
from pydoc_data import topics
from typing import Any

import numpy as np
import pytest
import torch

from panoramia_run import audit_census, audit_glyphs
from panoramia_text import audit_text, divided
from targets import Audited

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
    made = audit_glyphs(members=600, epochs=(1,), private_epochs=1, seeds=1)
    names = ["1 epoch", "DP-SGD, ε = 8"]
    assert [target.name for target in made.targets] == names
    assert [(row.target, row.audit) for row in made.found.rows] == [
        (name, audit) for name in names for audit in AUDITS
    ]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


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
@pytest.mark.parametrize("oracle", [False, True], ids=["trees", "oracle"])
def test_what_is_estimated_on_a_table_grows_with_epochs(*, oracle: bool) -> None:
    made = audit_census(oracle=oracle)
    found = {
        row.target: row.epsilon_tilde.mean
        for row in made.found.rows
        if row.audit == "PANORAMIA" and row.epsilon_tilde is not None
    }
    assert found.pop("DP-SGD, ε = 8") < 0.1
    assert found["5 epochs"] < 0.1
    assert found["160 epochs"] > 0.4
    assert found["160 epochs"] > found["40 epochs"]
    c_lb = made.found.row("5 epochs").c_lb
    assert c_lb is not None
    assert c_lb.mean <= 0.25


@pytest.mark.validity
def test_on_images_nothing_is_put_down_to_a_model_that_leaks_nothing() -> None:
    made = audit_glyphs()
    assert 1.5 <= middle(made, "3 epochs", "c_lb") <= 3
    assert middle(made, "DP-SGD, ε = 8") == 0
    found = [middle(made, f"{epochs} epochs") for epochs in (3, 15, 30, 60)]
    assert all(later > earlier - 0.3 for earlier, later in pairwise(found))
    assert found[0] < 0.5
    assert found[2] > found[0] + 0.4
    assert found[3] > found[0] + 0.8
    for target in ("3 epochs", "DP-SGD, ε = 8"):
        assert certified(made, target) < 0.1


@pytest.mark.validity
def test_what_is_estimated_on_text_grows_with_epochs_and_is_nothing_under_dp_sgd() -> None:
    made = audit_text()
    *sweep, private = [middle(made, target.name) for target in made.targets]
    assert sweep[0] < sweep[1] < sweep[2] < sweep[3] + 0.2
    assert sweep[-1] > sweep[0] + 0.5
    assert private == 0
    assert 2 < middle(made, "3 epochs", "c_lb") < 4.5
    assert certified(made, "20 epochs") > 0.3
    assert certified(made, "DP-SGD, ε = 8") < 0.1
