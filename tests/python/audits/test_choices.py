"""Audits of which of k candidates was trained on."""

import json
import math
from itertools import product
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import pytest
from scipy import stats as scipy_stats

import leakbound as lb
from command_line import leakbound
from leakbound import errors
from leakbound.audits.choices import game_of
from leakbound.planning import load_opening
from leakbound.planning.inclusion import Plan
from leakbound.results.descriptions.next_steps import _examples_needed
from validity.choices import ChoiceTrial

K = 4
PLAN = lb.planning.ChoicePlan.create(200, K, seed=5)
SCORES = np.random.default_rng(0).normal(size=(200, K)) + 3 * np.eye(K)[PLAN.chosen]
CLAIMS: list[Any] = [lb.PureDP(), lb.ApproxDP(delta=1e-4), lb.GaussianDP(), lb.LaplaceDP()]
PROTOCOL: dict[str, Any] = {
    "claim": {"type": "GaussianDP"},
    "confidence": 0.95,
    "cuts": "auto",
    "sides": "auto",
    "attacks": ["loss"],
    "unit": "one sentence",
    "canaries": "sentences with one of four numbers",
    "design": "choices",
}


def audited(scores: Any = SCORES, chosen: Any = PLAN, k: int = 0, **more: Any) -> Any:
    return lb.audit(scores, lb.Choices(chosen, k), **{"seed": 1, **more})


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
@pytest.mark.parametrize("correct", [100, 70, 45])
def test_two_candidates_and_one_number_of_guesses_are_coins(claim: Any, correct: int) -> None:
    """The same guesses, right and wrong, about the same 100 secrets."""
    rng = np.random.default_rng(correct)
    named = rng.permutation(100) < 50
    first = named == (rng.permutation(100) < correct)
    guess = np.where(named, 1, -1) * (1 + rng.random(100))
    cuts = {"claim": claim, "cuts": lb.Fixed(100), "seed": 1}
    coins = lb.audit(guess, lb.Coins(lb.InclusionPlan(first, seed=0)), **cuts)
    choices = lb.audit(
        np.stack([np.zeros(100), guess], 1), lb.Choices(first.astype(int), 2), **cuts
    )
    assert (choices.guesses, choices.correct) == (coins.guesses, coins.correct) == (100, correct)
    assert choices.bound == coins.bound
    assert choices.ceiling == coins.ceiling


@pytest.mark.parametrize("k", [2, 3, 5, 1000])
def test_pure_bounds_are_closed_forms(k: int) -> None:
    chosen = np.arange(20) % k if k < 10 else np.random.default_rng(0).integers(k, size=20)
    named = np.zeros((20, k))
    named[np.arange(20), chosen] = 1 + np.arange(20)
    for cuts, level in (
        (lb.Fixed(20), 0.05),
        (lb.KLScan(kappa=math.log(20)), 0.05),
        (None, 0.0475),
    ):
        p = level ** (1 / 20)
        expected = math.log((k - 1) * p / (1 - p))
        assert audited(named, chosen, k, cuts=cuts).bound == pytest.approx(expected)
    assert audited(named, chosen, k, cuts=lb.Fixed(20)).curve.bound.size == 20


@pytest.mark.parametrize(("m", "k"), [(3, 3), (4, 2), (3, 4)])
@pytest.mark.parametrize("cuts", [None, lb.OutsideIn([2, 3]), lb.UnionBound(), lb.KLScan()])
def test_errors_are_exact_by_enumeration(m: int, k: int, cuts: Any) -> None:
    """All outcomes of the most that pure DP allows: each guess right with e^ε / (e^ε + k - 1)."""
    epsilon, level = 1.2, 0.4
    p, chance = math.exp(epsilon) / (math.exp(epsilon) + k - 1), 0.0
    chosen = np.arange(m) % k
    for right in product((False, True), repeat=m):
        scores = np.eye(k)[np.where(right, chosen, (chosen + 1) % k)] * (1 + np.arange(m))[:, None]
        found = audited(scores, chosen, k, cuts=cuts, confidence=1 - level)
        chance += (found.bound > epsilon) * p ** sum(right) * (1 - p) ** (m - sum(right))
    assert chance <= level + 1e-12


@pytest.mark.parametrize("claim", CLAIMS[1:], ids=lambda claim: claim.name)
def test_more_candidates_prove_more_of_the_same_right_guesses(claim: Any) -> None:
    bounds = []
    for k in (2, 3, 10, 100):
        chosen = np.random.default_rng(k).integers(k, size=150)
        scores = np.eye(k)[chosen] + 1e-3 * np.arange(150)[:, None] * np.eye(k)[chosen]
        bounds.append(audited(scores, chosen, k, claim=claim, cuts=lb.Fixed(150)).bound)
    assert bounds == sorted(bounds)
    assert bounds[-1] > bounds[0] + 0.5


