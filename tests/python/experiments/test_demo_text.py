"""The text demo: the mechanics on tiny runs, and, in the long suite, what it claims."""

import csv
import json
import math
import warnings
from pathlib import Path
from pydoc_data import topics
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import leakbound as lb
from leakbound.errors import OptionError, OptionTypeError
from leakbound.experiments.demos import text
from leakbound.experiments.demos.gpt import GPT
from leakbound.experiments.demos.text import TextReport, run
from leakbound.experiments.demos.training import quiet_opacus
from leakbound.torch import score

TINY: dict[str, Any] = {"epochs": (2, 1), "private_epochs": 1, "chunks": 200}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "deep" / "folder"


@pytest.fixture(scope="module")
def report(folder: Path) -> TextReport:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return run(folder, seed=5, **TINY)


@pytest.mark.validity
def test_leakage_grows_with_epochs_and_there_is_none_under_dp_sgd() -> None:
    *sweep, private = run().rows
    assert [row.name for row in sweep] == [f"{n} epochs" for n in (5, 10, 20, 30, 40)]
    bounds = [row.result.bound for row in sweep]
    assert bounds == sorted(bounds)
    assert bounds[0] < 0.5
    assert bounds[-1] > 2.5
    assert private.name == "DP-SGD, ε = 8"
    assert private.result.bound <= 0.15
    assert private.test_loss < 4


def test_rows_say_what_was_trained(report: TextReport) -> None:
    assert [(row.name, row.epochs, row.epsilon) for row in report.rows] == [
        ("1 epoch", 1, None),
        ("2 epochs", 2, None),
        ("DP-SGD, ε = 8", 1, 8.0),
    ]
    assert report.parameters == 470_528
    for row in report.rows:
        assert 0 < row.train_loss < 5.2 < math.log(256)  # learned something
        assert row.test_loss == pytest.approx(row.train_loss, abs=0.3)


def test_the_audits_are_certified_lower_bounds_on_fair_coins(report: TextReport) -> None:
    assert report.plan == lb.InclusionPlan.create(200, seed=5)
    for row in report.rows:
        assert row.result.kind == "lower_bound"
        assert (row.result.m, row.result.confidence) == (200, 0.95)
        assert row.result.members == int(report.plan.member.sum())
        assert (row.result.bound > 0) == (row.result.reason == "")


def test_the_report_is_plain_data(report: TextReport) -> None:
    content = json.loads(json.dumps(report.to_dict()))
    assert (content["chunks"], content["parameters"]) == (200, 470_528)
    assert [row["result"]["bound"] for row in content["rows"]] == [
        row.result.bound for row in report.rows
    ]


def test_written_scores_give_the_same_bounds(report: TextReport, folder: Path) -> None:
    assert lb.InclusionPlan.load(folder / "plan.npz") == report.plan
    files = sorted(file.name for file in (folder / "scores").iterdir())
    assert files == ["1-epoch.csv", "2-epochs.csv", "dp-sgd-epsilon-8.csv"]
    for row, name in zip(report.rows, files, strict=True):
        with (folder / "scores" / name).open(newline="") as file:
            lines = list(csv.DictReader(file))
        again = lb.audit_one_run(
            [float(line["score"]) for line in lines], [int(line["member"]) for line in lines]
        )
        assert (again.bound, again.auc) == (row.result.bound, row.auc)


def test_same_seed_same_numbers_and_a_process_left_as_it_was(report: TextReport) -> None:
    def numbers(report: TextReport) -> list[Any]:
        return [(row.name, row.train_loss, row.auc, row.result.bound) for row in report.rows]

    calls: list[tuple[str, float]] = []
    torch.manual_seed(1)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    again = run(seed=5, **TINY, progress=lambda what, share: calls.append((what, share)))
    assert numbers(again) == numbers(report)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert [share for _, share in calls] == pytest.approx([1 / 3, 2 / 3, 1])
    assert calls[0][0] == "training, epoch 1 of 2"
    assert calls[-1][0] == "DP-SGD at ε = 8, epoch 1 of 1"


def test_the_text_is_different_chunks_of_the_documentation() -> None:
    chunks = text._text(1250, 0)
    assert chunks.shape == (1250, 64)
    assert len(torch.unique(chunks, dim=0)) == 1250
    assert not torch.equal(chunks, text._text(1250, 1))
    everything = "\n".join(topics.topics.values()).encode()
    assert all(bytes(chunk.tolist()) in everything for chunk in chunks[:20])


def test_the_model_is_causal() -> None:
    torch.manual_seed(0)
    model = GPT(16, 8).eval()
    words = torch.randint(256, (3, 16))
    changed = words.clone()
    changed[:, 9:] = 0

    def answers(tokens: Tensor) -> Any:
        return model(tokens).detach().numpy()

    np.testing.assert_allclose(answers(words)[:, :9], answers(changed)[:, :9], atol=1e-6)
    assert np.abs(answers(words)[:, 9:] - answers(changed)[:, 9:]).max() > 1e-3
    np.testing.assert_allclose(answers(words[:, :5]), answers(words)[:, :5], atol=1e-6)


def test_gradients_of_single_examples_are_right() -> None:
    """What opacus clips is the gradient of one chunk, as if it came alone."""
    from opacus import GradSampleModule

    torch.manual_seed(0)
    model = GPT(8, 8)
    chunks = torch.randint(256, (3, 8))
    with quiet_opacus():
        wrapped = GradSampleModule(model, loss_reduction="sum")
        loss = torch.nn.functional.cross_entropy(
            wrapped(chunks).flatten(0, 1), chunks.flatten(), reduction="sum"
        )
        torch.autograd.backward(loss)
    together = {name: vars(weight)["grad_sample"] for name, weight in model.named_parameters()}
    alone = GPT(8, 8)
    alone.load_state_dict(wrapped.to_standard_module().state_dict())
    for row, chunk in enumerate(chunks):
        alone.zero_grad()
        loss = torch.nn.functional.cross_entropy(alone(chunk[None])[0], chunk, reduction="sum")
        torch.autograd.backward(loss)
        for name, weight in alone.named_parameters():
            torch.testing.assert_close(together[name][row], weight.grad, rtol=1e-4, atol=1e-6)


def test_other_seeds_other_models() -> None:
    chunks = text._text(200, 0)
    first, second = (
        score(text.RECIPE.new(seed), chunks, signal="cross_entropy").values for seed in (0, 1)
    )
    assert not np.array_equal(first, second)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seed": -1}, OptionError, "seed must be at least 0"),
        ({"epochs": (0,)}, OptionError, "epochs must be at least 1"),
        ({"epochs": ("five",)}, OptionTypeError, "epochs must be an integer"),
        ({"private_epochs": 0}, OptionError, "private_epochs must be at least 1"),
        ({"epsilons": (0.0,)}, OptionError, "epsilons must be above 0"),
        ({"chunks": 100}, OptionError, "chunks must be at least 200 and at most 5000"),
    ],
)
def test_bad_options(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        run(**(TINY | options))
