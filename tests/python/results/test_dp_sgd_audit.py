"""What an audit of DP-SGD says, on every surface, and what its stored form must be."""

import json
import math
import re
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import leakbound as lb
from leakbound import errors, report
from leakbound.audits.dp_sgd.audit import audit_dp_sgd
from leakbound.results import Accounted, DPSGDAudit
from noisy_steps import EXAMPLES, play
from pages import words_of

KNOWN = (EXAMPLES, EXAMPLES)


@cache
def audit(fault: str = "none") -> DPSGDAudit:
    runs: dict[str, dict[str, Any]] = {
        "none": {},
        "noise": {"noise": 0.2},
        "batches": {"batch": lambda _: 20},
        "varying": {"stated": lambda step: 1.0 + step % 2},
        "turned": {"signal": -3.0},
    }
    accounted = Accounted(epsilon=6.5, delta=1e-6, source="PLD")
    claim = lb.ApproxDP(delta=1e-6) if fault == "varying" else lb.GaussianDP()
    return audit_dp_sgd(play(1, **runs[fault]), accounted=accounted, claim=claim, examples=KNOWN)


APART = "contradict each other"


def page(found: DPSGDAudit) -> str:
    return words_of(re.sub(r"<svg.*?</svg>", "", report.render(found), flags=re.DOTALL))


def test_what_proves_nothing_goes_to_json_and_back() -> None:
    found = audit("turned")
    assert found.steps.bound == math.inf
    assert found.steps.noise.reason.startswith("canaries add -")
    assert DPSGDAudit.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"refuted_by": ["steps", "steps"]}, APART),
        ({"refuted_by": ["accounting"]}, APART),
        ({"max_steps": 39}, APART),
        ({"confidence": 1.0}, "confidence is 1, outside"),
        ({"steps": {"largest_noise_multiplier": 0.5}}, APART),
        ({"steps": {"sampling_rate": 1.5}}, APART),
        ({"sampling": {"most_examples": 201}}, APART),
        ({"sampling": {"lower_rate": None}}, APART),
        ({"noise": {"bound": 0.9}}, APART),
        ({"noise": {"reason": "another scale"}}, APART),
        ({"betting": {"steps": 41}}, APART),
        ({"betting": {"confidence": 0.5}}, APART),
        ({"betting": {"coins": 3}}, APART),
        ({"betting": {"correct": 10**6}}, APART),
        ({"betting": {"stake": 1.5}}, APART),
        ({"accounted": {"delta": 0.0}}, "delta must be"),
    ],
)
def test_contradictory_fields_are_refused(change: dict[str, Any], words: str) -> None:
    data = json.loads(audit().to_json())
    places = {name: data["steps"][name] for name in ("betting", "noise")}
    for name, value in change.items():
        if name in places:
            places[name].update(value)
        else:
            data[name] = data[name] | value if isinstance(value, dict) else value
    with pytest.raises(errors.FormatError, match=words):
        DPSGDAudit.from_dict(data)


@pytest.mark.parametrize(("fault", "part"), [("noise", "steps"), ("batches", "sampling")])
def test_what_refutes_is_named_first(fault: str, part: str) -> None:
    found = audit(fault)
    assert found.summary().headline.startswith(
        f"Refuted by the test of {part}: this run is not the stated mech"
    )
    assert found.verdict == found.check() == "refuted"
    assert f"refuted by {part}" in repr(found)


def test_sizes_that_contradict_sampling_alone_are_in_the_headline() -> None:
    found = audit()
    unlikely = replace(found.sampling, p_variance=0.01)
    said = replace(found, sampling=unlikely).summary()
    assert unlikely.refutes
    assert "joint confidence, but the sizes of batches alone contradict" in said.headline
    assert "The sizes contradict Poisson sampling" in " ".join(said.paragraphs)
    assert "efuted" not in " ".join([said.headline, *said.paragraphs])


def test_numbers_are_rounded_to_the_side_that_is_proved() -> None:
    found = audit()
    shown = re.search(r"at most ([\d.]+) \(", found.summary().paragraphs[1])
    assert shown is not None
    assert found.steps.bound <= float(shown[1]) < found.steps.bound + 0.01
    proved = re.search(r"shows ε ≥ ([\d.]+)", found.summary().headline)
    assert proved is not None
    assert found.epsilon() - 0.01 < float(proved[1]) <= found.epsilon()


def test_the_page_says_it_all() -> None:
    found = audit("batches")
    text = page(found).replace("\N{NO-BREAK SPACE}", " ")
    for said in (found.summary().headline, *found.summary().paragraphs, *found.warnings):
        assert said in text
    assert "Steps: the squares" in text
    assert "the product over all values reaches 1/p with probability at most p" in text
    assert "Steps: the bets" in text
    assert "gains nothing on average if the noise multiplier of the step is s or more" in text
    assert "Steps: the game of all coins" in text
    assert "changes the sum of that step by at most one clipped gradient" in text
    assert "it is not a lower bound" not in text.lower()


def test_an_answer_is_about_the_accountants_delta() -> None:
    found = audit()
    said = {x: found.with_check(epsilon=x).summary().answer for x in (0.01, 4.7, 500.0)}
    assert said[0.01].startswith("The claimed ε = 0.01 with δ = 1e-06 is refuted within")
    assert said[4.7].startswith("The claimed ε = 4.7 with δ = 1e-06 is not refuted, although")
    assert said[500.0].startswith(
        "Inconclusive: the claimed ε = 500 with δ = 1e-06 is out of reach"
    )
    assert "accountant's ε = 6.5 with δ = 1e-06" in found.summary().answer
    assert "claimed" not in found.summary().answer  # by nobody
    exact = replace(found, accounted=Accounted(epsilon=7.369_234, delta=1e-6))
    assert "accountant's ε = 7.369 with" in exact.summary().answer
    assert found.with_check(parameter=0.1).summary().answer.startswith("The claimed μ = 0.1 is")


def test_an_accountant_of_the_other_relation_is_refused() -> None:
    accounted = Accounted(epsilon=6.5, delta=1e-6, relation="replace")
    assert Accounted.from_json(accounted.to_json()) == accounted
    with pytest.raises(errors.OptionError, match="adding or removing one example"):
        audit_dp_sgd(play(1), accounted=accounted, examples=KNOWN)
