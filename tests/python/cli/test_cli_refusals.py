"""The command line refuses bad input in one line, with exit code 2."""

import sys
from pathlib import Path

import pytest

from command_line import leakbound, spawn


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--cuts", "best"), "--cuts must be one of auto, kl, union"),
        (("--attacks", "score,score"), "must name different columns"),
        (("--prior", "1.5"), "prior must be"),
        (("--cuts", "fixed:0"), "guesses"),
        (("--claim", "eps=nan"), "in numbers of at least 0"),
        (("--claim", "rho=1"), "'rho=1' must be eps=… or eps=…,delta=… or mu=… or noise=…"),
        (("--claim", "c=1,eps=1"), "must be eps"),
        (("--claim", "eps=1,eps=2"), "must be eps"),
        (("--claim", "delta=0"), "must be eps"),
        (("--claim", "eps=1,delta=1"), "delta"),
        (("--claim", "eps=1,delta=1e-5", "--cuts", "weighted"), "delta > 0"),
        (("--confidence", "1"), "confidence must be"),
    ],
)
def test_bad_options_are_refused(options: tuple[str, ...], words: str, scores: Path) -> None:
    refusal = leakbound("coins", scores, *options).refusal
    assert words in refusal
    assert str(scores) not in refusal


def test_unknown_words_exit_with_2(scores: Path) -> None:
    for arguments in (("coins", scores, "--bogus"), ("bogus",), ("coins",)):
        answer = spawn(*arguments)
        assert answer.code == 2
        assert answer.out == ""
        assert "Traceback" not in answer.err


def test_a_report_without_matplotlib_is_refused_before_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refusal = leakbound("coins", tmp_path / "missing.csv", "--out", tmp_path / "out").refusal
    assert "pip install 'leakbound[plot]'" in refusal


# --- in words of the command line, never of Python ----------------------------------------------

OPTIONS = {
    "--cuts fixed:1000": "--cuts fixed:1000 asks for more guesses than there are examples (300)",
    "--cuts outside-in:4,3": "--cuts outside-in:4,3: levels must",
    "--claim eps=1,delta=1e-5 --cuts weighted": "under delta > 0 take outside-in, fixed:R, kl",
    "--claim mu=1 --prior 0.1": "prior other than 1/2 is for pure DP",
}


@pytest.mark.parametrize(("options", "said"), OPTIONS.items(), ids=OPTIONS)
def test_refused_options_of_one_run(options: str, said: str, scores: Path) -> None:
    refusal = leakbound("coins", scores, *options.split()).refusal
    assert said in refusal


def test_other_refusals(scores: Path) -> None:
    assert "--truth must be above 0, got -1" in leakbound("plan", "--truth", -1).refusal
    claim = leakbound("panoramia", "scores.csv", "--claim", "mu=1").refusal
    assert claim.endswith("or c=…,eps=… or c=…,eps=…,delta=…, in numbers of at least 0\n")
    both = ("--real-nonmembers", "--c-upper", "1")
    assert "leave out --c-upper" in leakbound("panoramia", scores, *both).refusal
    tail = ("--tail", "hoeffding", "--cuts", "kl")
    refusal = leakbound("panoramia", scores, *tail).refusal
    assert "--tail hoeffding is for --cuts union: kl has no such limits" in refusal
    assert "give a file of them by --propensity" in leakbound("zero-run", scores).refusal
    answer = leakbound("zero-run", scores, "--features", "baseline_score", "--holdout", 400)
    assert "--holdout must be at least 0 and below 1, got 400" in answer.refusal
