"""Premises that were broken before an audit are refused, or warned of."""

from collections.abc import Callable

import numpy as np
import pytest

import leakbound as lb
from leakbound.audits.premises import repetition_of
from leakbound.errors import DesignError, LeakboundError
from leakbound.results import AuditResult
from leakbound.results.base import Result

RNG = np.random.default_rng(0)
UNITS = RNG.random(100) < 0.5


@pytest.mark.parametrize("times", [2, 3, 20])
def test_rows_of_one_unit_are_refused_with_the_word(times: int) -> None:
    tiled, each = np.tile(UNITS, times), np.repeat(UNITS, times)
    scores = np.arange(tiled.size) * 1.0
    for member, word in ((tiled, "tiled"), (each, "repeated")):
        for design in (
            lb.Coins(member),
            lb.RandomSplit(member),
            lb.Coins(lb.InclusionPlan(member)),
        ):
            with pytest.raises(DesignError, match=f"that of 100, {word} {times} times"):
                lb.audit(scores, design)
    # whole groups are what the split moved
    scores = RNG.normal(size=tiled.size)
    groups = np.tile(np.arange(100), times)
    assert lb.audit(scores, lb.RandomSplit(tiled, groups=groups), seed=0).bound == 0
    chosen = np.repeat(RNG.integers(4, size=60), times)
    with pytest.raises(DesignError, match=f"that of 60, repeated {times} times"):
        lb.audit(RNG.normal(size=(60 * times, 4)), lb.Choices(chosen, k=4))


