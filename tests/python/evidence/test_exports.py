"""Exports, held against the library or the schema of the tool that reads them."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from huggingface_hub import ModelCardData
from huggingface_hub.repocard_data import eval_results_to_model_index, model_index_to_eval_results

import leakbound as lb
from commitments import scored
from leakbound.errors import IncompatibleOptionsError, OptionError
from leakbound.evidence import ml_bom, model_index

PLAN, SCORES = scored()
RESULTS: dict[str, Any] = {
    "pure": lb.audit_one_run(SCORES, PLAN).with_check(epsilon=1.0),
    "nothing": lb.audit_one_run(-SCORES, PLAN, sides="member"),
    "approximate": lb.audit_one_run(SCORES, PLAN, claim=lb.ApproxDP(delta=1e-5)),
    "Gaussian": lb.audit_one_run(SCORES, PLAN, claim=lb.GaussianDP()),
    "zero run": lb.audit_zero_run(SCORES, PLAN, np.full(300, 0.5)),
    "known c": lb.audit_panoramia(SCORES[::-1], SCORES, PLAN, c_upper=0.5),
}
NO_BOUNDS: dict[str, Any] = {
    "estimate": lb.audit_panoramia(SCORES[::-1], SCORES, PLAN),
}


@pytest.mark.parametrize("name", [*RESULTS, *NO_BOUNDS])
def test_scalars_are_flat_finite_and_named_for_any_logger(name: str) -> None:
    result = (RESULTS | NO_BOUNDS)[name]
    found = result.scalars()
    assert all(type(value) is float and math.isfinite(value) for value in found.values())
    assert all(key.isidentifier() and key.isascii() for key in found)
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["epsilon"] == result.epsilon_bound
    assert found["proves"] == float(name in RESULTS)
    assert ("implied_advantage" in found) == (name in RESULTS)
    assert found.get("mu") == (result.bound if name in {"Gaussian", "zero run"} else None)


def test_scalars_of_a_checked_claim() -> None:
    assert RESULTS["pure"].scalars()["refuted"] == 1.0
    assert RESULTS["nothing"].with_check(epsilon=1).scalars()["refuted"] == 0.0
    assert "refuted" not in RESULTS["pure"].with_check(epsilon=99).scalars()


_LOGGERS = "no tests need it but this: pip install mlflow-skinny wandb"


@pytest.mark.parametrize("name", [*RESULTS, *NO_BOUNDS])
def test_mlflow_gives_back_what_it_was_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow: Any = pytest.importorskip("mlflow", reason=_LOGGERS)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the store that needs no database
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    found = (RESULTS | NO_BOUNDS)[name].scalars()
    with mlflow.start_run() as run:
        mlflow.log_metrics(found)
    assert mlflow.get_run(run.info.run_id).data.metrics == found


@pytest.mark.parametrize("name", ["pure", "Gaussian", "estimate"])
def test_wandb_gives_back_what_it_was_told(name: str, tmp_path: Path) -> None:
    wandb: Any = pytest.importorskip("wandb", reason=_LOGGERS)
    found = (RESULTS | NO_BOUNDS)[name].scalars()
    with wandb.init(mode="offline", dir=tmp_path, project="audit") as run:
        run.log(found)
        kept = {key: run.summary[key] for key in found}
    assert kept == found


@pytest.mark.parametrize("name", RESULTS)
def test_a_model_card_takes_the_index(name: str) -> None:
    index: Any = model_index(RESULTS[name], model="digits", dataset="300 mislabelled digits")
    model, results = model_index_to_eval_results(index)
    assert model == "digits"
    assert eval_results_to_model_index(model, results) == index
    first = results[0]
    assert (first.metric_type, first.metric_value) == (
        "epsilon_lower_bound",
        RESULTS[name].epsilon_bound,
    )
    assert "lower bound" in str(first.metric_name)
    assert "95 % confidence" in str(first.metric_name)
    card: Any = ModelCardData(model_name="digits", eval_results=results)
    assert card.to_dict()["model-index"] == index
    assert "posterior_lower_bound" in card.to_yaml()


@pytest.mark.parametrize("name", RESULTS)
def test_a_bill_of_materials_fits_the_schema_of_cyclonedx(name: str) -> None:
    pytest.importorskip("cyclonedx", reason="in the group test, as cyclonedx-python-lib")
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    validator = JsonStrictValidator(SchemaVersion.V1_6)
    document: Any = ml_bom(RESULTS[name], model="digits", version="1", sha256="ab" * 32)
    assert validator.validate_str(json.dumps(document)) is None
    document["components"][0]["modelCard"]["quantitativeAnalysis"]["epsilon"] = 1
    assert validator.validate_str(json.dumps(document)) is not None


def test_what_a_bill_of_materials_says() -> None:
    result = RESULTS["pure"]
    document: Any = ml_bom(result, model="digits")
    metrics = document["components"][0]["modelCard"]["quantitativeAnalysis"]["performanceMetrics"]
    epsilon, advantage, *_ = metrics
    assert float(epsilon["value"]) == result.bound
    assert epsilon["confidenceInterval"] == {"lowerBound": repr(result.bound)}
    assert advantage["confidenceInterval"]["upperBound"] == "1"
    limits = document["components"][0]["modelCard"]["considerations"]["technicalLimitations"]
    assert len(limits) == len(result.assumptions)


@pytest.mark.parametrize("name", NO_BOUNDS)
def test_what_is_no_bound_is_no_metric(name: str) -> None:
    for export in (model_index, ml_bom):
        options: dict[str, Any] = {"dataset": "d"} if export is model_index else {}
        with pytest.raises(IncompatibleOptionsError, match="is no bound"):
            export(NO_BOUNDS[name], model="digits", **options)


def test_names_and_digests_are_checked() -> None:
    with pytest.raises(OptionError, match="model must be a name"):
        model_index(RESULTS["pure"], model=" ", dataset="d")
    with pytest.raises(OptionError, match="64 hexadecimal"):
        ml_bom(RESULTS["pure"], model="digits", sha256="AB" * 32)
