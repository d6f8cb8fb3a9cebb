"""What cannot be watched is refused before training, or at its first step."""

from typing import Any

import pytest
import torch
from opacus import PrivacyEngine
from opacus.optimizers import AdaClipDPOptimizer, DPOptimizer, DPOptimizerFastGradientClipping
from torch import nn

import leakbound as lb
from leakbound import errors
from leakbound.integrations import accounted_by
from private_training import DATA, FEW, loss_of, network, optimizer_of, watched

ADAPTIVE = {
    "private": AdaClipDPOptimizer,
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.1,
    "max_clipbound": 10.0,
    "min_clipbound": 0.1,
    "unclipped_num_std": 1.0,
}
REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "ghost clipping": (
        {"private": DPOptimizerFastGradientClipping},
        errors.InputTypeError,
        "inside the backward pass",
    ),
    "adaptive clipping": (ADAPTIVE, errors.InputTypeError, "norm that follows the data"),
    "no noise": ({"noise": 0.0}, errors.OptionError, "claims no privacy"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_optimizers_that_cannot_be_watched(case: str) -> None:
    options, error, words = REFUSED[case]
    with pytest.raises(error, match=words):
        lb.watch_dp_sgd(optimizer_of(network(), **options), **FEW)


def test_an_optimizer_of_torch_cannot_be_watched() -> None:
    with pytest.raises(errors.InputTypeError, match="must be an opacus DPOptimizer"):
        lb.watch_dp_sgd(torch.optim.SGD(network().parameters(), lr=0.1), **FEW)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"canaries": 1}, "canaries must be at least 2"),
        (
            {"sampling_rate": 60},
            "above 0 and at most 1, got 60: .* divide the mean size of a batch by the number of",
        ),
        ({"max_steps": 10**7}, "max_steps must be at least 1 and at most 1000000"),
        ({"examples": 14}, r"examples is 14, and the optimizer expects batches of 15: pass the"),
        (
            {"max_steps": 10**6, "step_canaries": 101},
            "101,000,000 coins, more than the 100,000,000 .* at most 100 step canaries",
        ),
    ],
)
def test_options_out_of_range(options: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.OptionError, match=words):
        lb.watch_dp_sgd(optimizer_of(network()), **FEW | options)


def test_a_watch_is_for_one_run() -> None:
    model = network()
    optimizer = optimizer_of(model)
    watch = lb.watch_dp_sgd(optimizer, **FEW, seed=1)
    with pytest.raises(errors.OptionError, match="has not been entered"):
        watch.audit()
    with watch:
        with pytest.raises(errors.OptionError, match="has not been left"):
            watch.audit()
        with pytest.raises(errors.OptionError, match="already being watched"):
            lb.watch_dp_sgd(optimizer, **FEW)
        with pytest.raises(errors.OptionError, match="has been used"):
            watch.__enter__()
    with pytest.raises(errors.AbstentionError, match="no step was watched"):
        watch.audit()
    with pytest.raises(errors.OptionError, match="has been used"), watch:
        pass


def test_within_a_logical_batch_no_watch_begins() -> None:
    model = network()
    optimizer = optimizer_of(model)
    optimizer.signal_skip_step(do_skip=True)
    torch.autograd.backward(loss_of(model, DATA[[0, 1]]))
    optimizer.step()
    with pytest.raises(errors.OptionError, match="within a logical batch"):
        lb.watch_dp_sgd(optimizer, **FEW)


def test_an_optimizer_that_goes_round_pre_step_is_refused_at_its_first_step() -> None:
    class Round(DPOptimizer):  # type: ignore[misc]
        def step(self, _closure: Any = None) -> Any:
            return self.original_optimizer.step()

    model = network()
    with pytest.raises(errors.OptionError, match="without pre_step"):
        watched(model, optimizer_of(model, private=Round))


def test_a_gradient_that_is_not_finite_is_named() -> None:
    model = network()
    optimizer = optimizer_of(model)
    inputs, targets = DATA[[0, 1, 2]]
    inputs[1, 0] = torch.nan
    with lb.watch_dp_sgd(optimizer, **FEW):
        torch.autograd.backward(loss_of(model, (inputs, targets)))
        with pytest.raises(errors.InputError, match="released at step 1 is not finite"):
            optimizer.step()


def test_accounted_by_takes_engines_only_that_counted_something() -> None:
    with pytest.raises(errors.InputTypeError, match="must be an opacus PrivacyEngine"):
        accounted_by(nn.Linear(1, 1), delta=1e-5)
    with pytest.raises(errors.AbstentionError, match="has counted no step"):
        accounted_by(PrivacyEngine(), delta=1e-5)
