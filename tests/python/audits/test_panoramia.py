"""PANORAMIA: two bounds, their difference, and what may be said of it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flat
import leakbound as lb
from leakbound import errors, stats
from leakbound._base.numerics import logit
from leakbound.audits.policies.second_look import first_cuts
from scans import kl_scan, union_bound

BETA = 0.05
Ranked = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Scores of a baseline and of an attack, and membership."""


def report_of(member: np.ndarray, p: float, rng: np.random.Generator) -> np.ndarray:
    """Scores that put a member on the upper side with probability p."""
    upper = member == (rng.random(member.size) < p)
    return np.where(upper, 1, -1) * rng.random(member.size)


@pytest.fixture
def scores() -> Ranked:
    rng = np.random.default_rng(2402)
    member = rng.random(2000) < 0.5
    return report_of(member, 0.7, rng), report_of(member, 0.9, rng), member


@pytest.mark.parametrize(
    ("cuts", "bound"),
    [
        (None, lambda path: kl_scan(path, beta=BETA / 2).logit),
        (
            lb.UnionBound(grid="geometric"),
            lambda path: union_bound(path, beta=BETA / 2, grid="geometric").logit,
        ),
        (
            lb.Fixed(300),
            lambda path: logit(stats.clopper_pearson(int(path[:300].sum()), 300, beta=BETA / 2)),
        ),
    ],
)
def test_both_bounds_are_of_member_guesses_at_half_the_level(
    scores: Ranked, cuts: Any, bound: Any
) -> None:
    baseline, attack, member = scores
    result = lb.audit(attack, lb.Panoramia(member, baseline=baseline), cuts=cuts)
    expected = [bound(member[np.argsort(-one)]) for one in (baseline, attack)]
    assert [result.c_lb, result.c_plus_epsilon_lb] == pytest.approx(expected, rel=1e-12)
    assert 0.4 < result.c_lb < result.c_plus_epsilon_lb
    assert result.epsilon_tilde == result.bound == result.c_plus_epsilon_lb - result.c_lb
    assert result.baseline.path == result.attack.path == "member"


def test_an_estimate_refutes_no_epsilon_alone(scores: Ranked) -> None:
    result = flat.panoramia(*scores)
    assert result.check(epsilon=0) == "inconclusive"
    assert result.check(epsilon=0, c=0) == "refuted"
    assert result.check(epsilon=5, c=np.nextafter(result.c_lb, 0)) == "refuted"
    slack = result.c_plus_epsilon_lb - result.c_lb
    assert result.check(epsilon=0.999 * slack, c=result.c_lb) == "refuted"
    assert result.check(epsilon=1.001 * slack, c=result.c_lb) == "not refuted"
    top = result.attack.ceiling
    assert result.check(epsilon=top, c=result.c_lb) == "not refuted"  # c alone could have been
    assert result.check(epsilon=top, c=result.baseline.ceiling) == "inconclusive"


def test_real_non_members_give_a_lower_bound(scores: Ranked) -> None:
    _, attack, member = scores
    noise = np.random.default_rng(0).random(member.size)
    result = lb.audit(attack, lb.Panoramia(member, baseline=noise, real_nonmembers=True))
    assert (result.kind, result.c_lb, result.c_upper) == ("lower_bound", 0.0, 0.0)
    assert result.bound == result.lower_bound == result.epsilon_tilde == result.attack.bound
    assert result.check(epsilon=1) == "refuted"
    assert result.check(epsilon=result.bound) == "not refuted"
    assert result.check(epsilon=result.ceiling) == "inconclusive"
    assert result.ceiling == result.attack.ceiling
    assert "not a lower bound" not in result.theorem
    assert result.warnings == ()


def test_real_non_members_are_audited_as_the_random_split_that_they_are(scores: Ranked) -> None:
    """One code for both: the same pairs, path, level and bound, for every policy and for δ.

    By default a random split has a second look, and PANORAMIA the first test alone.
    """
    _, attack, member = scores
    noise = np.random.default_rng(0).random(member.size)
    for delta, cuts in ((0.0, None), (0.0, lb.UnionBound()), (1e-4, None)):
        claim = lb.ApproxDP(delta=delta) if delta else lb.PureDP()
        how: dict[str, Any] = {"claim": claim, "seed": 3}
        real = lb.Panoramia(member, baseline=noise, real_nonmembers=True)
        result = lb.audit(attack, real, cuts=cuts, **how)
        first = cuts or first_cuts(claim, "pairs", BETA)
        split = lb.audit(attack, lb.RandomSplit(member), cuts=first, **how)
        assert result.bound == split.bound > 1
        for name in ("m", "guesses", "correct", "ceiling"):
            assert getattr(result, name) == getattr(split, name), name
        assert result.attack.path == "pairs"
        assert result.options["pairs"] == split.options["pairs"]
        assert result.options["level"] == pytest.approx(0.05)
        assert split.theorem in result.theorem
    in_pairs = lb.audit(attack, lb.Panoramia(member, baseline=noise, real_nonmembers=True))
    one_sided = lb.audit(attack, lb.Panoramia(member, baseline=noise, c_upper=0.0))
    assert one_sided.bound < in_pairs.bound


