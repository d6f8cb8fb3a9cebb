"""Exports, held against the library that reads them."""

import json
import math
from typing import Any

import numpy as np
import pytest
from huggingface_hub import ModelCardData
from huggingface_hub.repocard_data import eval_results_to_model_index, model_index_to_eval_results

import leakbound as lb
from commitments import scored
from leakbound.errors import OptionError
from leakbound.evidence import model_index

PLAN, SCORES = scored()
RESULTS: dict[str, Any] = {
    "pure": lb.audit(SCORES, lb.Coins(PLAN)).with_check(epsilon=1.0),
    "Gaussian": lb.audit(SCORES, lb.Coins(PLAN), claim=lb.GaussianDP()),
    "zero run": lb.audit(SCORES, lb.ZeroRun(PLAN, np.full(300, 0.5))),
    "split": lb.audit(SCORES, lb.RandomSplit(PLAN)),
    "known c": lb.audit(SCORES, lb.Panoramia(PLAN, baseline=SCORES[::-1], c_upper=0.5)),
}
NO_BOUNDS: dict[str, Any] = {
    "estimate": lb.audit(SCORES, lb.Panoramia(PLAN, baseline=SCORES[::-1])),
}


@pytest.mark.parametrize("name", [*RESULTS, *NO_BOUNDS])
def test_scalars_are_flat_finite_and_named_for_any_logger(name: str) -> None:
    result = (RESULTS | NO_BOUNDS)[name]
    found = result.summary().numbers
    assert all(type(value) is float and math.isfinite(value) for value in found.values())
    assert all(key.isidentifier() and key.isascii() for key in found)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["epsilon"] == result.summary().epsilon
    assert found["bound"] == result.bound


@pytest.mark.parametrize("name", RESULTS)
def test_a_model_card_takes_the_index(name: str) -> None:
    index: Any = model_index(RESULTS[name], model="digits", dataset="300 mislabelled digits")
    model, results = model_index_to_eval_results(index)
    assert model == "digits"
    assert eval_results_to_model_index(model, results) == index
    first = results[0]
    assert (first.metric_type, first.metric_value) == (
        "epsilon_lower_bound",
        RESULTS[name].summary().epsilon,
    )
    assert "lower bound" in str(first.metric_name)
    assert "95 % confidence" in str(first.metric_name)
    card: Any = ModelCardData(model_name="digits", eval_results=results)
    assert card.to_dict()["model-index"] == index
    replaced = RESULTS[name].implied() is None
    assert ("posterior_lower_bound" in card.to_yaml()) != replaced
    assert ("for replacing one example" in str(first.metric_name)) == replaced


def test_scalars_of_a_checked_claim() -> None:
    assert RESULTS["pure"].summary().numbers["refuted"] == 1.0
    assert RESULTS["pure"].with_check(epsilon=3).summary().numbers["refuted"] == 0.0
    assert "refuted" not in RESULTS["pure"].with_check(epsilon=99).summary().numbers


@pytest.mark.parametrize("name", NO_BOUNDS)
def test_what_is_no_bound_is_no_metric(name: str) -> None:
    with pytest.raises(OptionError, match="is not a bound"):
        model_index(NO_BOUNDS[name], model="digits", dataset="d")