def test_ties_are_broken_by_the_seed_and_never_towards_the_truth() -> None:
    scores = np.random.default_rng(1).integers(0, 2, size=(2000, 10)).astype(float)
    one, other = (np.random.default_rng(s).integers(10, size=2000) for s in (2, 3))
    games = [game_of(scores, chosen, 7) for chosen in (one, other)]
    assert (games[0].scores == games[1].scores).all()
    # A guess that is right of both is one and the same candidate.
    both = np.flatnonzero(games[0].member & games[1].member)
    assert (one[both] == other[both]).all()
    for game in games:
        assert scipy_stats.binomtest(int(game.member.sum()), 2000, 0.1).pvalue > 1e-3
    # Broken towards the truth, noise would pass for leakage.
    trial = ChoiceTrial(m=100, k=10, mechanism="noise", claim=lb.PureDP(), honest=False)
    assert sum(trial(seed) for seed in range(40)) > 30


def test_infinities_are_scores_and_equal_ones_are_tied() -> None:
    scores = np.where(np.eye(K)[PLAN.chosen] > 0, np.inf, 0.0)
    assert audited(scores).correct == 200
    scores[:100] = -np.inf
    scores[100:120] = np.inf
    game = game_of(scores, PLAN.chosen, 0)
    assert (game.scores[:120] == 0).all()
    assert (game.scores[120:] == np.inf).all()
    assert 0.1 < game.member[:120].mean() < 0.4


