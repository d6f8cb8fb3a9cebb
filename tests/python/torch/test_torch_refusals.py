"""What scoring a torch model refuses, and how it says so."""

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    WeightedRandomSampler,
)

from leakbound.errors import DeviceMemoryError, InputError, InputTypeError, OptionError
from leakbound.torch import score
from scored import EXAMPLES, Pairs, SimpleModel, Stream, examples, logits_of, network, rows

torch.set_num_threads(1)
SCALAR: Any = [(torch.tensor(1.0), 0)]
"""An example of which a batch is made by mistake."""


def loaders_out_of_order() -> dict[str, DataLoader[Any]]:
    """Return loaders that do not keep the order."""
    inputs, targets = examples()
    pairs = Pairs(inputs, targets)
    weighted = WeightedRandomSampler([1.0] * EXAMPLES, EXAMPLES)
    batches = [list(range(20)), list(range(20, EXAMPLES))]
    return {
        "shuffled": DataLoader(pairs, shuffle=True),
        "weighted": DataLoader(pairs, sampler=weighted),
        "unbatched": DataLoader(pairs, batch_size=None, shuffle=True),
        "batches": DataLoader(pairs, batch_sampler=batches),
        "random batches": DataLoader(
            pairs, batch_sampler=BatchSampler(RandomSampler(pairs), 8, drop_last=False)
        ),
        "drops": DataLoader(pairs, batch_size=8, drop_last=True),
        "workers": DataLoader(Stream(pairs), num_workers=2),
        "race": DataLoader(pairs, num_workers=2, in_order=False),
    }


@pytest.mark.parametrize("name", loaders_out_of_order())
def test_loaders_out_of_order(name: str) -> None:
    with pytest.raises(InputError, match=r"every example once and in order.*shuffle=False"):
        score(network(), loaders_out_of_order()[name])


class Uncounted(Dataset[Any]):
    """Rows of which nobody says how many there are."""

    def __getitem__(self, index: int) -> Any:
        return torch.zeros(2), index % 2


class Miscounted(Uncounted):
    """Rows that say there is a number, and have none."""

    def __len__(self) -> int:
        raise NotImplementedError


@pytest.mark.parametrize(
    "data",
    [
        *(np.array(3), torch.tensor(3), Uncounted(), Miscounted()),
        *(DataLoader(kind()) for kind in (Uncounted, Miscounted)),
    ],
)
def test_rows_that_cannot_be_counted(data: Any) -> None:
    with pytest.raises(InputTypeError, match="rows of data cannot be counted, which is of type"):
        score(network(), data)


@pytest.mark.parametrize("ids", [None, [f"x{i}" for i in range(EXAMPLES)]])
def test_nan_scores_are_named(ids: Any) -> None:
    inputs, targets = examples()
    inputs[[3, 30]] = torch.nan
    with pytest.raises(InputError) as caught:
        score(network(), (inputs, targets), ids=ids, batch_size=10)
    named = "x3, x30" if ids else "3, 30"
    assert f"logit_margin is NaN for 2 of 37 examples, ids {named}:" in str(caught.value)


@pytest.mark.parametrize(
    ("row", "target", "ids", "named"),
    [(33, 4, None, "target 4 at id 33"), (2, -100, range(100, 137), "target -100 at id 102")],
)
@pytest.mark.parametrize("signal", ["logit_margin", "cross_entropy"])
def test_targets_without_a_class(signal: Any, row: int, target: int, ids: Any, named: str) -> None:
    inputs, targets = examples()
    targets[row] = target
    with pytest.raises(InputError, match=named + " is outside 0 … 3"):
        score(network(), (inputs, targets), ids=ids, batch_size=10, signal=signal)


@pytest.mark.parametrize("function", [lambda x: x[:, 0], lambda x: x[:-1], lambda x: x.long()])
def test_outputs_that_are_no_logits(function: Any) -> None:
    with pytest.raises(InputError, match=r"must return logits of shape \(37, classes\)"):
        score(SimpleModel(function), examples())


@pytest.mark.parametrize("signal", [functional.cross_entropy, lambda z, _: z[:, 0].tolist()])
def test_signals_of_the_wrong_shape(signal: Any) -> None:
    with pytest.raises(InputError, match=r"tensor of real numbers of shape \(37,\)"):
        score(network(), examples(), signal=signal)


