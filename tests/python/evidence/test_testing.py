"""Claims as tests of pytest: passed, failed, and an outcome of its own where nothing was tested."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import leakbound as lb
from leakbound.errors import InputTypeError, OptionError
from leakbound.testing import InconclusiveError, RefutedError, assert_not_refuted

rng = np.random.default_rng(0)
MEMBER = rng.random(300) < 0.5
NOISE = rng.normal(size=300)
LEAKY = lb.audit(NOISE + 2 * MEMBER, lb.Coins(MEMBER))
QUIET = lb.audit(NOISE, lb.Coins(MEMBER))
GAUSSIAN = lb.audit(NOISE + 2 * MEMBER, lb.Coins(MEMBER), claim=lb.GaussianDP())
PANORAMIA = lb.audit(NOISE + 2 * MEMBER, lb.Panoramia(MEMBER, baseline=NOISE))
WARNED = lb.audit(NOISE.round(), lb.Coins(MEMBER))  # ties


def test_warnings_and_ways_of_being_inconclusive_change_nothing_about_a_verdict() -> None:
    """What passes and what fails of every kind of result is in tests of the protocol."""
    assert_not_refuted(WARNED, epsilon=1)
    assert_not_refuted(PANORAMIA, epsilon=3, c=1)
    for result, claimed in ((LEAKY, {"epsilon": 0.5}), (GAUSSIAN, {"parameter": 0.5})):
        with pytest.raises(RefutedError, match=r"The claimed [εμ] = 0\.5 is refuted"):
            assert_not_refuted(result, **claimed, inconclusive="skip", strict=True)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("result", "options", "words"),
    [
        (QUIET, {"epsilon": 50}, "Inconclusive: the claimed ε = 50 is out of reach"),
        (PANORAMIA, {"epsilon": 1}, "cannot be tested alone"),
        (WARNED, {"epsilon": 1, "strict": True}, "strict=True found: 100 % of the examples share"),
    ],
)
def test_what_is_inconclusive(result: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InconclusiveError, match=words):
        assert_not_refuted(result, **options)
    with pytest.raises(pytest.skip.Exception, match=words):
        assert_not_refuted(result, **options, inconclusive="skip")


@pytest.mark.parametrize(
    ("result", "claimed", "words"),
    [
        (GAUSSIAN, {"parameter": 9.0, "delta": 0.0}, "delta=0.0 is not for parameter="),
        (QUIET, {"epsilon": 1.0, "c": 0.5}, "cannot be asked this: .* unexpected .*'c'"),
        (PANORAMIA, {"parameter": 1.0}, "a PanoramiaResult cannot be asked this"),
        (
            PANORAMIA,
            {"epsilon": 1.0, "c": 1.0, "relation": "replace"},
            "cannot be asked this: .*'relation'",
        ),
        (PANORAMIA, {"c": 1.0}, "missing a required argument: 'epsilon'"),
        (QUIET, {}, "one of them"),
        (QUIET, {"epsilon": 1.0, "strict": "yes"}, "strict must be True or False"),
        (QUIET, {"epsilon": 1.0, "inconclusive": "yes"}, "inconclusive must be one of"),
        ((QUIET, QUIET), {"epsilon": 1.0}, "result must be one of Result"),
    ],
)
def test_no_part_of_a_claim_is_dropped(result: Any, claimed: dict[str, Any], words: str) -> None:
    with pytest.raises((OptionError, InputTypeError), match=words):
        assert_not_refuted(result, **claimed)


SUITE = """
import numpy as np, leakbound as lb
from leakbound.testing import assert_not_refuted
rng = np.random.default_rng(1)
member = rng.random(300) < 0.5
result = lb.audit(rng.normal(size=300), lb.Coins(member))
def test_passes():
    assert_not_refuted(result, epsilon=1)
def test_out_of_reach():
    assert_not_refuted(result, epsilon=50)
def test_refuted():
    assert_not_refuted(lb.audit(member + np.arange(300) / 1e6, lb.Coins(member)), epsilon=1)
