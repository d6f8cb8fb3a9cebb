"""The zoo of steps on opacus: right ones are not refuted, and each fault is."""

import math
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

import dp_step_released
import dp_step_zoo
from dp_step_faults import STEP_FAULTS
from dp_step_models import NOISE, RIGHT, Case, probed
from dp_step_released import REPORTED, SIZES, divisor_of_data, seen_in
from leakbound.errors import MissingExtraError
from validity.suite import most_errors

QUICK_RIGHT = ("ghost, virtual steps", "embedding")
SEEDS = range(10)


def test_a_fault_that_it_takes_a_sweep_of_losses_to_find_is_refuted() -> None:
    audit = probed(replace(STEP_FAULTS["sum of losses stated as a mean"], sweep=True), 0)
    assert audit.check() == "refuted"
    assert audit.refuted_by


@pytest.mark.parametrize("name", QUICK_RIGHT)
def test_right_steps_attain_their_claim_and_are_not_refuted(name: str) -> None:
    audit = probed(replace(RIGHT[name], sweep=False), 0)
    assert audit.refuted_by == ()
    assert audit.warnings == ()
    assert 0.7 / NOISE < audit.bound < 1 / NOISE


def test_the_program_counts_what_is_refuted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a sweep, which these two do not need."""
    monkeypatch.setattr(
        dp_step_zoo, "probed", lambda case, seed: probed(replace(case, sweep=False), seed)
    )
    dp_step_zoo.main(["biases", "hooks", "--seeds", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "biases without noise: 1 of 1 refuted, μ ≥ inf to inf, by contribution 1; "
    )
    assert [line.split(":")[0] for line in lines[1:3]] == ["faults", "hooks"]
    assert "0 of 1 refuted, μ ≥ 0.8" in lines[2]
    assert lines[3] == "right steps: 0 of 1 refuted, claim μ = 0.9091"


@pytest.mark.validity
@pytest.mark.parametrize("name", STEP_FAULTS)
def test_every_fault_is_refuted_with_every_seed(name: str) -> None:
    assert [seed for seed in SEEDS if probed(STEP_FAULTS[name], seed).refuted_by == ()] == []


@pytest.mark.validity
def test_right_steps_are_refuted_no_more_often_than_stated() -> None:
    """At 99.9 %: of so many audits more than `most_errors` are refuted once in 10,000 suites."""
    refuted = [
        (name, seed) for name, case in RIGHT.items() for seed in SEEDS if _refuted(case, seed)
    ]
    assert len(refuted) <= most_errors(len(RIGHT) * len(SEEDS), 0.001, 1)


def _refuted(case: Case, seed: int) -> bool:
    return probed(case, seed).refuted_by != ()


def test_the_divisor_of_a_data_set_is_seen_in_the_noise_of_one_step() -> None:
    """⌊N/⌈N/8⌉⌋ is 8 of 40 examples, and 6 of 41; where it is the same, nothing is found."""
    audit = divisor_of_data()
    found = {one.name: one.scale for one in audit.pairs}
    for size in SIZES:
        ends = [n // math.ceil(n / 8) for n in (size, size + 1)]
        assert found[f"{size} and {size + 1} examples"] == pytest.approx(ends[0] / ends[1])
    assert audit.refuted_by == ("coupling",)
    assert audit.epsilon(1e-5) > 64


@pytest.mark.validity  # a process that loads PyTorch
def test_each_release_is_seen_in_a_process_of_its_own(tmp_path: Path) -> None:
    seen = REPORTED["replacing"].see()
    assert seen_in("replacing", version("dp-accounting"), tmp_path) == seen
    assert "tests attain 10.00" in seen or seen == "right"


def test_a_release_that_cannot_be_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dp_step_released, "PIP", (sys.executable, "-c", "raise SystemExit(1)"))
    with pytest.raises(MissingExtraError, match=r"opacus 0.0.1 cannot be installed"):
        seen_in("divisor", "0.0.1", tmp_path)
    # a folder without the release: the one that is installed would be taken for it
    (tmp_path / "dp-accounting-0.0.1").mkdir()
    sees = "import dp_accounting, importlib.metadata, json\n"
    sees += "print(json.dumps([importlib.metadata.version('dp-accounting'), 'right']))\n"
    (tmp_path / "sees.py").write_text(sees, encoding="utf-8")
    monkeypatch.setattr(dp_step_released, "__file__", str(tmp_path / "sees.py"))
    with pytest.raises(MissingExtraError, match=r"was imported in place of 0.0.1"):
        seen_in("replacing", "0.0.1", tmp_path)
