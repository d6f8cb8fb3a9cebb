"""The command line answers in its own words: options and commands, never arguments of Python."""

from pathlib import Path

import numpy as np
import pytest
import typer

from command_line import BASELINE, MEMBER, SCORE, leakbound
from leakbound.cli import audits, plan, wording, zero_run
from leakbound.cli.wording import in_its_words

OPTIONS = {
    "--cuts fixed:0": "--cuts fixed:0: guesses must be at least 1, got 0",
    "--cuts fixed:1000": "--cuts fixed:1000 asks for more guesses than there are examples (300)",
    "--cuts outside-in:4,3": "--cuts outside-in:4,3: levels must",
    "--family laplace --cuts kl": "--cuts kl is not for Laplace DP: take outside-in, fixed:R or",
    "--claim eps=1,delta=1e-5 --cuts weighted": "under delta > 0 take outside-in, fixed:R, kl",
    "--claim mu=1 --prior 0.1": "prior other than 1/2 is for pure DP",
}
GENERATED = {
    "--tail hoeffding --cuts kl": "--tail hoeffding is for --cuts union: kl has no such limits",
    "--real-nonmembers --c-upper 1": "--real-nonmembers means c = 0: leave out c_upper",
    "--max-recall 0": "--max-recall must be above 0",
    "--c-upper -1": "--c-upper must be at least 0",
}


@pytest.mark.parametrize(("options", "said"), OPTIONS.items(), ids=OPTIONS)
def test_refused_options_of_one_run(options: str, said: str, scores: Path) -> None:
    refusal = leakbound("one-run", scores, *options.split()).refusal
    assert said in refusal


@pytest.mark.parametrize(("options", "said"), GENERATED.items(), ids=GENERATED)
def test_refused_options_of_panoramia(options: str, said: str, scores: Path) -> None:
    refusal = leakbound("panoramia", scores, *options.split()).refusal
    assert said in refusal


COLUMNS = {
    "text": ({"score": SCORE.astype(str)}, "scores must hold real numbers, got dtype <U32"),
    "text for membership": ({"member": np.where(MEMBER, "in", "out")}, "member must hold real"),
    "large integers": ({"score": np.arange(300) + 2**60}, "give their ranks"),
    "all members": ({"member": MEMBER | True}, "with --prior; where nothing"),
    "all members, too": ({"member": MEMBER | True}, "declare --design random_split"),
    "all, once more": ({"member": MEMBER | True}, "was randomised, use leakbound zero-run"),
}


@pytest.mark.parametrize(("columns", "said"), COLUMNS.values(), ids=COLUMNS)
def test_refused_columns(columns: dict[str, object], said: str, tmp_path: Path) -> None:
    path = tmp_path / "scores.npz"
    given: dict[str, object] = {"score": SCORE, "member": MEMBER, "baseline_score": BASELINE}
    np.savez(path, **(given | columns))  # type: ignore[arg-type]
    refusal = leakbound("one-run", path).refusal
    assert said in refusal


def test_other_refusals(scores: Path) -> None:
    assert "--truth must be above 0, got -1" in leakbound("plan", "--truth", -1).refusal
    claim = leakbound("one-run", "scores.csv", "--claim", "1").refusal
    assert (
        "'1' does not say what is 1: an ε is eps=1; give --claim eps=… or --claim eps=…,d" in claim
    )
    claim = leakbound("panoramia", "scores.csv", "--claim", "mu=1").refusal
    assert "'mu' which is not known here; give --claim eps=… or" in claim
    assert claim.endswith("or --claim c=…,eps=…\n")
    refusal = leakbound("one-run", scores, "--confidence", 95).refusal
    assert "--confidence must be above 0 and below 1, got 95" in refusal
    assert ": --prior must be above 0" in leakbound("one-run", scores, "--prior", 2).refusal
    refusal = leakbound("plan", "--truth", 3, "--claim", "eps=1,delta=2").refusal
    assert ": --delta must be" in refusal
    twice = leakbound("zero-run", scores, "--features", "age,age").refusal
    assert ": --features must name different columns" in twice
    for option, bad, words in (
        ("--target", -1, "--target must be above 0 and below inf, got -1"),
        ("--probability", 2, "--probability must be above 0 and below 1"),
        ("-m", 2, "m must be at least 8"),
    ):
        assert words in leakbound("plan", "--truth", 3, option, bad).refusal
    assert "give a file of them by --propensity" in leakbound("zero-run", scores).refusal
    answer = leakbound("zero-run", scores, "--features", "baseline_score", "--holdout", 400)
    assert "--holdout must be at least 0 and below 1, got 400" in answer.refusal


def test_what_is_called_an_option_is_one() -> None:
    groups = [typer.main.get_group(module.app) for module in (audits, plan, zero_run)]
    commands = [command for group in groups for command in group.commands.values()]
    options = {name for command in commands for one in command.params for name in one.opts}
    arguments = wording._OPTIONS.split("|")
    assert {f"--{name.replace('_', '-')}" for name in arguments} <= options


@pytest.mark.parametrize(
    "text", ["a bound of at least 0.5, where cuts were split", "scores=3 of 4 are equal"]
)
def test_plain_words_stay(text: str) -> None:
    assert in_its_words(text) == text