def test_broken():
    assert 1 == 2
"""


def test_pytest_tells_the_outcomes_apart(tmp_path: Path) -> None:
    (tmp_path / "test_privacy.py").write_text(SUITE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "leakbound.testing", "-p", "no:cacheprovider",
         "--junitxml=junit.xml", "-v", "test_privacy.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "test_passes PASSED" in done.stdout
    assert "test_out_of_reach INCONCLUSIVE" in done.stdout
    assert "test_refuted FAILED" in done.stdout
    (why,) = [line for line in done.stdout.splitlines() if line.startswith("INCONCLUSIVE ")]
    assert "test_out_of_reach: Inconclusive: the claimed ε = 50 is out of reach." in why
    assert "RefutedError: The claimed ε = 1 is refuted (95 % confidence)." in done.stdout
    assert re.search(r"rules out every ε-DP guarantee with ε < \d\.\d\d \(95 %", done.stdout)
    assert "raise RefutedError" not in done.stdout  # the sentence, and not our source
    assert "leakbound/testing.py" not in done.stdout
    last = done.stdout.splitlines()[-1]
    assert all(words in last for words in ("2 failed", "1 passed", "1 inconclusive"))
    marked = {
        case.get("name"): {one.get("name"): one.get("value") for one in case.iter("property")}
        for case in ET.parse(tmp_path / "junit.xml").iter("testcase")
    }
    assert marked.pop("test_out_of_reach") == {"leakbound": "inconclusive"}
    assert set(map(str, marked.values())) == {"{}"}


WITHOUT_PYTEST = """
import sys, unittest
sys.modules["pytest"] = None
import numpy as np, leakbound as lb
from leakbound.testing import InconclusiveError, RefutedError, assert_not_refuted
member = np.arange(300) % 3 == 0
leaky = lb.audit(member + np.arange(300) / 1e6, lb.Coins(member, prior=1 / 3))
for options, error in (
    ({"epsilon": 0.1}, RefutedError),
    ({"epsilon": 50}, InconclusiveError),
    ({"epsilon": 50, "inconclusive": "skip"}, unittest.SkipTest),
):
    try:
        assert_not_refuted(leaky, **options)
    except error as raised:
        assert str(raised)
    else:
        raise SystemExit(f"no {error.__name__}")
"""


def test_claims_are_tested_without_pytest() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_PYTEST], check=True)


def synthetic(copies: int) -> lb.SyntheticResult:
    """Audit a table with so many of 100 members nearly as they are."""
    table = np.random.default_rng(1).normal(size=(300, 4))
    made = np.concatenate([table[:copies] + 1e-3, table[200 + copies :]])
    how: dict[str, Any] = {"attacks": ["linkability", "singling_out"], "challenge": False}
    return lb.audit_synthetic(table[:100], table[100:200], made, seed=0, **how)


def test_certified_hits_are_counted_beside_a_claim_or_alone() -> None:
    leaky, quiet = synthetic(40), synthetic(0)
    assert_not_refuted(quiet, most_certified=0)
    assert_not_refuted(leaky, most_certified=40)
    with pytest.raises(RefutedError, match=r"at most 0 hits .* is refuted: singling out \d+, link"):
        assert_not_refuted(leaky, most_certified=0, inconclusive="skip")
    with pytest.raises(InconclusiveError, match="no attack on so few pairs"):
        assert_not_refuted(quiet, most_certified=99)
    with pytest.raises(RefutedError, match=r"ε = 0\.1 .* is refuted.* 40 hits .* is not refuted"):
        assert_not_refuted(leaky, epsilon=0.1, relation="replace", most_certified=40)
    with pytest.raises(RefutedError, match="of each risk are certified is refuted"):
        assert_not_refuted(leaky, epsilon=50, relation="replace", most_certified=0)
    with pytest.raises(OptionError, match="most_certified is about singling out"):
        assert_not_refuted(LEAKY, most_certified=0)
    with pytest.raises(OptionError, match="most_certified"):
        assert_not_refuted(leaky, most_certified=-1)