LAYOUTS = {
    "alternating": np.arange(400) % 2 == 0,
    "thirds": np.arange(400) % 4 == 0,
    "members first": np.arange(400) < 200,
    "ten equal classes": np.tile(np.arange(50) < 40, 10),
    "a short pattern": np.tile([1, 1, 0, 1, 0, 0, 1, 0], 50),
    "all members": np.ones(400, dtype=bool),
    "few": np.tile(UNITS[:8], 2),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_in_an_order_of_their_own_are_no_copies(layout: str) -> None:
    assert repetition_of(LAYOUTS[layout]) is None


def test_fair_coins_and_permutations_are_never_refused() -> None:
    for size in (32, 60, 64, 240):
        for _ in range(2_000):
            assert repetition_of(RNG.random(size) < 0.5) is None
            assert repetition_of(RNG.permutation(size) < size // 2) is None


@pytest.mark.parametrize("value", [-9999.0, -np.inf, 0.0])
@pytest.mark.parametrize("design", ["coins", "split"])
def test_scores_of_members_only_are_warned_of(design: str, value: float) -> None:
    member = RNG.permutation(300) < 150
    scores = np.where(member, RNG.normal(-2, 0.1, 300), value)
    kind = lb.RandomSplit(member) if design == "split" else lb.Coins(lb.InclusionPlan(member))
    result = lb.audit(scores, kind, seed=0)
    assert isinstance(result, AuditResult)
    told = [text for text in result.warnings if "if it was filled in" in text]
    assert len(told) == 1
    assert told[0].startswith(f"all 150 non-members have the score {value:g}, and no member")
    said = str(result.summary())
    assert "near the most that" not in said
    assert "would have reached only" not in said
    assert "Check how the scores were made" in said
    other = lb.audit(-scores, lb.RandomSplit(~member) if design == "split" else lb.Coins(~member))
    assert any("all 150 members have the score" in text for text in other.warnings)


MEMBER = np.random.default_rng(1).permutation(300) < 150
FILLED = np.where(MEMBER, np.random.default_rng(2).normal(-2, 0.1, 300), -9999.0)


def _of_candidates() -> Result:
    rng = np.random.default_rng(0)
    chosen, scores = rng.integers(5, size=100), np.full((100, 5), -9999.0)
    scores[np.arange(100), chosen] = rng.normal(size=100)
    return lb.audit(scores, lb.Choices(chosen, k=5), seed=0)


AUDITS: dict[str, Callable[[], Result]] = {
    "several files": lambda: lb.audit(lb.Tally.of(FILLED, MEMBER), lb.Coins(), seed=0),
    "pairs": lambda: lb.audit(
        lb.PairTally.of(FILLED, MEMBER, np.arange(300)), lb.RandomSplit(), seed=0
    ),
    "candidates": _of_candidates,
    "zero-run": lambda: lb.audit(
        FILLED, lb.ZeroRun(MEMBER, features=np.random.default_rng(0).normal(size=(300, 1))), seed=0
    ),
    "panoramia": lambda: lb.audit(
        FILLED, lb.Panoramia(MEMBER, baseline=np.random.default_rng(0).normal(size=300)), seed=0
    ),
}


@pytest.mark.parametrize("name", AUDITS)
def test_every_audit_of_scores_warns_of_one_score_for_all_of_a_part(name: str) -> None:
    result = AUDITS[name]()
    told = [text for text in result.warnings if "if it was filled in" in text]
    assert result.bound > 0
    assert len(told) == 1
    assert "all 400 other candidates" in told[0] or "all 150 non-members have the score" in told[0]
    assert not any("near the most that" in text for text in result.warnings)
    steps = " ".join(result.summary().next_steps)
    assert not any(word in steps for word in ("To prove more", "To see more", "overfitting"))


@pytest.mark.parametrize("name", ["lowest", "median"])
def test_a_gap_filled_with_a_value_of_the_others_is_warned_of(name: str) -> None:
    scores = np.random.default_rng(3).normal(size=300)
    inside = np.sort(scores[MEMBER])
    scores[~MEMBER] = inside[0 if name == "lowest" else 75]
    result = lb.audit(scores, lb.Coins(MEMBER), seed=0)
    (told,) = (text for text in result.warnings if "if it was filled in" in text)
    assert "and only one member has it" in told
    scores[MEMBER] = np.where(scores[MEMBER] < inside[3], inside[0], scores[MEMBER])
    scores[~MEMBER] = inside[0]
    again = lb.audit(scores, lb.Coins(MEMBER), seed=0)
    assert not any("if it was filled in" in text for text in again.warnings)
    counted = lb.audit(lb.Tally.of(scores, MEMBER), lb.Coins(), seed=0)
    assert not any("if it was filled in" in text for text in counted.warnings)


def test_of_several_attacks_only_the_best_is_warned_of() -> None:
    member = RNG.random(300) < 0.5
    noise, filled = RNG.normal(size=300), np.where(member, RNG.normal(size=300), -99)
    found = lb.audit({"noise": noise, "filled": filled}, lb.Coins(member), seed=0)
    assert any("if it was filled in" in text for text in found.warnings)
    leak = lb.audit({"guess": 1.0 * member, "noise": noise}, lb.Coins(member), seed=0)
    assert not any("if it was filled in" in text for text in leak.warnings)


def test_a_turned_sign_needs_a_new_draw() -> None:
    member = RNG.random(300) < 0.5
    result = lb.audit(RNG.normal(size=300) - 2 * member, lb.Coins(member), seed=0)
    (told,) = (text for text in result.warnings if "inverted" in text)
    assert told.endswith("a flipped sign needs a new draw of members")
    steps = " ".join(result.summary().next_steps)
    assert "a flipped sign needs a new draw of members" in steps
    assert "both signs" not in steps


def test_a_refuted_claim_says_whose_epsilon_it_is() -> None:
    member = RNG.random(300) < 0.5
    scores = RNG.normal(size=300) + 3 * member
    for design, relation in ((lb.Coins(member), None), (lb.RandomSplit(member), "replace")):
        result: AuditResult = lb.audit(scores, design, seed=0)
        said = result.with_check(epsilon=0.5, relation=relation).summary()
        assert any("of the whole training: all rounds" in text for text in said.next_steps)
        assert not any("whole training" in text for text in result.summary().next_steps)


def test_a_split_assumes_that_neither_part_was_changed_alone() -> None:
    result = lb.audit(RNG.normal(size=40), lb.RandomSplit(np.arange(40) < 20), seed=0)
    said = {one.name: one.statement for one in result.assumptions}["random split"]
    assert said.endswith("Nothing was removed, added or changed in one part only after the split.")
    with pytest.raises(LeakboundError):
        lb.audit(np.zeros(40), lb.RandomSplit(np.arange(40) < 20))
