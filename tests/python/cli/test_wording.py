"""The command line answers in its own words: options and commands, never arguments of Python."""

from pathlib import Path

import pytest
import typer

from command_line import leakbound
from leakbound.cli import audits, plan, wording, zero_run

OPTIONS = {
    "--cuts fixed:1000": "--cuts fixed:1000 asks for more guesses than there are examples (300)",
    "--cuts outside-in:4,3": "--cuts outside-in:4,3: levels must",
    "--claim eps=1,delta=1e-5 --cuts weighted": "under delta > 0 take outside-in, fixed:R, kl",
    "--claim mu=1 --prior 0.1": "prior other than 1/2 is for pure DP",
}


@pytest.mark.parametrize(("options", "said"), OPTIONS.items(), ids=OPTIONS)
def test_refused_options_of_one_run(options: str, said: str, scores: Path) -> None:
    refusal = leakbound("one-run", scores, *options.split()).refusal
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
    both = ("--real-nonmembers", "--c-upper", "1")
    assert "leave out --c-upper" in leakbound("panoramia", scores, *both).refusal
    tail = ("--tail", "hoeffding", "--cuts", "kl")
    refusal = leakbound("panoramia", scores, *tail).refusal
    assert "--tail hoeffding is for --cuts union: kl has no such limits" in refusal
    assert "give a file of them by --propensity" in leakbound("zero-run", scores).refusal
    answer = leakbound("zero-run", scores, "--features", "baseline_score", "--holdout", 400)
    assert "--holdout must be at least 0 and below 1, got 400" in answer.refusal


def test_what_is_called_an_option_is_one() -> None:
    groups = [typer.main.get_group(module.app) for module in (audits, plan, zero_run)]
    commands = [command for group in groups for command in group.commands.values()]
    options = {name for command in commands for one in command.params for name in one.opts}
    arguments = wording._OPTIONS.split("|")
    assert {f"--{name.replace('_', '-')}" for name in arguments} <= options
