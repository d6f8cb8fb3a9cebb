"""Records of Zero-Run: what an audit of fair coins is part of says nothing of coins, or of more."""

import numpy as np
import pytest

import leakbound as lb
from leakbound.errors import OptionError

M = 400


def game() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores that leak, membership, and a feature that says nothing of it."""
    rng = np.random.default_rng(3)
    member = rng.random(M) < 0.5
    return rng.normal(size=M) + 3 * member, member, rng.normal(size=(M, 1))


def test_a_curve_of_composition_is_not_above_the_bound() -> None:
    """Of fair coins 0.2 more was proved at each threshold: features may leak that much."""
    scores, member, _ = game()
    design = lb.ZeroRun(member, np.full(M, 1 / (1 + np.exp(-0.2))), correction="composition")
    found = lb.audit(scores, design, claim=lb.PureDP(), seed=0)
    fair = lb.audit(scores, lb.Coins(member), claim=lb.PureDP(), sides="both", seed=0)
    assert found.bound == pytest.approx(fair.bound - 0.2)
    assert np.nanmax(found.curve.bound) == pytest.approx(found.bound)


def test_what_matching_keeps_is_not_called_coins() -> None:
    scores, member, _ = game()
    found = lb.audit(scores, lb.ZeroRun(member, np.full(M, 0.5)), seed=0)
    assert found.correction == "match"
    assert {"design", "prior"} & found.options.keys() == set()


def test_recall_of_guesses_about_members_is_a_share_of_members() -> None:
    scores, member, _ = game()
    design = lb.ZeroRun(member, np.full(M, 0.5))
    cuts = lb.Fixed(M)
    found = lb.audit(scores, design, claim=lb.PureDP(), cuts=cuts, sides="member", seed=0)
    assert found.curve.recall[-1] == 1


def test_a_claim_about_replacing_is_refused_over_a_set_too() -> None:
    """Examples joined training or not, whatever is known of their log-odds."""
    scores, member, features = game()
    claim = lb.SubsampledGaussianDP(sampling_rate=0.1, steps=10, relation="replace")
    designs = (lb.ZeroRun(member, features=features), lb.ZeroRun(member, np.full(M, 0.5)))
    for design in designs:
        with pytest.raises(OptionError, match="RandomSplit"):
            lb.audit(scores, design, claim=claim, seed=0)
