"""What a result says about thresholds is what its cut policy tested: one, some, all or none."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound import _core, cuts
from leakbound._base.types import PathOrder, Sides
from leakbound.cuts.policy import Best
from oracle_calls import CLAIMS, coins, panoramia, prior, scored, split, stream, zero_run

ROOT = Path(__file__).parents[3]
EVERY = "Every threshold was tested; the confidence accounts for all of them."
ONE = "One threshold was tested, and it was fixed in advance."
CHOSEN = (
    "The number of guesses{1} chosen with {0} that are not guessed about. "
    "This test tries no other number."
)
ROLES = " and the share of “member” guesses were"
EACH = "each at an equal share of the error probability."
GRID = f"A geometric grid of thresholds, fixed in advance, was tested, {EACH}"
SEQUENCES = (
    "The bound is not from these guesses alone: 12 sequences of guesses were tested together. The "
    "confidence accounts for all of them, whenever you stop."
)
RANKS = (
    "The bound is not from these guesses alone: the whole ranking of {} trials was tested, all "
    "ranks at once."
)
LOOK = "guesses at ranks chosen with a pilot sample"
SECOND = " A second test, of {}, uses {} % of the error probability."
LOOK_TOO = SECOND.format(LOOK, 5)
LOOK_AND_SCAN = (
    f" Two other tests use parts of the error probability: of {LOOK} (5 %) and of every threshold "
    "(5 %)."
)
ALONE = " was"
PILOT = (
    "The number of guesses{} chosen with a quarter of the examples, which are not guessed about. "
    "This test tries no other number."
)
OF_PAIRS = CHOSEN.format("pairs", ALONE)
RANKED = ", the ranks of the guesses and the share of “member” guesses were"
TWO = "Two numbers of guesses, fixed in advance, were tested; the confidence allows for both."


def trials(claim: str) -> Any:
    """Audit the scores of coins as if each was from a separate run."""
    scores, member = scored("leaks")
    return lb.audit(scores, lb.Trials(member), claim=CLAIMS[claim], seed=0)


def choices(claim: str) -> Any:
    """Audit secrets with ten candidates each."""
    rng = np.random.default_rng(0)
    chosen = rng.integers(10, size=200)
    scores = rng.normal(size=(200, 10)) + 3 * np.eye(10)[chosen]
    return lb.audit(scores, lb.Choices(chosen, k=10), claim=CLAIMS[claim], seed=0)


def noisy(claim: str) -> Any:
    """Audit coins whose outermost scores are noise."""
    game = lb.simulate.gaussian(2000, mu=1.5, seed=0)
    outer = np.random.default_rng(0).random(2000) < 0.06
    scores = np.where(outer, np.where(np.arange(2000) % 2 == 0, 99.0, -99.0), game.scores)
    return lb.audit(scores, lb.Coins(game.member), claim=CLAIMS[claim], seed=0)


def many() -> Any:
    """Audit more coins than a scan has thresholds for."""
    game = lb.simulate.gaussian(24_000, mu=1.0, seed=0)
    return lb.audit(game.scores, lb.Coins(game.member), cuts=lb.KLScan(), seed=0)


SAID: dict[str, tuple[Callable[[], Any], str]] = {
    "coins": (
        lambda: coins("leaks", sides="auto"),
        CHOSEN.format("examples", ROLES) + LOOK_AND_SCAN,
    ),
    "coins, noisy": (
        lambda: noisy("pure"),
        PILOT.format(RANKED)
        + LOOK_AND_SCAN.replace(f"{LOOK} (5 %)", "a number of the most confident guesses (90 %)"),
    ),
    "coins, noisy, family": (
        lambda: noisy("gaussian"),
        PILOT.format(RANKED) + SECOND.format("a number of the most confident guesses", 95),
    ),
    "coins, both": (lambda: coins("leaks"), EVERY + LOOK_TOO),
    "coins, scan": (
        lambda: coins("leaks", cuts="kl-options"),
        EVERY.replace("was", "from 20 guesses on was"),
    ),
    "coins, many": (
        many,
        EVERY.replace("was", "up to 20,000 guesses, and beyond that a fixed grid of them, was"),
    ),
    "coins, ladder": (lambda: coins("leaks", cuts="outside-in"), CHOSEN.format("examples", ALONE)),
    "coins, values": (
        lambda: coins("two-values", cuts="outside-in", sides="auto"),
        CHOSEN.format("examples", ROLES),
    ),
    "coins, fixed": (lambda: coins("leaks", cuts="fixed"), ONE),
    "coins, union": (lambda: coins("leaks", cuts="union"), f"Every threshold was tested, {EACH}"),
    "coins, grid": (lambda: coins("leaks", cuts="union-geometric"), GRID),
    "coins, named": (
        lambda: coins("leaks", cuts="union-grid"),
        f"3 thresholds, fixed in advance, were tested, {EACH}",
    ),
    "coins, weighted": (
        lambda: coins("guesses", cuts="weighted", sides="member"),
        "No threshold was tested: guesses about all examples count, each by its score.",
    ),
    "coins, δ": (lambda: coins("leaks", "approx"), CHOSEN.format("examples", ALONE) + LOOK_TOO),
    "coins, δ, scan": (
        lambda: coins("leaks", "approx", "kl"),
        EVERY.replace("was", "from 100 guesses on was"),
    ),
    "coins, δ, fixed": (lambda: coins("leaks", "approx", "fixed"), ONE),
    "coins, δ, grid": (lambda: coins("leaks", "approx-small", "union-geometric"), GRID),
    "coins, family": (
        lambda: coins("leaks", "gaussian"),
        CHOSEN.format("examples", ALONE) + LOOK_TOO,
    ),
    "coins, family, fixed": (lambda: coins("leaks", "gaussian", "fixed"), ONE),
    "coins, family, grid": (lambda: coins("leaks", "gaussian", "union-geometric"), GRID),
    "prior": (lambda: prior("own", "default", "both"), EVERY),
    "prior, fixed": (lambda: prior("own", "fixed", "both"), ONE),
    "split": (lambda: split("uneven"), EVERY + LOOK_TOO),
    "split, δ": (lambda: split("uneven", "approx"), OF_PAIRS + LOOK_TOO),
    "split, family": (
        lambda: split("uneven", "gaussian"),
        OF_PAIRS + LOOK_TOO,
    ),
    "choices": (lambda: choices("pure"), EVERY + LOOK_TOO),
    "choices, δ": (lambda: choices("approx"), CHOSEN.format("secrets", ALONE) + LOOK_TOO),
    "trials, pure": (
        lambda: trials("pure"),
        CHOSEN.format("examples", ROLES) + LOOK_AND_SCAN,
    ),
    "trials, δ": (lambda: trials("approx"), CHOSEN.format("examples", ROLES) + LOOK_TOO),
    "trials, small δ": (
        lambda: trials("approx-small"),
        CHOSEN.format("examples", ROLES) + LOOK_TOO,
    ),
    "trials, family": (lambda: trials("gaussian"), RANKS.format(400)),
    "stream": (lambda: stream("both"), SEQUENCES),
    "stream of trials": (lambda: stream("both", claim=lb.GaussianDP()), SEQUENCES),
    "Zero-Run, odds": (lambda: zero_run("pure"), EVERY + LOOK_TOO),
    "Zero-Run, match": (lambda: zero_run("gaussian"), CHOSEN.format("examples", ALONE) + LOOK_TOO),
    "Zero-Run, tamper": (lambda: zero_run("gaussian", "tamper"), ONE),
    "Zero-Run, set": (
        lambda: zero_run("pure", given="labels", features=True),
        TWO + LOOK_TOO,
    ),
    "Zero-Run, set, match": (
        lambda: zero_run("gaussian", given="labels", features=True),
        ONE + LOOK_TOO,
    ),
    "Zero-Run, set, ladder": (
        lambda: zero_run("gaussian", given="reference", features=True),
        CHOSEN.format("examples", ALONE) + LOOK_TOO,
    ),
    "PANORAMIA": (lambda: panoramia(leak=3.0, real_nonmembers=True).attack, EVERY),
    "PANORAMIA, recall": (
        lambda: panoramia(leak=3.0, real_nonmembers=True, max_recall=0.5).attack,
        EVERY.replace("was", "up to 50 % of the pairs was"),
    ),
}
"""An audit for each policy and each design, and what it tested."""
ALL_GUESSED = {"coins, values", "coins, weighted"}
"""Guesses that are not those of highest confidence."""
PILOT_GUESSED = {"coins, noisy", "coins, noisy, family"}
"""Guesses whose ranks a pilot sample chose."""


@pytest.mark.parametrize("name", SAID)
def test_the_sentence_is_of_what_was_tested(name: str) -> None:
    make, sentence = SAID[name]
    found = make()
    assert found.searched == sentence
    guessed = "guesses" if name in ALL_GUESSED else "most confident guesses"
    if name in PILOT_GUESSED:
        guessed = "guesses at ranks chosen with a pilot sample"
    assert found.guessed == guessed
    if not isinstance(found, lb.AuditResult):
        return
    said = found.summary()
    assert found.refutes
    assert sentence in said.meaning.says
    assert sentence in " ".join(said.paragraphs)
    everything = str(said) + " ".join(said.meaning.says)
    for claimed in ("trying every threshold", "choice of the threshold"):
        assert claimed not in everything
    assert ("very threshold" in everything) == ("very threshold" in sentence)


def test_guesses_about_all_examples_are_not_the_most_confident() -> None:
    scores, member = np.arange(60.0), np.arange(60) >= 30
    found = lb.audit(scores, lb.Coins(member), cuts=lb.Fixed(60), sides="both", seed=0)
    assert (
        "All of the attack's 60 guesses about membership were right. "
        in found.summary().paragraphs[0]
    )


def test_a_sentence_is_stored_and_an_older_file_says_nothing_instead() -> None:
    found = coins("leaks")
    again = lb.AuditResult.from_json(found.to_json())
    assert str(again) == str(found)
    stored = found.to_dict()
    del stored["searched"], stored["guessed"]
    older = lb.AuditResult.from_dict(stored)
    assert EVERY in str(found)
    assert "threshold" not in str(older)
    right = f"{found.correct} of the attack's {found.guesses} guesses about membership were right."
    assert f"{right} If ε is " in str(older)


class First(cuts.PathPolicy):
    """A policy from outside: the first guess."""

    method = "The first guess."

    def searched(
        self, examples: int, _sides: Sides, /, *, units: str = "examples", recall: float = 1.0
    ) -> str:
        return f"One guess of {examples} {units} was tested, with {recall:g} of them in reach."

    def bound(self, _path: _core.Path, _order: PathOrder, _level: float, /) -> Best:
        return Best(1.0, 1, 1)


def test_a_policy_from_outside_has_a_sentence_of_its_own() -> None:
    scores, member = np.arange(40.0), np.arange(40) >= 20
    game = cuts.ScoreGame(scores=scores, member=member, sides="both", seed=0)
    assert First().audit(game, 0.05).searched.startswith("One guess of 40 examples")
    assert "searched" in cuts.Policy.__abstractmethods__


@pytest.mark.parametrize("page", ["README.md", "docs/what-is-an-audit.md", "docs/comparison.md"])
def test_pages_do_not_say_that_every_audit_searches_all_thresholds(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    for wrong in ("corrects for that search exactly", "corrects the bound for that search"):
        assert wrong not in text
    assert "| exact, over all thresholds |" not in text


@pytest.mark.parametrize("k", [2, 4, 10])
def test_odds_of_a_guess_are_those_that_the_printed_bound_allows(k: int) -> None:
    rng = np.random.default_rng(0)
    chosen = rng.integers(k, size=200)
    scores = rng.normal(size=(200, k)) + 3 * np.eye(k)[chosen]
    found = lb.audit(scores, lb.Choices(chosen, k=k), seed=0)
    text = found.summary().paragraphs[0]
    said = re.search(
        r"If ε is ([\d.]+), each guess is right with odds of at most ([\d.]+) to 1", text
    )
    assert said is not None
    odds = math.exp(float(said[1])) / (k - 1)
    assert odds - 0.01 <= float(said[2]) <= odds


def test_odds_are_not_named_where_guesses_have_different_ones() -> None:
    for found in (prior("own", "default", "both"), prior("one", "fixed", "both")):
        assert found.refutes
        assert "odds" not in " ".join(found.summary().paragraphs)


def test_trials_are_about_their_inputs_and_their_own_chance() -> None:
    scores, member = np.random.default_rng(0).normal(size=400), np.arange(400) % 2 == 0
    for fixed in (False, True):
        design = lb.Trials(member, fixed=fixed)
        found = lb.audit(scores + 3 * member, design, claim=lb.GaussianDP(), seed=0)
        said = found.summary()
        assert "worst case over the audited trials" not in " ".join(said.meaning.does_not_say)
        assert any(one.startswith("It is about the inputs") for one in said.meaning.does_not_say)
        noted = {one.name: one.note for one in said.metrics}["Confidence"]
        assert noted == ("over the runs" if fixed else "over the coins of membership")
        numbers = "independent runs, their numbers fixed in advance"
        assert said.design == (numbers if fixed else "independent run for each coin")


def test_nothing_was_tossed_for_zero_run() -> None:
    noted = {one.name: one.note for one in zero_run("pure").summary().metrics}["Confidence"]
    assert noted == "over who became a member, given the features"


def test_a_curve_of_a_stream_is_of_batches() -> None:
    captions = {one.name: one.caption for one in stream("both").summary().figures}
    assert captions["bound"].startswith("The bound after each batch")
    assert "dot marks the guesses of the bound" not in str(captions)


def test_the_best_of_several_attacks_is_said_to_be_that() -> None:
    best = "This is the best of 2 attacks, each tested at an equal share of the error probability."
    assert best in str(coins("two-attacks"))
    assert best in str(zero_run("pure", attacks=True))
    assert "attacks, each" not in str(coins("leaks"))
