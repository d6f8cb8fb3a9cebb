"""Arrays and tensors without dimensions, which have the methods of lists and no items."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from leakbound._base.checks import MOST_BATCH
from leakbound._base.reading import is_list
from leakbound.dp_sgd import audit_batches, neighbouring_batches, probe_dp_step
from leakbound.errors import InputTypeError, OptionError
from leakbound.torch import Scorer
from toy_steps import SIGMA, Toy

SINGLE: list[Any] = [np.array(3), torch.tensor(3)]
DOORS: dict[str, Callable[[Any], Any]] = {
    "pairs": lambda one: probe_dp_step(Toy(), one, noise_multiplier=SIGMA),
    "first of a pair": lambda one: probe_dp_step(Toy(), [(one, [])], noise_multiplier=SIGMA),
    "second of a pair": lambda one: probe_dp_step(Toy(), [([], one)], noise_multiplier=SIGMA),
    "batches": lambda one: neighbouring_batches(one, [[1.0]]),
    "candidates": lambda one: neighbouring_batches([[1.0]], one),
    "batches of a run": lambda one: audit_batches(one, examples=10),
}


@pytest.mark.parametrize("single", SINGLE, ids=["array", "tensor"])
@pytest.mark.parametrize("door", DOORS)
def test_they_are_refused_as_lists(door: str, single: Any) -> None:
    assert not is_list(single)
    with pytest.raises(InputTypeError, match="must be"):
        DOORS[door](single)


def test_batches_are_no_larger_than_rows_can_be_counted() -> None:
    with pytest.raises(OptionError, match=f"at most {MOST_BATCH}, got {2**63}"):
        Scorer("torch.nn:Identity", device="cpu", batch_size=2**63)
