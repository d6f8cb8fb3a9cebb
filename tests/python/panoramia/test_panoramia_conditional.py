"""Zero-Run on the audit set of PANORAMIA: what it rests on, refutation, coverage."""

import json
from pathlib import Path

import numpy as np
import pytest

from census import Census, features
from leakbound.audits.panoramia.conditional import bounds_of_pairs
from leakbound.audits.road import Request
from leakbound.panoramia import Options, PanoramiaReport, run
from leakbound.panoramia.scores import CORRECTIONS, shown_of, withheld_together
from leakbound.panoramia.table import Conditional
from leakbound.results import ZeroRunResult
from leakbound.stats import binomial_tail
from memory import Memory, people

PAIRS, KNOWN = 400, 300


def game(seed: int, *, leak: float, known: float = 1.0) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Examples with one feature, and a target that answers each coin at random: ε is `leak`.

    Members have features N(½, 1) and others N(-½, 1), so that λ(x) = x. The baseline knows a part
    of it; the attack sees the feature and the target's answer.
    """
    rng = np.random.default_rng(seed)
    coins = rng.random(PAIRS) < 0.5
    x = rng.normal(size=PAIRS) + coins - 0.5
    said = coins ^ (rng.random(PAIRS) > 1 / (1 + np.exp(-leak)))
    validation = rng.normal(size=2 * KNOWN) + np.repeat([0.5, -0.5], KNOWN)
    hidden = rng.normal(size=(2, 2 * KNOWN))
    scores = {
        "coins": coins,
        "baseline": known * x + (1 - known) * hidden[0, :PAIRS],
        "baseline-validation": known * validation + (1 - known) * hidden[1],
        "attack-it": x + leak * (2.0 * said - 1),
    }
    return scores, x[:, None]


def audited(
    scores: dict[str, np.ndarray],
    x: np.ndarray,
    correction: Conditional,
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> ZeroRunResult:
    (result,) = bounds_of_pairs(
        scores["attack-it"],
        scores["coins"],
        shown_of(scores, x, seed=seed),
        Request(confidence=confidence, seed=seed),
        [CORRECTIONS[correction]],
    )
    return result


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_it_sees_the_leak_and_names_the_model(correction: Conditional) -> None:
    scores, x = game(1, leak=3.0)
    result = audited(scores, x, correction)
    assert result.kind == "conditional_lower_bound"
    assert 0.8 < result.bound <= 3.0
    assert "baseline's score" in str(result.options["propensity"])
    assumptions = {one.name: one.statement for one in result.assumptions}
    assert "baseline's score" in assumptions["propensities"]
    assert "replace one example" in assumptions
    assert result.tested is not None
    assert not result.refuted


def test_a_baseline_that_knows_too_little_is_refuted() -> None:
    scores, x = game(2, leak=0.0, known=0.0)
    result = audited(scores, x, "Zero-Run, match")
    assert result.refuted
    assert result.withheld
    assert result.bound == 0


def test_one_refuted_seed_withholds_the_bounds_of_all() -> None:
    fine, refuted = (
        audited(*game(seed, leak=3.0, known=known), "Zero-Run, match")
        for seed, known in ((1, 1.0), (2, 0.0))
    )
    assert fine.bound > 0
    assert refuted.withheld
    assert withheld_together((fine, fine)) == (fine, fine)
    first, second = withheld_together((fine, refuted))
    assert second is refuted
    assert (first.bound, first.withheld) == (0.0, True)
    assert "contradict the propensity model with another seed" in first.reason


@pytest.mark.validity
@pytest.mark.parametrize("leak", [0.0, 1.0])
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_coverage(correction: Conditional, leak: float) -> None:
    wrong = 0
    for seed in range(100):
        scores, x = game(1000 + seed, leak=leak)
        wrong += audited(scores, x, correction, confidence=0.8, seed=seed).bound > leak
    assert binomial_tail(wrong, 100, 0.2) > 1e-3


def played(folder: Path, *, conditional: bool = True) -> PanoramiaReport:
    members = people(600, 6)
    options = Options(
        inputs=features, helper=None, saturation=(), seeds=(0,), conditional=conditional
    )
    return run(Memory(*members), members, Census(), options=options, checkpoints=folder)


def test_a_run_prints_it_beside_the_estimate(tmp_path: Path) -> None:
    report = played(tmp_path / "one")
    assert [row.audit for row in report.rows] == ["PANORAMIA", *CORRECTIONS]
    assert report.row("target", "Zero-Run, match").c_plus_epsilon_lb is None
    assert all(row.epsilon is not None and row.epsilon.mean > 1 for row in report.rows[1:])
    assert "conditional lower bounds" in str(report)
    assert not any("conditional=True" in step for step in report.summary().next_steps)
    report.report(tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    for words in (
        "Zero-Run, match",
        "If membership depends on an example only through the baseline's score, ε is at least",
        "Grounds of the conditional lower bounds",
        "The audited model was not used.",
        "Privacy Auditing with Zero (0) Training Run",
    ):
        assert words in html.replace("\u00a0", " ").replace("&#39;", "'")
    report.to_json(tmp_path / "report.json")
    assert PanoramiaReport.from_json(report.to_json()) == report
    kept = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert kept["rows"][1]["results"][0]["kind"] == "conditional_lower_bound"
    assert played(tmp_path / "one").table() == report.table()

    alone = played(tmp_path / "two", conditional=False)
    assert alone.table() == report.table()[:1]
    assert "conditional" not in str(alone)
