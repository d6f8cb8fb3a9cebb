"""Several attacks on the same examples: the best one wins, and the choice is corrected for."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import leakbound as lb
from leakbound import errors
from leakbound._base.numerics import logit
from leakbound._base.scores import Scores
from leakbound.stats import bootstrap_quantile

RNG = np.random.default_rng(8)
MEMBER = RNG.random(500) < 0.5
SHIFTS = {"": 0.5, "strong": 2.0, "noise": 0.0}
SCORES = {name: RNG.normal(size=500) + shift * MEMBER for name, shift in SHIFTS.items()}


PROPENSITY = RNG.uniform(0.3, 0.7, 500)
KNOWN = lb.ZeroRun(MEMBER, PROPENSITY)
REPLICATES = 1 / (1 + np.exp(-(logit(PROPENSITY) + 0.1 * RNG.normal(size=(199, 1)))))
CLAIMS = (lb.PureDP(), lb.ApproxDP(delta=1e-5), lb.GaussianDP())
CASES: list[tuple[Any, Any]] = [
    *((design, claim) for design in (lb.Coins(MEMBER), KNOWN) for claim in CLAIMS),
    (lb.ZeroRun(MEMBER, REPLICATES), lb.GaussianDP()),
]


@pytest.mark.parametrize(("design", "claim"), CASES)
def test_the_best_attack_wins_at_its_share(design: Any, claim: Any) -> None:
    result = lb.audit(SCORES, design, claim=claim, seed=1)
    share = 1 - 0.05 / 3
    alone = {
        name: lb.audit(values, design, claim=claim, confidence=share, seed=1)
        for name, values in SCORES.items()
    }
    bounds = {name: one.bound for name, one in alone.items()}
    assert result.options["attack"] == "strong"
    assert result.options["attacks"] == pytest.approx(bounds, abs=1e-9)
    assert result.bound == pytest.approx(bounds["strong"], abs=1e-9)
    assert (result.guesses, result.correct) == (alone["strong"].guesses, alone["strong"].correct)
    only = lb.audit(SCORES["strong"], design, claim=claim, seed=1).bound
    # A number of guesses that is planned for the level may prove a little more with less of it.
    cost = max(0.0, only - result.bound)
    assert result.options["attacks_cost"] == pytest.approx(cost, abs=1e-9)
    assert 0 < result.bound < only + 0.1
    assert result.confidence == 0.95
    assert type(result).from_json(result.to_json()) == result


def test_several_attacks_share_the_level_of_a_family() -> None:
    claim = lb.TradeOffFamily(parameter="mean", tradeoff=lb.TradeOff.gaussian, bracket=(0.02, 20.0))
    how: dict[str, Any] = {"claim": claim, "cuts": lb.Fixed(40), "seed": 1}
    for design in (lb.Coins(MEMBER), KNOWN):
        result = lb.audit(SCORES, design, **how)
        assert result.options["attack"] == "strong"
        assert result.options["attacks"]["noise"] < result.bound
        only = lb.audit(SCORES["strong"], design, **how)
        assert result.options["attacks_cost"] == pytest.approx(only.bound - result.bound, rel=1e-9)
    uncertain = lb.audit(SCORES["strong"], lb.ZeroRun(MEMBER, REPLICATES), **how)
    found = uncertain.bootstrap
    assert found is not None
    assert uncertain.bound == bootstrap_quantile(found.bounds, p=found.p) > 0


def test_rows_are_attacks() -> None:
    table = np.stack(list(SCORES.values()))
    result = lb.audit(table, lb.Coins(MEMBER))
    assert result.options["attack"] == "attack 1"
    assert result.bound == lb.audit(SCORES, lb.Coins(MEMBER)).bound
    assert lb.audit(list(table), lb.Coins(MEMBER)) == result
    assert lb.audit(table.tolist(), lb.Coins(MEMBER)) == result


def told(result: lb.AuditResult) -> tuple[Any, ...]:
    names = ("attack", "attacks", "attacks_cost", "attacks_level")
    return (result.bound, *(result.options[name] for name in names))


@pytest.mark.parametrize("cuts", [lb.KLScan(), lb.Fixed(50)], ids=repr)
def test_tallies_are_attacks(cuts: Any) -> None:
    tallies = {name: lb.Tally.of(values, MEMBER, bits=32) for name, values in SCORES.items()}
    result = lb.audit(tallies, lb.Coins(), cuts=cuts, seed=1)
    assert told(result) == told(lb.audit(SCORES, lb.Coins(MEMBER), cuts=cuts, seed=1))
    assert set(result.options["tally"]) == set(SCORES)
    assert {"tally keys of strong", "tally members of noise"} < set(result.provenance.sha256)
    other = {"a": tallies["strong"], "b": lb.Tally.of(SCORES[""], ~MEMBER)}
    with pytest.raises(errors.InputError, match=r"members is .* in the tally of 'a' and"):
        lb.audit(other, lb.Coins())
    assert lb.AuditResult.from_json(result.to_json()) == result


def test_tallies_of_pairs_are_attacks() -> None:
    """Each on its own scale, all on the same pairs."""
    tallies = {
        name: lb.PairTally.of(
            values,
            MEMBER,
            np.arange(500),
            pairing=lb.Pairing.of(lb.Tally.of(values, MEMBER), seed=3),
        )
        for name, values in SCORES.items()
    }
    result = lb.audit(tallies, lb.RandomSplit(), seed=1)
    share = 1 - 0.05 / 3
    alone = lb.audit(tallies["strong"], lb.RandomSplit(), confidence=share, seed=1)
    assert result.bound == pytest.approx(alone.bound, abs=1e-9)
    assert result.options["attack"] == "strong"


def test_one_attack_by_name_costs_nothing() -> None:
    result = lb.audit({"strong": SCORES["strong"]}, lb.Coins(MEMBER))
    assert result.bound == lb.audit(SCORES["strong"], lb.Coins(MEMBER)).bound
    assert (result.options["attack"], result.options["attacks_cost"]) == ("strong", 0.0)


def test_attacks_of_a_plan_are_joined_by_their_ids() -> None:
    plan = lb.InclusionPlan.create(200, seed=1)
    rng = np.random.default_rng(10)
    order = rng.permutation(200)
    values = plan.member + rng.normal(size=200) / 3
    shuffled = {
        name: Scores(values[order] * scale, plan.ids[order], name)
        for name, scale in (("a", 1.0), ("b", 0.5))
    }
    result = lb.audit(shuffled, lb.Coins(plan))
    assert result.bound == lb.audit({"a": values, "b": values / 2}, lb.Coins(plan)).bound
    mixed = {"a": shuffled["a"], "b": Scores(values, plan.ids, "b")}
    assert lb.audit(mixed, lb.Coins(plan)).bound == result.bound


@pytest.mark.parametrize(
    ("scores", "error", "words"),
    [
        ({}, errors.InputError, "at least one attack"),
        ({"a": [1.0, 2.0], "b": [1.0]}, errors.InputError, "scores of 'b'"),
        ({"a": [1.0, np.nan]}, errors.InputError, "scores of 'a'"),
        ([[1.0, 2.0], [3.0, 3.0]], errors.AbstentionError, "equal"),
        (np.ones((2, 2, 2)), errors.InputError, "one-dimensional"),
    ],
)
def test_bad_scores_are_refused(
    scores: Any | Mapping[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        lb.audit(scores, lb.Coins([0, 1]))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames_are_attacks_by_the_names_of_their_columns(library: str) -> None:
    module = pytest.importorskip(library)
    frame = module.table(SCORES) if library == "pyarrow" else module.DataFrame(SCORES)
    expected = lb.audit(SCORES, lb.Coins(MEMBER))
    assert lb.audit(frame, lb.Coins(MEMBER)).to_dict() == expected.to_dict()


def test_names_of_columns_differ() -> None:
    pandas = pytest.importorskip("pandas")
    member = np.arange(20) % 2 == 0
    for names in (["a", "a"], [0, 1]):
        with pytest.raises(lb.errors.InputError, match="must have different names"):
            lb.audit(pandas.DataFrame(np.zeros((20, 2)), columns=names), lb.Coins(member))


def test_a_column_is_one_attack() -> None:
    column = lb.audit(SCORES["strong"][:, None], lb.Coins(MEMBER[:, None]))
    assert column == lb.audit(SCORES["strong"], lb.Coins(MEMBER))
