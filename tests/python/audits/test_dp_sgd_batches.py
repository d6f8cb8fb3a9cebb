"""Runs whose batches are not Poisson samples: what is claimed, refused, and proved of them."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import leakbound as lb
from leakbound.audits.dp_sgd.audit import audit_dp_sgd
from leakbound.audits.dp_sgd.canaries import CanaryDesign, Observed, Recorder
from leakbound.audits.dp_sgd.sampling import audit_batch_sizes
from leakbound.claims.training import StatedRun
from leakbound.errors import OptionError
from leakbound.results import Accounted, DPSGDAudit
from noisy_steps import EXAMPLES, play

KNOWN = (EXAMPLES, EXAMPLES)
BATCH = 20
WAYS: dict[str, dict[str, Any]] = {
    "Poisson, replaced": {"sampling": "poisson", "relation": "replace"},
    "fixed size": {"sampling": "fixed_size"},
    "epochs, zeroed out": {"sampling": "epochs", "relation": "zero_out"},
    "epochs, replaced": {"sampling": "epochs", "relation": "replace"},
}


def seen(seed: int, way: str, **options: Any) -> Observed:
    batch = None if way.startswith("Poisson") else lambda _rng: BATCH
    return play(seed, **({"batch": batch} | WAYS[way] | options))


@pytest.mark.parametrize("way", WAYS)
def test_the_score_of_membership_is_the_log_likelihood_ratio(way: str) -> None:
    """Against densities under both coins; where a batch is known, given that it is."""
    rate, noise = 0.25, 0.7
    design = CanaryDesign.create(
        canaries=40, step_canaries=5, sampling_rate=rate, max_steps=8, seed=0, **WAYS[way]
    )
    recorder, rng = Recorder(design, noise), np.random.default_rng(0)
    ratio, other = np.ones(40), -1.0 if "replaced" in way or way == "fixed size" else 0.0
    for _ in range(8):
        rows = recorder.included()
        within = np.isin(np.arange(40), rows)
        values = rng.normal(size=45)
        recorder.record(values, noise, 1)
        x = values[:40]
        none, first, second = (norm.pdf(x, mean, noise) for mean in (0, 1, other))
        if way.startswith("epochs"):
            ratio *= np.where(within, first / second, 1.0)
        else:
            ratio *= ((1 - rate) * none + rate * first) / ((1 - rate) * none + rate * second)
    np.testing.assert_allclose(recorder.observed().log_odds, np.log(ratio), rtol=1e-9)


@pytest.mark.parametrize("relation", ["zero_out", "replace"])
def test_a_canary_has_one_place_in_each_epoch_whatever_its_coin(relation: Any) -> None:
    design = CanaryDesign.create(
        canaries=60, step_canaries=4, sampling_rate=0.2, max_steps=10, seed=2,
        sampling="epochs", relation=relation,
    )  # fmt: skip
    recorder = Recorder(design, 1.0)
    places = np.zeros((10, 60), dtype=bool)
    for step in range(10):
        rows = recorder.included()
        places[step, rows[rows < 60]] = True
        recorder.record(np.zeros(64), 1.0, 1)
    assert (places[:5].sum(axis=0) == 1).all()
    assert (places[5:].sum(axis=0) == 1).all()
    assert (places[:5] != places[5:]).any()
    member = design.member()
    without = 0.0 if relation == "zero_out" else -1.0
    assert (recorder.contributions[:60] == np.where(member, 1.0, without)).all()


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "epochs without a relation": ({"sampling": "epochs"}, "needs a relation"),
    "epochs, one example more": (
        {"sampling": "epochs", "relation": "add_remove"},
        "moves the borders of all later batches",
    ),
    "epochs of 12.5 batches": (
        {"sampling": "epochs", "relation": "zero_out", "sampling_rate": 0.08},
        r"1 / len\(loader\)",
    ),
    "fixed size, one example more": (
        {"sampling": "fixed_size", "relation": "add_remove"},
        "changes the rate B/N",
    ),
    "fixed size, zeroed out": ({"sampling": "fixed_size", "relation": "zero_out"}, "replace"),
    "Poisson, zeroed out": ({"relation": "zero_out"}, 'relation="add_remove"'),
    "another word": ({"sampling": "shuffled"}, "sampling must be one of"),
    "another relation": ({"relation": "swap"}, "relation must be one of"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_no_claim_covers_is_refused_and_why(case: str) -> None:
    options, said = REFUSED[case]
    given: dict[str, Any] = {"sampling_rate": 0.1} | options
    with pytest.raises(OptionError, match=said):
        CanaryDesign.create(canaries=10, step_canaries=5, max_steps=40, seed=0, **given)


def test_epsilon_of_a_run_by_how_its_batches_are_made() -> None:
    """1,200 examples, batches of 60, 400 steps, noise 0.8 of the clipping norm, δ = 1e-5."""
    known = {
        ("poisson", "add_remove"): 10.73,
        ("poisson", "replace"): 15.32,
        ("fixed_size", "replace"): 72.50,
        ("epochs", "zero_out"): 38.7,
        ("epochs", "replace"): 109.3,
    }
    for (sampling, relation), epsilon in known.items():
        run = StatedRun.checked(sampling, relation, 0.05)  # type: ignore[arg-type]
        assert run.allowed(0.8, 400).epsilon(1e-5) == pytest.approx(epsilon, abs=0.05)
        assert run.attained(0.8, 400).epsilon(1e-5) <= epsilon + 0.05
    # the root of the epochs over the noise, and an epoch that has begun counts
    run = StatedRun.checked("epochs", "zero_out", 0.05)
    assert run.parameter(0.8, 400) == pytest.approx(math.sqrt(20) / 0.8)
    assert run.parameter(0.8, 401) == pytest.approx(math.sqrt(21) / 0.8)


@pytest.mark.parametrize("way", WAYS)
def test_a_right_run_is_not_refuted_and_a_quieter_one_is(way: str) -> None:
    right = audit_dp_sgd(seen(1, way), examples=KNOWN)
    assert right.refuted_by == ()
    assert right.sampling.reason == ""
    assert right.epsilon() > 0.5
    stated = WAYS[way] | {"relation": right.options["relation"]}
    assert right.options | stated == right.options
    claim = StatedRun.checked(stated["sampling"], stated["relation"], 0.1).family(40)
    assert right.membership.claim == claim
    compares = "add_remove" if stated["relation"] == "zero_out" else "replace"
    assert right.membership.relation == compares
    assert DPSGDAudit.from_json(right.to_json()) == right
    quiet = audit_dp_sgd(seen(1, way, noise=0.35), examples=KNOWN)
    assert "steps" in quiet.refuted_by


def test_an_accountant_below_epochs_of_known_order_is_warned_of_and_not_refuted() -> None:
    """4.7 is right for 40 Poisson samples at rate 0.1 and noise 1, and far too small for epochs.

    Of a random and secret order it may be right: mixtures of orders leak less.
    """
    accounted = (4.7, 1e-5)
    poisson = audit_dp_sgd(play(1), accounted=accounted, claim=lb.GaussianDP(), examples=KNOWN)
    assert poisson.refuted_by == ()
    found = audit_dp_sgd(seen(1, "epochs, zeroed out"), accounted=accounted, examples=KNOWN)
    assert found.refuted_by == ()
    assert found.check() == "not refuted"
    assert any("if the attacker knows the order" in text for text in found.warnings)
    assert DPSGDAudit.from_json(found.to_json()) == found
    exact = float(lb.TradeOff.gaussian(2.0).epsilon(1e-5))  # √4 epochs
    assert found.attainable == pytest.approx(exact)
    assert f"{math.floor(100 * exact) / 100:.2f}" in str(found)
    assert found.steps.epsilon(1e-5) > 0.8 * exact
    # every ε of steps is on that condition
    said = found.summary()
    assert "in an order that the attacker knows, and all noisy gradients" in "".join(
        text for one in said.sections for text in one.paragraphs
    )
    assert any("an order that the attacker knows" in one.note for one in said.metrics)
    assert any("who also knows their order" in text for text in said.meaning.says)
    assert not said.answer
    assert any("against an attacker who knows this order" in x.statement for x in said.assumptions)
    enough = audit_dp_sgd(seen(1, "epochs, zeroed out"), accounted=(30.0, 1e-5), examples=KNOWN)
    assert not any("order" in text for text in enough.warnings)


def test_an_accountant_of_another_relation_is_refused() -> None:
    replaced = Accounted(epsilon=9.0, delta=1e-5, relation="replace")
    added = replace(replaced, relation="add_remove")
    with pytest.raises(OptionError, match="on replacing one example, and this audit"):
        audit_dp_sgd(play(1), accounted=replaced, claim=lb.GaussianDP())
    with pytest.raises(OptionError, match='relation="replace"'):
        audit_dp_sgd(seen(1, "epochs, replaced"), accounted=added)
    audit = audit_dp_sgd(seen(1, "epochs, replaced"), accounted=replaced, examples=KNOWN)
    assert any("if the attacker knows the order" in text for text in audit.warnings)


SIZES: dict[str, tuple[str, Any, bool]] = {
    "constant": ("fixed size", lambda _rng: BATCH, False),
    "Poisson": ("fixed size", lambda rng: rng.binomial(EXAMPLES, 0.1), True),
    "constant, another rate": ("fixed size", lambda _rng: BATCH + 2, True),
    "whole epochs": ("epochs, zeroed out", lambda _rng: BATCH, False),
    "fewer than all": ("epochs, zeroed out", lambda _rng: BATCH - 3, False),
    "more than all": ("epochs, zeroed out", lambda _rng: BATCH + 1, True),
}


@pytest.mark.parametrize("case", SIZES)
def test_sizes_contradict_what_they_cannot_be(case: str) -> None:
    way, batch, wrong = SIZES[case]
    run = seen(3, way, batch=batch)
    found = audit_batch_sizes(run, KNOWN, 0.95)
    assert found.refutes == wrong
    assert found.p_value == (0.0 if wrong else 1.0)
    audit = audit_dp_sgd(run, claim=lb.GaussianDP(), examples=KNOWN)
    assert ("sampling" in audit.refuted_by) == wrong
    statuses = {one.status for one in audit.summary().assumptions if "batches" in one.name}
    assert ("contradicted" in statuses) == wrong
    untested = audit_batch_sizes(run, None, 0.95)
    assert (untested.sampling, untested.p_value) == (run.design.sampling, 1.0)


@pytest.mark.validity
@pytest.mark.parametrize("way", WAYS)
def test_membership_is_false_no_more_often_than_stated(way: str) -> None:
    """The truth itself, of 600 games at the boundary of what is stated."""
    from validity.suite import most_errors

    false = 0
    for seed in range(600):
        run = seen(seed, way, steps=20)
        counted = audit_dp_sgd(run, claim=lb.GaussianDP(), examples=KNOWN).membership
        curve = run.design.stated.allowed(1.0, 20)
        false += lb.stats.fdp_rejects(
            counted.correct, counted.guesses, float(counted.m), tradeoff=curve, tau=0.05
        )
    assert false <= most_errors(600, 0.05, len(WAYS))