def test_what_real_non_members_refuse(scores: Ranked) -> None:
    _, attack, member = scores
    for options, words in (
        ({"delta": 1e-3, "relaxation": "published"}, "is for generated non-members"),
        ({"cuts": lb.Weighted()}, "which of a pair"),
    ):
        with pytest.raises(errors.OptionError, match=words):
            flat.panoramia(np.cos(1e4 * attack), attack, member, real_nonmembers=True, **options)
    with pytest.raises(errors.DesignError, match="are members"):
        lb.audit([1, 2, 3], lb.Panoramia([1, 1, 1], baseline=[1, 2, 3], real_nonmembers=True))


def test_an_upper_limit_on_c_gives_a_lower_bound(scores: Ranked) -> None:
    result = flat.panoramia(*scores, c_upper=1.0)
    assert (result.kind, result.c_upper) == ("lower_bound", 1.0)
    assert result.bound == result.lower_bound == result.c_plus_epsilon_lb - 1
    assert result.epsilon_tilde == result.c_plus_epsilon_lb - result.c_lb > result.bound
    assert result.ceiling == result.attack.ceiling - 1
    assert result.warnings == ()
    generous = flat.panoramia(*scores, c_upper=9.0)
    assert (generous.bound, generous.lower_bound) == (0.0, 0.0)
    assert "does not exceed 9" in generous.reason


@given(seed=st.integers(0, 2**32), confidence=st.floats(0.5, 0.999))
def test_the_parts_fit_together(seed: int, confidence: float) -> None:
    rng = np.random.default_rng(seed)
    member = rng.random(80) < 0.5
    baseline, attack = report_of(member, 0.6, rng), report_of(member, 0.8, rng)
    result = lb.audit(attack, lb.Panoramia(member, baseline=baseline), confidence=confidence)
    assert result.epsilon_tilde == max(0.0, result.c_plus_epsilon_lb - result.c_lb)
    assert 0 <= result.bound <= result.ceiling
    assert bool(result.reason) == (result.bound == 0)
    assert result.attack.curve.bound.max() == result.c_plus_epsilon_lb
    assert result.baseline.curve.bound.max() == result.c_lb


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"cuts": lb.UnionBound(), "gamma": 1e-4},
        {"claim": lb.ApproxDP(delta=1e-5), "c_upper": 0.5},
        {"max_recall": 0.3, "cuts": lb.KLScan()},
    ],
    ids=repr,
)
def test_counts_of_both_rankings_are_enough(scores: Ranked, how: dict[str, Any]) -> None:
    baseline, attack, member = scores
    own = {name: how[name] for name in how if name not in {"cuts", "claim"}}
    shared: Any = {name: how[name] for name in how if name in {"cuts", "claim"}}
    listed = lb.audit(attack, lb.Panoramia(member, baseline=baseline, **own), seed=0, **shared)
    first, second = (lb.Tally.of(one, member, bits=32) for one in (baseline, attack))
    counted = lb.audit(second, lb.Panoramia(baseline=first, **own), seed=0, **shared)
    for name in ("c_lb", "c_plus_epsilon_lb", "epsilon_tilde", "bound"):
        assert getattr(counted, name) == pytest.approx(getattr(listed, name), abs=1e-12), name
    assert (counted.m, counted.kind) == (listed.m, listed.kind)
    assert set(counted.options["tally"]) == {"baseline", "scores"}
    assert lb.PanoramiaResult.from_json(counted.to_json()) == counted


def test_counts_of_pairs_are_those_of_real_non_members(scores: Ranked) -> None:
    _, attack, member = scores
    ids, noise = np.arange(member.size), np.random.default_rng(0).normal(size=member.size)
    pairing = lb.Pairing.of(lb.Tally.of(attack, member), seed=1)
    pairs, blank = (lb.PairTally.of(one, member, ids, pairing=pairing) for one in (attack, noise))
    result = lb.audit(pairs, lb.Panoramia(baseline=blank, real_nonmembers=True))
    first = first_cuts(lb.PureDP(), "pairs", BETA)
    assert result.lower_bound == lb.audit(pairs, lb.RandomSplit(), cuts=first).bound > 0
    assert (result.c_lb, result.options["pairs"]) == (0.0, pairs.pairs)
    assert "MD5 of the seed 1" in result.assumptions[-1].statement


def test_what_needs_single_examples_or_other_counts_is_refused(scores: Ranked) -> None:
    baseline, attack, member = scores
    first, second = (lb.Tally.of(one, member) for one in (baseline, attack))
    pairs = lb.PairTally.of(attack, member, np.arange(member.size))
    fewer = lb.Tally.of(baseline[1:], member[1:])
    refusals: list[tuple[Any, dict[str, Any], str]] = [
        (second, {"baseline": first, "member": member}, "leave out member"),
        (second, {"baseline": first, "features": np.ones((2000, 1))}, "leave out features"),
        (second, {"baseline": baseline}, "got ndarray and Tally"),
        (attack, {"baseline": first}, "got Tally and ndarray"),
        (second, {"baseline": first, "real_nonmembers": True}, "real non-members as PairTally"),
        (pairs, {"baseline": pairs}, "got PairTally and PairTally"),
        (second, {"baseline": fewer}, "m is 1999 in the tally of 'baseline'"),
        (attack, {"baseline": baseline}, "member is missing"),
    ]
    for given_scores, options, message in refusals:
        with pytest.raises(errors.LeakboundError, match=message):
            lb.audit(given_scores, lb.Panoramia(**options))
