"""Options in words: families, claims and cuts, and how they are refused with exit code 2."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import leakbound as lb
from command_line import MEMBER, SCORE, csv_text, leakbound
from leakbound import cli
from leakbound.claims import CLAIMS, Claim, EventFamily, TradeOffFamily, ZeroConcentratedDP
from leakbound.claims.names import CLAIM_NAMES
from leakbound.cli.commands import COMMANDS
from leakbound.cli.options import parse_family

SAMPLED = lb.SubsampledGaussianDP(sampling_rate=0.1, steps=20)
WORDS: dict[str, Claim] = {
    "pure": lb.PureDP(),
    "approx:1e-5": lb.ApproxDP(delta=1e-5),
    "gaussian": lb.GaussianDP(),
    "Gaussian:1e-4": lb.GaussianDP(delta=1e-4),
    "laplace": lb.LaplaceDP(),
    "zcdp": ZeroConcentratedDP(),
    "dp-sgd:0.1, 20": SAMPLED,
}


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """The scores of the fixture `scores`, each with a propensity of one half."""
    path = tmp_path / "given.csv"
    half = np.full(SCORE.size, 0.5)
    path.write_text(
        csv_text(score=SCORE, member=MEMBER.astype(int), propensity=half, baseline_score=half)
    )
    return path


def test_no_claim_is_without_a_word_but_that_of_a_function() -> None:
    spoken = {type(claim) for claim in WORDS.values()}
    assert spoken == set(CLAIMS) - {EventFamily, TradeOffFamily}
    assert {word.partition(":")[0].lower() for word in WORDS} == {
        word.strip().partition(":")[0] for word in CLAIM_NAMES.split(", ")
    }


@pytest.mark.parametrize("word", WORDS)
def test_one_run_audits_the_family_that_is_named(word: str, scores: Path) -> None:
    """At one number of guesses, as searches among many take seconds of some families."""
    answer = leakbound("coins", scores, "--family", word, "--cuts", "fixed:60", "--json-full")
    assert lb.AuditResult.from_json(answer.out) == lb.audit(
        SCORE, lb.Coins(MEMBER), claim=WORDS[word], cuts=lb.Fixed(60)
    )


@pytest.mark.parametrize("word", ["approx:1e-5", "Gaussian:1e-4", "laplace"])
def test_zero_run_audits_the_family_that_is_named(word: str, given: Path) -> None:
    options = ("--family", word, "--correction", "match", "--json-full")
    answer = leakbound("zero-run", given, *options)
    assert lb.ZeroRunResult.from_json(answer.out).claim == parse_family(word) == WORDS[word]


CLAIMED = {
    "zcdp rho=0.1": 1,
    "gaussian mu=0.3": 1,
    "gaussian eps=1,delta=1e-5": 1,
    "gaussian eps=40,delta=1e-5": 3,
    "laplace eps=0.5": 1,
    "approx:1e-5 eps=0.5": 1,
    "dp-sgd:0.1,20 noise=4": 1,
    "dp-sgd:0.1,20 noise=0.2": 3,
}


@pytest.mark.parametrize("words", CLAIMED)
def test_claims_in_the_numbers_of_a_family(words: str, scores: Path) -> None:
    family, claim = words.split()
    answer = leakbound("coins", scores, "--family", family, "--claim", claim)
    assert answer.code == CLAIMED[words], answer.err


REFUSED = {
    "coins --family normal": "--family must be one of pure, approx:D, gaussian",
    "coins --family approx": "--family must be one of",
    "coins --family dp-sgd:0.1,2.5": "--family dp-sgd:0.1,2.5: steps must be",
    "coins --family dp-sgd:x,20": "--family dp-sgd:x,20: sampling_rate must be",
    "coins --family dp-sgd:1.5,20": "--family dp-sgd:1.5,20: sampling_rate must be above 0",
    "coins --family approx:2": "--family approx:2: delta must be above 0 and below 1",
    "coins --claim noise=1": "laplace, zcdp, dp-sgd:Q,T",
    "coins --family dp-sgd:0.1,20 --claim noise=0": "must have the form eps=… or eps=…,delta=…",
    "coins --family dp-sgd:0.1,20 --claim noise=1,eps=1": "with numbers of at least 0",
    "coins --family dp-sgd:0.1,20 --claim mu=1": "--claim mu=… does not fit DP-SGD",
    "coins --family zcdp --claim eps=1,delta=1e-5": "rho implies no ε at any δ: state rho",
    "coins --family gaussian --claim eps=1": "such as --claim eps=E,delta=1e-05",
    "coins --family gaussian:0.1 --claim eps=1,delta=0.1": "without a δ above 0.1",
    "coins --family dp-sgd:0.1,20 --claim eps=1": "20 steps has no ε without a δ: at delta = 0",
    "coins --family pure --claim eps=1,delta=0.1": "says nothing about delta = 0.1",
    "coins --family laplace --cuts kl": "Laplace DP: use outside-in",
    "zero-run --family pure --claim mu=1": "--claim mu=… does not fit pure DP",
    "zero-run --family laplace --correction poisson_binomial": "is for pure DP, got Laplace DP",
    "panoramia --claim mu=1": "must have the form eps=… or eps=…,delta=… or c=…,eps=…",
    "coins --cuts best": "--cuts must be one of auto, second-look, outside-in, kl, union",
    "coins --attacks score,score": "must list different columns",
    "coins --prior 1.5": "prior must be",
    "coins --cuts fixed:0": "guesses",
    "coins --cuts fixed:1000": "--cuts fixed:1000 needs more guesses than there are examples",
    "coins --cuts outside-in:4,3": "--cuts outside-in:4,3: levels must",
    "coins --claim eps=nan": "with numbers of at least 0",
    "coins --claim tau=1": "'tau=1' must have the form eps=… or eps=…,delta=… or mu=… or rho=…",
    "coins --family pure --claim rho=1": "--claim rho=… does not fit pure DP",
    "coins --claim c=1,eps=1": "must have the form eps",
    "coins --claim eps=1,eps=2": "must have the form eps",
    "coins --claim delta=0": "must have the form eps",
    "coins --claim eps=1,delta=1": "delta",
    "coins --claim eps=1,delta=1e-5 --cuts weighted": "use one of fixed:R, kl, outside-in",
    "coins --claim mu=1 --prior 0.1": "prior other than 1/2 is for pure DP",
    "coins --confidence 1": "confidence must be",
    "coins --member-values in,in": "--member-values must be two different labels",
    "coins --sep , --decimal ,": "--sep , and --decimal , cannot be combined",
    "panoramia --real-nonmembers --c-upper 1": "leave out --c-upper",
    "panoramia --cuts hoeffding --gamma 0.1": "limits are exact",
}


@pytest.mark.parametrize("options", REFUSED)
def test_what_is_refused_is_said_in_words_of_the_command_line(options: str, given: Path) -> None:
    command, *rest = options.split()
    refusal = leakbound(command, given, *rest).refusal
    assert REFUSED[options] in refusal
    assert not any(name in refusal for name in dir(lb) if name.endswith("DP"))
    assert str(given) not in refusal


def test_unknown_words_exit_with_2(scores: Path) -> None:
    for arguments in (("coins", scores, "--bogus"), ("bogus",), ("coins",)):
        answer = leakbound(*arguments)
        assert answer.code == 2
        assert answer.out == ""
        assert "Traceback" not in answer.err


def test_a_report_without_matplotlib_is_refused_before_the_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    refusal = leakbound("coins", tmp_path / "missing.csv", "--out", tmp_path / "out").refusal
    assert "pip install 'leakbound[plot]'" in refusal


def test_an_assumed_truth_and_a_missing_column(scores: Path) -> None:
    assert "--truth must be above 0, got -1" in leakbound("plan", "--truth", -1).refusal
    assert "--prior must be above 0" in leakbound("coins", scores, "--prior", 1).refusal
    assert "fit it with --features" in leakbound("zero-run", scores).refusal


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("coins", "FILE", "--claim", "epsilon=2"), "did you mean --claim eps=2?"),
        (("coins", "FILE", "--claim", "ε=2,δ=1e-5"), "did you mean --claim eps=2,delta=1e-5?"),
        (("coins", "FILE", "--claim", "sigma=2"), "did you mean --claim noise=2?"),
        (("coins", "FILE", "--epsilon", "2"), "(Possible options: --claim)"),
        (("coins", "--train", "FILE"), "(Possible options: --members)"),
        (("split", "--train", "FILE"), "(Possible options: --members)"),
        (("split", "--holdout", "FILE"), "(Possible options: --nonmembers)"),
        (("synthetic", "--train", "FILE"), "(Possible options: --members)"),
        (("synthetic", "--test", "FILE"), "(Possible options: --nonmembers)"),
        (("coins", "FILE", "--output", "x"), "(Possible options: --out)"),
    ],
)
def test_other_words_for_an_option_name_it(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("score,member\n" + "1,1\n0,0\n" * 20)
    answer = leakbound(*(path if word == "FILE" else word for word in words))
    assert answer.code == 2
    assert said in " ".join(answer.err.replace("│", " ").split())


def test_of_a_claim_that_is_wrong_in_another_way_nothing_is_guessed(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("score,member\n" + "1,1\n0,0\n" * 20)
    for claim in ("eps=-2", "epsilon=-2", "privacy=2"):
        answer = leakbound("coins", path, "--claim", claim)
        assert answer.code == 2
        assert "did you mean" not in answer.err


def test_only_what_typer_documents_is_used() -> None:
    """Its modules below move without notice."""
    inner = re.compile(r"typer\.(?:core|main|models|rich_utils|_click)|from typer\.")
    files = [*Path(cli.__file__).parent.glob("*.py")]
    assert len(files) > 10
    assert [file.name for file in files if inner.search(file.read_text(encoding="utf-8"))] == []


def test_help_is_asked_for_by_either_name_of_every_command() -> None:
    for name in COMMANDS:
        short, long = leakbound(name, "-h"), leakbound(name, "--help")
        assert short.code == long.code == 0
        assert short.out == long.out != ""


def test_what_the_program_does_not_know_is_refused_in_a_line(scores: Path) -> None:
    for words in (["coinz"], ["coins", scores, "--foo"], ["--foo"], ["coins", scores, "--sides"]):
        assert "--help)" in leakbound(*words).refusal
