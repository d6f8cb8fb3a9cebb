"""The digits demo: its claims on the default seed, and the mechanics on tiny runs."""

import csv
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import leakbound as lb
from leakbound.demo.digits import DigitsReport, run
from leakbound.errors import InputTypeError, OptionError

TINY: dict[str, Any] = {"epochs": (2, 1), "epsilons": (1.0,), "private_epochs": 1}


@pytest.fixture(scope="module")
def report() -> DigitsReport:
    return run()


def test_leakage_grows_with_epochs(report: DigitsReport) -> None:
    sweep = [row for row in report.rows if row.epsilon is None]
    assert [row.name for row in sweep] == [f"{n} epochs" for n in (5, 20, 50, 100, 200)]
    bounds = [row.result.bound for row in sweep]
    assert bounds == sorted(bounds)
    assert bounds[0] < 1
    assert bounds[-1] > 2
    assert [row.auc for row in sweep] == sorted(row.auc for row in sweep)
    assert all(row.test_accuracy > 0.88 for row in sweep)


def test_private_models_are_useful_and_leak_next_to_nothing(report: DigitsReport) -> None:
    private = [row for row in report.rows if row.epsilon is not None]
    assert [(row.name, row.epsilon) for row in private] == [
        ("DP-SGD, ε = 1", 1.0),
        ("DP-SGD, ε = 8", 8.0),
    ]
    assert all(0 <= row.result.bound <= 0.15 for row in private)
    assert all(row.test_accuracy > 0.85 for row in private)


def test_the_audits_are_certified_lower_bounds_on_fair_coins(report: DigitsReport) -> None:
    assert report.plan == lb.InclusionPlan.create(300, seed=0)
    assert report.training_examples == 1200 + int(report.plan.member.sum())
    for row in report.rows:
        assert row.result.kind == "lower_bound"
        assert (row.result.m, row.result.confidence) == (300, 0.95)
        assert row.result.members == int(report.plan.member.sum())
        assert (row.result.bound > 0) == (row.result.reason == "")
    shares = [1 - row.simultaneous.confidence for row in report.rows]
    assert sum(shares) <= 0.05  # of all bounds that the headline is about
    assert report.worst.name == "200 epochs"


def timeless(report: Any) -> Any:
    """Return a report without the seconds that it took."""
    report["rows"] = [{k: v for k, v in row.items() if k != "seconds"} for row in report["rows"]]
    return {k: v for k, v in report.items() if k != "seconds"}


def test_same_seed_same_numbers_and_scores_and_the_process_as_it_was(tmp_path: Path) -> None:
    folder, calls = tmp_path / "deep" / "folder", list[tuple[str, float]]()
    torch.manual_seed(1)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        progress = lambda what, share: calls.append((what, share))  # noqa: E731
        report = run(folder, seed=5, progress=progress, **TINY)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert [share for _, share in calls] == pytest.approx([1 / 3, 2 / 3, 1])
    assert calls[0][0] == "training, epoch 1 of 2"
    torch.manual_seed(2)
    again, first = (timeless(one.to_dict()) for one in (run(seed=5, **TINY), report))
    assert again == first
    content = json.loads(json.dumps(report.to_dict()))
    assert [row["result"]["bound"] for row in content["rows"]] == [
        row.result.bound for row in report.rows
    ]
    plan = lb.InclusionPlan.load(folder / "plan.npz")
    assert plan == report.plan
    files = sorted(file.name for file in (folder / "scores").iterdir())
    assert files == ["1-epoch.csv", "2-epochs.csv", "dp-sgd-epsilon-1.csv"]
    for row, name in zip(report.rows, files, strict=True):
        with (folder / "scores" / name).open(newline="") as file:
            lines = list(csv.DictReader(file))
        scores = [float(line["score"]) for line in lines]
        member = [int(line["member"]) for line in lines]
        np.testing.assert_array_equal(member, plan.member)
        assert [int(line["id"]) for line in lines] == plan.ids.tolist()
        result = lb.audit(scores, lb.Coins(member))
        assert (result.bound, result.auc) == (row.result.bound, row.auc)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seed": -1}, OptionError, "seed must be at least 0"),
        ({"epochs": (0,)}, OptionError, "epochs must be at least 1"),
        ({"epochs": ("five",)}, InputTypeError, "epochs must be an integer"),
        ({"private_epochs": 0}, OptionError, "private_epochs must be at least 1"),
        ({"epsilons": (0.0,)}, OptionError, "epsilons must be above 0"),
    ],
)
def test_bad_options(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        run(**(TINY | options))
