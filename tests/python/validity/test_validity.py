"""The suite itself: it counts what it says, whoever plays, and catches what is wrong."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from leakbound.errors import OptionError
from validity import suite
from validity.catalogue import cases
from validity.games import LaplaceNoise
from validity.shifted import Shifted

RESPONSES = cases("one-run pure default response")


def coin(name: str, chance: float, *, valid: bool = True) -> suite.Case:
    """A case that errs by chance, at a stated 10 %."""
    words = dict.fromkeys(("claim", "cuts", "sides", "truth"), "none")
    trial = partial(errs, chance)
    return suite.Case(audit=name, **words, error=0.1, trial=trial, valid=valid)  # type: ignore[arg-type]


def errs(chance: float, seed: int) -> bool:
    return bool(np.random.default_rng(seed).random() < chance)


def test_counts_verdicts_and_expectations() -> None:
    invalid = [coin("caught", 0.3, valid=False), coin("missed", 0.05, valid=False)]
    report = suite.run([coin("good", 0.1), coin("bad", 0.3), *invalid], repetitions=1000, seed=1)
    assert [rate.verdict for rate in report.rates] == ["holds", "fails", "fails", "holds"]
    assert [rate.expected for rate in report.rates] == [True, False, True, False]
    assert not report.ok
    for rate in report.rates:
        assert rate.repetitions == 1000
        assert rate.rate == rate.errors / 1000
        assert rate.p_value == pytest.approx(scipy_stats.binom.sf(rate.errors - 1, 1000, 0.1))
    assert report.rates[1].errors == pytest.approx(300, abs=60)


@pytest.mark.parametrize("repetitions", [1, 37, 2000])
@pytest.mark.parametrize("error", [0.02, 0.1])
@pytest.mark.parametrize("tests", [1, 200])
def test_the_most_errors_are_those_of_the_exact_test(
    repetitions: int, error: float, tests: int
) -> None:
    most = suite.most_errors(repetitions, error, tests)
    level = 1e-3 / tests
    assert scipy_stats.binom.sf(most - 1, repetitions, error) >= level
    assert most == repetitions or scipy_stats.binom.sf(most, repetitions, error) < level


def test_counts_depend_neither_on_who_plays_nor_on_what_else_is_played(tmp_path: Path) -> None:
    """Of 260 games, as a task has 250."""
    one, three = tmp_path / "one", tmp_path / "three"
    play = partial(suite.run, repetitions=260, seed=3)
    alone = play(RESPONSES, checkpoint=one)
    with ThreadPoolExecutor(3) as executor:
        assert play(RESPONSES, checkpoint=three, executor=executor) == alone
    kept = [{file.name: file.read_bytes() for file in folder.iterdir()} for folder in (one, three)]
    assert kept[0] == kept[1]
    assert play(RESPONSES[1:]).rates[0].errors == alone.rates[1].errors
    assert suite.run(RESPONSES, repetitions=260, seed=4) != alone


def test_laplace_noise_is_as_leaky_as_it_states() -> None:
    game = LaplaceNoise(m=20_000)(seed=0)
    members, others = game.scores[game.member], game.scores[~game.member]
    ratio = np.mean(members > 1) / np.mean(others > 1)
    assert np.log(ratio) == pytest.approx(game.epsilon(0.0), abs=0.1)
    epsilon = game.epsilon(0.1)
    best = (1 + epsilon) / 2  # where the likelihood ratio is e^ε
    delta = np.mean(members > best) - np.exp(epsilon) * np.mean(others > best)
    assert delta == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize("kind", ["nothing", "response", "gaussian"])
def test_shifted_games_are_what_they_say(kind: Any) -> None:
    game = Shifted(m=20_000, kind=kind, shift=1.5, holdout=500)(seed=1)
    assert game.features.shape == (20_000, 3)
    assert game.holdout_features.shape == (500, 3)
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        near = (game.propensity > low) & (game.propensity < low + 0.2)
        expected = game.propensity[near].mean()
        assert game.member[near].mean() == pytest.approx(expected, abs=0.03)
    assert game.truth == {"nothing": 0.0, "response": 1.0, "gaussian": 1.0}[kind]
    told = game.scores - np.log(game.propensity / (1 - game.propensity))
    gap = told[game.member].mean() - told[~game.member].mean()
    # reports are right with log-odds 1, and scores are twice their size of 1/2 on average
    means = {"nothing": 0.0, "response": 2 * (2 / (1 + np.exp(-1)) - 1), "gaussian": 1.0}
    assert gap == pytest.approx(means[kind], abs=0.06)


def test_a_case_for_long_runs_only_is_left_out_of_quick_ones() -> None:
    listed = cases("zero-run pure DP tamper learnt-nothing-1")
    assert [(case.quick, case.long > 100) for case in listed] == [(0, True)]
    with pytest.raises(OptionError, match="no case to run"):
        suite.run(listed)
    assert suite.run(listed, repetitions=2).rates[0].repetitions == 2
    both = [*listed, *cases("trap ties-by-label")]
    assert len(suite.run(both).rates) == 1