def test_attacks_share_the_level_and_ids_join() -> None:
    mixed = np.random.default_rng(4).permutation(200)
    alone, together = audited(), audited({"good": SCORES, "none": SCORES[::-1]})
    assert 0 < together.bound < alone.bound
    assert together.options["attack"] == "good"
    assert audited(SCORES[mixed], ids=PLAN.ids[mixed]).bound == alone.bound
    assert audited(SCORES, PLAN.chosen, K).bound == alone.bound


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"k": 1, "chosen": PLAN.chosen}, errors.OptionError, "k must be at least 2"),
        ({"k": 5}, errors.OptionError, "the plan drew one of 4"),
        ({"chosen": PLAN.chosen}, errors.OptionError, "k is missing"),
        ({"chosen": lb.InclusionPlan.create(200)}, errors.OptionError, "k is missing"),
        ({"chosen": PLAN.chosen + 1, "k": K}, errors.InputError, r"in \[0, 3\], got 4 at index"),
        ({"chosen": PLAN.chosen - 1, "k": K}, errors.InputError, "got -1 at index"),
        ({"chosen": PLAN.chosen + 0.5, "k": K}, errors.InputError, "a whole number"),
        ({"chosen": PLAN.chosen[1:], "k": K}, errors.InputError, "chosen has 199 values"),
        ({"chosen": np.zeros(200, int), "k": K}, errors.DesignError, "candidate 0 chosen"),
        ({"scores": SCORES[:, 1:]}, errors.InputError, r"k = 4 candidates .* got shape \(200, 3\)"),
        ({"scores": SCORES[:, 0]}, errors.InputError, r"got shape \(200,\)"),
        ({"scores": SCORES[None]}, errors.InputError, "several attacks go by name"),
        ({"scores": {}}, errors.InputError, "at least one attack"),
        ({"scores": {"a": SCORES, "b": SCORES[1:]}}, errors.InputError, "scores of 'b' has 199"),
        ({"scores": np.where(SCORES > 4, np.nan, SCORES)}, errors.InputError, "got nan at index"),
        ({"scores": np.ones((200, K))}, errors.AbstentionError, "all 800 scores are equal"),
        (
            {"scores": lb.Tally.of(SCORES[:, 0], PLAN.chosen == 0)},
            errors.InputTypeError,
            "a Tally is not for this audit",
        ),
        ({"sides": "member"}, errors.OptionError, "not apply to Choices"),
        ({"cuts": lb.Weighted()}, errors.OptionError, "which of 4"),
        ({"cuts": lb.Fixed(201)}, errors.OptionError, "more guesses than there are secrets"),
        ({"ids": np.zeros(200, int)}, errors.InputError, "ids"),
        (
            {"cuts": lb.KLScan(), "claim": lb.ApproxDP(delta=1e-5)},
            errors.OptionError,
            "use one of Fixed, OutsideIn, UnionBound",
        ),
    ],
)
def test_bad_input_is_named(change: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        audited(**change)


def test_the_result_keeps_the_protocol(tmp_path: Path) -> None:
    result = audited(claim=lb.GaussianDP())
    assert lb.AuditResult.from_json(result.to_json()) == result
    assert result.relation == "replace"
    assert "which of 4 candidates was in the training data" in str(result)
    assert result.check(parameter=0.1, relation="replace") == "refuted"
    with pytest.raises(errors.OptionError, match="say what the claim is about"):
        result.check(parameter=0.1)
    result.report(tmp_path / "page.html")
    assert "replace one candidate" in (tmp_path / "page.html").read_text(encoding="utf-8")
    result.bundle(tmp_path / "bundle", scores=SCORES, plan=PLAN)
    with pytest.raises(errors.FormatError, match="gives another result"):
        result.bundle(tmp_path / "other", scores=SCORES[::-1], plan=PLAN)


def test_a_plan_is_drawn_saved_committed_to_and_audited(tmp_path: Path) -> None:
    assert (lb.planning.ChoicePlan.create(300, K, seed=5).chosen[:200] == PLAN.chosen).all()
    items = np.arange(200 * K).reshape(200, K)
    assert (PLAN.included(items) == items[np.arange(200), PLAN.chosen]).all()
    numbers: list[list[int]] = items.tolist()
    assert assert_type(PLAN.included(numbers), list[int]) == PLAN.included(items).tolist()
    PLAN.save(tmp_path / "plan.npz")
    assert (
        Plan.load(tmp_path / "plan.npz")
        == lb.planning.ChoicePlan.load(tmp_path / "plan.npz")
        == PLAN
    )
    with pytest.raises(errors.FormatError, match="it is a ChoicePlan"):
        lb.InclusionPlan.load(tmp_path / "plan.npz")
    for bad in (items[:, 1:], items // 2, (items // 2).astype(str).tolist()):
        with pytest.raises(errors.InputError, match="k = 4 different candidates each"):
            PLAN.included(bad)
    with pytest.raises(errors.OptionError, match="k must be at least 2"):
        lb.planning.ChoicePlan.create(10, 1)
    opening = PLAN.commit(PROTOCOL)
    opening.save(tmp_path / "secret")
    again = load_opening(tmp_path / "secret")
    opening.commitment.check(again)
    result = again.audit({"loss": SCORES})
    result.bundle(tmp_path / "bundle", scores={"loss": SCORES}, plan=again)
    assert lb.evidence.verify_bundle(tmp_path / "bundle", commitment=opening.commitment).valid
    for wrong, why in (
        ({"design": "coins"}, "k= does not"),
        ({"prior": 0.2}, "prior= does not"),
    ):
        with pytest.raises(errors.OptionError, match=why):
            PLAN.commit(PROTOCOL | wrong)


def test_the_command_line_reads_candidates_and_plans(tmp_path: Path) -> None:
    names = [f"{name}_{j}" for name in ("score", "other") for j in range(K)]
    rows = np.column_stack([SCORES, SCORES[::-1], PLAN.chosen])
    file = tmp_path / "scores.csv"
    np.savetxt(file, rows, delimiter=",", header=",".join([*names, "chosen"]), comments="")
    PLAN.save(tmp_path / "plan.npz")
    expected = audited().bound
    for more in ((), ("--plan", tmp_path / "plan.npz")):
        answer = leakbound("choices", file, "--seed", 1, "--json-full", *more)
        assert (answer.code, json.loads(answer.out)["bound"]) == (0, expected)
    answer = leakbound("choices", file, "--attacks", "score,other", "--seed", 1, "--json-full")
    assert json.loads(answer.out)["options"]["attack"] == "score"
    answer = leakbound("choices", file, "--claim", "eps=1", "--relation", "replace")
    assert answer.code == 1
    assert "for replacing one candidate" in answer.out
    assert "add --relation replace if" in leakbound("choices", file, "--claim", "eps=1").refusal
    bad = tmp_path / "bad.csv"
    bad.write_text("score_0,score_1,chosen\n1,nan,0\n2,1,1\n", encoding="utf-8")
    assert "bad.csv: scores must be a number" in leakbound("choices", bad).refusal
    assert "no column 'wrong_0'" in leakbound("choices", file, "--score-col", "wrong").refusal
    protocol = tmp_path / "protocol.json"
    protocol.write_text(json.dumps(PROTOCOL), encoding="utf-8")
    place = ("--out", tmp_path / "public", "--secret", tmp_path / "secret")
    assert leakbound("commit", protocol, "--plan", tmp_path / "plan.npz", *place).code == 0
    with file.open("w", encoding="utf-8") as out:
        header = ",".join(f"loss_{j}" for j in range(K))
        np.savetxt(out, SCORES, delimiter=",", header=header, comments="")
    bundle = ("--opening", tmp_path / "secret", "--bundle", tmp_path / "bundle")
    claim = ("--score-col", "loss", "--family", "gaussian")
    assert leakbound("choices", file, *claim, *bundle).code == 0
    assert lb.evidence.verify_bundle(tmp_path / "bundle").valid


def test_results_count_secrets_and_say_how_many_are_examples_needed() -> None:
    few = audited(SCORES[:5], PLAN.chosen[:5], K)
    metrics = {one.name: one for one in few.summary().metrics}
    assert (metrics["Secrets"].value, metrics["Secrets"].note) == ("5", "4 candidates each")
    enough = _examples_needed(few, 3.0)
    assert few.m == 20 < enough
    assert 3.0 <= audited(np.eye(K)[[0] * enough], np.arange(enough) % K, K).ceiling < 3.3