@pytest.mark.parametrize(("tied", "refused"), [(10, False), (11, True)])
def test_one_tenth_of_the_examples_may_be_tied(tied: int, refused: bool) -> None:  # noqa: FBT001
    logits = torch.zeros(100, 2)
    logits[tied:, 1] = torch.arange(1.0, 101 - tied)
    data = rows(100), torch.ones(100, dtype=torch.int64)
    if refused:
        with pytest.raises(InputError, match=r"11 of 100 examples.* float32"):
            score(logits_of(logits), data)
    else:
        assert len(score(logits_of(logits), data)) == 100


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ((torch.zeros(0, 6), torch.zeros(0, dtype=torch.int64)), InputError, "data is empty"),
        (Stream(Pairs(torch.zeros(0, 6), torch.zeros(0))), InputError, "data is empty"),
        ((torch.zeros(3, 6),) * 3, InputError, "got 3 arrays"),
        ((torch.zeros(3, 6), torch.zeros(2)), InputError, "3 inputs and 2 targets"),
        ((torch.zeros(3, 6), torch.tensor(1)), InputError, "got 3 inputs and 0 targets"),
        ((np.array(["a"]), np.array([0])), InputTypeError, "got dtype <U1"),
        ([({"x": 1.0}, 0)] * 3, InputTypeError, "inputs of a batch must be a tensor, got dict"),
        ([(1, "cat"), (2, "dog")], InputTypeError, "targets of a batch must be a tensor, got"),
        ([(1.0, 2.0, 3)] * 3, InputTypeError, "must yield pairs.*got 3 parts"),
        (DataLoader(SCALAR, batch_size=None), InputError, "got a scalar"),
        (iter([]), InputTypeError, "got list_iterator"),
        ((torch.zeros(3, 6), torch.zeros(3)), InputError, "one integer class label for each"),
    ],
)
def test_bad_data(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        score(network(), data)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"signal": "margin"}, OptionError, "'logit_margin', 'cross_entropy'"),
        ({"signal": 3}, OptionError, "signal must be one of"),
        ({"batch_size": 0}, OptionError, "batch_size must be at least 1"),
        ({"batch_size": 2.5}, InputTypeError, "batch_size must be an integer"),
        ({"device": "gpu"}, OptionError, "device 'gpu' cannot be used"),
        ({"ids": range(5)}, InputError, "ids has 5 values"),
        ({"ids": [0] * EXAMPLES}, InputError, "more than once"),
        ({"ids": [[0, 1]] * EXAMPLES}, InputError, "ids must be one-dimensional"),
    ],
)
def test_bad_options(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        score(network(), examples(), **options)


@pytest.mark.parametrize(("batch_size", "advised"), [(256, 64), (3, 1), (1, 1)])
def test_too_little_memory(batch_size: int, advised: int) -> None:
    def full(_: Tensor) -> Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")

    with pytest.raises(DeviceMemoryError, match=f"batch_size={advised} or less.*device='cpu'"):
        score(SimpleModel(full), examples(), batch_size=batch_size)


def test_without_torch_the_extra_is_named() -> None:
    code = "import sys; sys.modules['torch'] = None; import leakbound.torch"
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "MissingExtraError" in run.stderr
    assert "pip install 'leakbound[torch]'" in run.stderr


@pytest.mark.parametrize(
    ("module", "extra", "missing"),
    [
        ("transformers", "hf", "torch"),
        ("transformers", "hf", "transformers"),
        ("lightning", "lightning", "torch"),
        ("planned", "torch", "torch"),
    ],
)
def test_callbacks_without_their_packages_name_the_extra(
    module: str, extra: str, missing: str
) -> None:
    name = f"leakbound.integrations.{module}"
    code = f"import sys; sys.modules[{missing!r}] = None; import {name}"
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert f"needs {missing}, which is not installed" in run.stderr.splitlines()[-1]
    assert f"pip install 'leakbound[{extra}]'" in run.stderr


class Deadly(Dataset[Any]):
    """Rows of which one ends the process that makes it."""

    def __len__(self) -> int:
        return 12

    def __getitem__(self, row: int) -> tuple[Tensor, int]:
        if row == 7:
            os._exit(3)
        return torch.zeros(6), 0


def test_a_worker_that_is_killed_is_no_matter_of_shapes() -> None:
    with pytest.raises(InputError, match=r"a worker of the loader was killed.*num_workers=0"):
        score(network(), DataLoader(Deadly(), batch_size=4, num_workers=1), progress=False)
