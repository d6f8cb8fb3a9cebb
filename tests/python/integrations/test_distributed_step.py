"""Two processes that train together: right steps and runs are not refuted, and faults are."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

import distributed_steps
from dp_step_models import NOISE


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Return what both processes found."""
    folder = tmp_path_factory.mktemp("gloo")
    run = subprocess.run(
        [sys.executable, distributed_steps.__file__, folder],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert run.returncode == 0, run.stderr
    files = sorted(folder.glob("found-*"))
    return [json.loads(one.read_text(encoding="utf-8")) for one in files]


@pytest.mark.parametrize("way", ["hooks", "ghost", "dropout"])
def test_right_steps_of_two_processes_attain_their_claim(found: list[Any], way: str) -> None:
    assert found[0][way] == found[1][way]
    assert found[0][way]["refuted_by"] == []
    assert found[0][way]["warnings"] == []
    assert 0.9 / NOISE < found[0][way]["bound"] < 1 / NOISE


FAULTS = {
    "NoiseNowhere": ("contribution", float("inf")),
    "NoiseShared": ("contribution", 2**0.5 / NOISE),
    "NoiseAveragedTwice": ("contribution", 2 / NOISE),
    "OwnMean": ("coupling", 1 / NOISE),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_two_processes_are_refuted(found: list[Any], fault: str) -> None:
    part, truth = FAULTS[fault]
    for one in found:
        assert one[fault]["refuted_by"] == [part]
        assert 0.9 * truth <= one[fault]["bound"] <= truth


def test_noise_of_every_process_is_more_than_stated(found: list[Any]) -> None:
    """Two independent deviations of σ are one of σ √2: the step is more private, not less."""
    for one in found:
        assert one["NoiseEverywhere"]["refuted_by"] == []
        assert 0.9 < one["NoiseEverywhere"]["bound"] * 2**0.5 * NOISE < 1


def test_runs_are_watched_on_the_first_process_and_probed_on_both(found: list[Any]) -> None:
    first, second = (one["watched"] for one in found)
    assert first["DistributedDPOptimizer"]["refuted_by"] == []
    assert first["DistributedDPOptimizer"]["probes"] == [[], []]
    assert first["NoiseShared"]["refuted_by"] == ["steps"]
    assert first["NoiseShared"]["probes"] == [["contribution"], ["contribution"]]
    assert {one["steps"] for one in first.values()} == {30}
    assert {one["steps"] for one in second.values()} == {0}
    assert {one["refused"] for one in second.values()} == {
        "canaries are on the first process of distributed training: audit the run there"
    }


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("seeds", "with the same pairs and the same seed"),
        ("per layer", "adds noise inside the backward pass"),
        ("shards", "has parameters in shards"),
    ],
)
def test_what_cannot_be_probed_is_refused_on_all_processes(
    found: list[Any], asked: str, words: str
) -> None:
    assert all(words in one[asked] for one in found)
