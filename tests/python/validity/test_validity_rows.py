"""Games of the validity suite are what they say, and its rows catch what they are there for."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound.errors import DesignError, InputError
from leakbound.results import Assumption
from leakbound.results.base import implied_by
from validity import suite
from validity.asymmetric import SHARE, share_family
from validity.attackers import Informed
from validity.designs import Missed
from validity.implied import CLOSED, implied_cases
from validity.shifted import ShiftedGame
from validity.trials import ZeroRun


def test_scores_of_the_posterior_are_log_odds_of_membership() -> None:
    """No attacker knows more: of those with score s a share of 1 / (1 + e^-s) are members."""
    for kind in ("nothing", "response", "gaussian"):
        for spread, odds in ((1.0, "normal"), (3.0, "two")):
            knows = Informed(m=40_000, knows="posterior", kind=kind, spread=spread, odds=odds)  # type: ignore[arg-type]
            game = knows(seed=3)
            for low in (-3.0, -1.0, 0.0, 1.0, 3.0):
                near = np.abs(game.scores - low) < 0.75
                expected = (1 / (1 + np.exp(-game.scores[near]))).mean() if near.any() else 0.0
                found = game.member[near].mean() if near.any() else 0.0
                assert found == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(1 + near.sum()))


@dataclass(frozen=True)
class Understated:
    """A game that leaks more than it says."""

    play: Callable[..., ShiftedGame]

    def __call__(self, *, seed: int) -> ShiftedGame:
        return replace(self.play(seed=seed), truth=0.05)


@pytest.mark.parametrize(
    ("correction", "claim", "kind"),
    [
        ("match", lb.GaussianDP(), "gaussian"),
        ("poisson_binomial", lb.PureDP(), "response"),
        ("tamper", lb.GaussianDP(), "gaussian"),
    ],
)
def test_knowing_attackers_are_caught_where_the_truth_is_understated(
    correction: str, claim: Any, kind: Any
) -> None:
    play = Understated(Informed(m=800, knows="posterior", kind=kind))
    options = {"correction": correction, "cuts": lb.Fixed(150), "adversary": "raw"}
    assert sum(map(ZeroRun(play, claim, options), range(40))) >= 15  # of 40 at 10 %: p = 3e-6


def result(status: Any) -> lb.AuditResult:
    rng = np.random.default_rng(0)
    found = lb.audit(rng.normal(size=50), lb.Coins(rng.random(50) < 0.5), seed=0)
    return replace(found, assumptions=(Assumption("coins", "They were fair.", status),))


def test_a_wrong_design_is_caught_by_its_error_or_by_a_status() -> None:
    def refuse(_: int) -> lb.AuditResult:
        raise InputError

    assert not Missed(refuse, "InputError")(0)
    with pytest.raises(InputError):
        Missed(refuse, "DesignError")(0)
    assert Missed(lambda _: result("declared"))(0)
    assert not Missed(lambda _: result("refuted"))(0)


def test_coins_that_an_audit_refuses_are_no_false_claim() -> None:
    def play(seed: int) -> bool:
        if seed % 2:
            raise DesignError("coins that come once in a million games")
        return True

    played = suite.Case(audit="a", claim="b", cuts="c", sides="d", truth="e", error=0.1, trial=play)
    assert suite.run([played], repetitions=10).rates[0].errors == 5


def test_what_the_best_attack_attains_is_what_the_curve_at_the_boundary_implies() -> None:
    """Closed forms against curves, which are worked out in another place and rounded down."""
    curves = {
        "response": lb.TradeOff.approx(1.0),
        "gaussian": lb.TradeOff.gaussian(1.0),
        "laplace": lb.TradeOff.laplace(1.0),
        "members-told": share_family("members", 0.01).tradeoff(SHARE),
        "non-members-told": share_family("non-members", 0.01).tradeoff(SHARE),
    }
    assert curves.keys() == CLOSED.keys()
    for name, curve in curves.items():
        for quantity, truth in vars(CLOSED[name]).items():
            found = getattr(implied_by(curve), quantity)
            assert found <= truth
            assert found == pytest.approx(truth, rel=1e-8)


IMPLIED = {case.name: case for case in implied_cases() if case.valid}


@pytest.mark.parametrize("name", [name for name in IMPLIED if "told" not in name])
def test_what_is_implied_is_caught_where_the_truth_is_understated(name: str) -> None:
    """Every number by itself, against what ε = 0.03 allows."""
    trial: Any = IMPLIED[name].trial
    understated = replace(trial, truth=implied_by(lb.TradeOff.approx(0.03)))
    assert sum(map(understated, range(20))) >= 9  # of 20 at 10 %: p = 6e-5
