"""Ids on both sides are joined, or refused: rows are never read by position against their ids."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import flat
import leakbound as lb
from leakbound import errors, stats
from leakbound.planning import ChoicePlan
from leakbound.propensity import ConfidenceSet, LogisticPropensity, cross_fit, falsify
from leakbound.torch import Scores
from noisy_sums import NoisySum, noisy_sum

M = 300
RNG = np.random.default_rng(4)
MEMBER = RNG.random(M) < 0.5
SCORES = RNG.normal(size=M) + 3 * MEMBER
ORDER = RNG.permutation(M)
NAMES = np.array([f"canary {i}" for i in range(M)])
PLAIN = lb.audit(SCORES, lb.Coins(MEMBER))
OTHERS = np.array([f"other {i}" for i in range(M)])
IDS = pytest.mark.parametrize("ids", [NAMES, np.arange(M), 7 * np.arange(M) + 5])


def unnamed(result: lb.AuditResult) -> dict[str, Any]:
    """Return a result without ids of exposed members and digests, which are in a plan's order."""
    stored: dict[str, Any] = result.to_dict()
    return stored | {"exposed": stored["exposed"] | {"ids": []}, "provenance": None}


@IDS
def test_ids_of_the_call_are_those_of_the_scores(ids: Any) -> None:
    plan = lb.InclusionPlan(MEMBER, ids=ids)
    assert lb.audit(SCORES[ORDER], lb.Coins(plan), ids=ids[ORDER]).bound == PLAIN.bound > 1
    for numbered in (np.arange(M), ids[ORDER]):
        scores = Scores(SCORES[ORDER], numbered, "any")
        assert lb.audit(scores, lb.Coins(plan), ids=ids[ORDER]).bound == PLAIN.bound


@IDS
def test_an_index_is_joined_with_plans_and_other_indices(ids: Any) -> None:
    scores = pd.Series(SCORES[ORDER], index=ids[ORDER])
    for member in (lb.InclusionPlan(MEMBER, ids=ids), pd.Series(MEMBER, index=ids)):
        assert lb.audit(scores, lb.Coins(member)).bound == PLAIN.bound
    assert lb.audit(scores.to_numpy(), lb.Coins(pd.Series(MEMBER[ORDER], index=ids))) == (
        lb.audit(SCORES[ORDER], lb.Coins(MEMBER[ORDER]))
    )


def test_columns_of_a_table_belong_together_whatever_its_index_and_ids() -> None:
    table = pd.DataFrame({"score": SCORES, "member": MEMBER, "name": NAMES}).iloc[ORDER]
    twice = table.set_index(np.arange(M) % 150)
    for frame in (table, table.reset_index(drop=True), twice):
        assert lb.audit(frame["score"], lb.Coins(frame["member"])).bound == PLAIN.bound
    for ids in (table["name"], table["name"].to_numpy()):
        assert lb.audit(table["score"], lb.Coins(table["member"]), ids=ids).bound == PLAIN.bound
    turned = table["member"].sort_index()
    assert lb.audit(table["score"], lb.Coins(turned), ids=table["name"]).bound == PLAIN.bound


@pytest.mark.parametrize(
    ("scores", "member", "ids", "words"),
    [
        (SCORES, lb.InclusionPlan(MEMBER, ids=np.arange(M) + 9), np.arange(M), "(0, 1, 2, …)"),
        (SCORES, lb.InclusionPlan(MEMBER), np.arange(M) + 9, "(0, 1, 2, …)"),
        (SCORES, lb.InclusionPlan(MEMBER, ids=NAMES), np.arange(M), "text"),
        (SCORES[:200], lb.InclusionPlan(MEMBER, ids=NAMES), NAMES[:200], "score all examples"),
        (SCORES, lb.InclusionPlan(MEMBER[:200], ids=NAMES[:200]), NAMES, "100 of ids= are not"),
        (
            pd.Series(SCORES, index=np.arange(M) + 2),
            pd.Series(MEMBER, index=np.arange(M) + 1),
            None,
            ".to_numpy()",
        ),
        (pd.Series(SCORES, index=NAMES), pd.Series(MEMBER, index=ORDER), None, "text"),
        (pd.Series(SCORES, index=ORDER + 1), lb.InclusionPlan(MEMBER), None, "of member are not"),
        (
            {"a": Scores(SCORES.copy(), NAMES.copy(), "a"), "b": pd.Series(SCORES, index=OTHERS)},
            MEMBER,
            None,
            "scores of 'b'",
        ),
    ],
)
def test_other_ids_are_refused(scores: Any, member: Any, ids: Any, words: str) -> None:
    with pytest.raises(errors.InputError) as caught:
        lb.audit(scores, lb.Coins(member), ids=ids)
    assert words in str(caught.value)
    assert isinstance(caught.value, errors.InputError)


@pytest.mark.parametrize("index", [np.arange(M) + 1000, np.arange(M) + 1, NAMES, 3 * np.arange(M)])
def test_the_index_of_rows_without_ids_is_none_on_either_side(index: Any) -> None:
    for scores, member in (
        (pd.Series(SCORES), pd.Series(MEMBER, index=index)),
        (pd.Series(SCORES, index=index), pd.Series(MEMBER)),
    ):
        assert lb.audit(scores, lb.Coins(member)).bound == PLAIN.bound
        # It does not make ids of the others match one another.
        with pytest.raises(errors.InputError, match="prior"):
            lb.audit(scores, lb.Coins(member, prior=pd.Series(0.4, index=OTHERS)))


def test_an_index_of_these_numbers_is_joined_from_either_side() -> None:
    moved = {"scores": pd.Series(SCORES[ORDER], index=ORDER), "member": pd.Series(MEMBER)}
    assert lb.audit(moved["scores"], lb.Coins(moved["member"])).bound == PLAIN.bound
    turned = pd.Series(MEMBER[ORDER], index=ORDER)
    assert lb.audit(pd.Series(SCORES), lb.Coins(turned)).bound == PLAIN.bound


def test_scores_that_count_in_another_order_need_membership_with_an_index() -> None:
    """Membership without one may be in the order of the rows, or of their numbers."""
    rng = np.random.default_rng(0)
    member = rng.random(200) < 0.5
    scores = pd.Series(member + rng.normal(0, 0.1, 200))
    shuffled = scores.sample(frac=1, random_state=0)
    with pytest.raises(errors.InputError, match="in another order, and member has no index"):
        lb.audit(shuffled, lb.Coins(member), seed=1)
    joined = lb.audit(shuffled, lb.Coins(pd.Series(member)), seed=1)
    stands = lb.audit(shuffled.to_numpy(), lb.Coins(member[shuffled.index]), seed=1)
    assert joined.bound == stands.bound > 0


def test_once_membership_moved_the_index_of_rows_without_ids_tells_no_order() -> None:
    scores = pd.Series(SCORES[ORDER], index=NAMES[ORDER])
    member = pd.Series(MEMBER, index=NAMES)
    with pytest.raises(errors.InputError, match="different orders"):
        lb.audit(scores, lb.Coins(member, prior=pd.Series(np.where(MEMBER, 0.5, 0.4))))
    numbered = pd.Series(np.where(np.arange(M) < 150, 0.4, 0.6))
    joined = lb.audit(
        pd.Series(SCORES[ORDER], index=ORDER),
        lb.Coins(pd.Series(MEMBER, index=np.arange(M)), prior=numbered),
    )
    by_hand = lb.audit(SCORES[ORDER], lb.Coins(MEMBER[ORDER], prior=numbered.to_numpy()[ORDER]))
    assert joined.bound == by_hand.bound


def test_rows_that_ids_cannot_tell_apart_are_refused() -> None:
    twice = np.arange(M) // 2
    with pytest.raises(errors.InputError, match="id 0 occurs twice"):
        lb.audit(
            pd.Series(SCORES[ORDER], index=twice[ORDER]), lb.Coins(pd.Series(MEMBER, index=twice))
        )
    with pytest.raises(errors.InputError):
        lb.audit(SCORES, lb.Coins(MEMBER), ids=twice)


def test_panoramia_joins_its_four_arguments() -> None:
    rng = np.random.default_rng(6)
    baseline, features = rng.normal(size=M), rng.normal(size=(M, 2))
    plain = lb.audit(SCORES, lb.Panoramia(MEMBER, baseline=baseline, features=features))
    joined = lb.audit(
        pd.Series(SCORES, index=NAMES),
        lb.Panoramia(
            lb.InclusionPlan(MEMBER[ORDER], ids=NAMES[ORDER]),
            baseline=pd.Series(baseline, index=NAMES)[::-1],
            features=pd.DataFrame(features, index=NAMES).iloc[ORDER],
        ),
    )
    assert joined == plain
    with pytest.raises(errors.InputError, match="baseline"):
        lb.audit(
            pd.Series(SCORES, index=NAMES),
            lb.Panoramia(MEMBER, baseline=pd.Series(baseline, index=OTHERS)),
        )


def test_batches_are_joined() -> None:
    plan = lb.InclusionPlan(MEMBER, ids=NAMES)
    stream = lb.Stream().update(SCORES[ORDER], plan, ids=NAMES[ORDER])
    assert stream.bound == pytest.approx(lb.Stream().update(SCORES, MEMBER).bound)
    with pytest.raises(errors.InputError):
        lb.Stream().update(SCORES[:100], plan, ids=NAMES[:100])


@pytest.fixture(scope="module")
def game() -> NoisySum:
    return noisy_sum(M, mu=3.0, shift=0.6, features=2, holdout=M, seed=3)


@pytest.fixture(scope="module")
def named(game: NoisySum) -> Any:
    return pd.Series(game.scores, index=NAMES)


def test_propensities_in_every_form_are_joined(game: NoisySum, named: Any) -> None:
    def turned(values: Any) -> Any:
        return pd.Series(values, index=NAMES).iloc[ORDER]

    member, claim = turned(game.member), lb.PureDP()
    rng = np.random.default_rng(1)
    draws = np.clip(game.propensity * rng.uniform(0.95, 1.05, (60, 1)), 0.01, 0.99)
    low, high = 0.9 * game.propensity, np.sqrt(game.propensity)
    forms: list[tuple[Any, Any]] = [
        (game.propensity, turned(game.propensity)),
        ((low, high), (turned(low), turned(high))),
        (draws, pd.DataFrame(draws, columns=NAMES).iloc[:, ORDER]),
    ]
    for plain, joined in forms:
        expected = lb.audit(game.scores, lb.ZeroRun(game.member, plain), claim=claim)
        assert lb.audit(named, lb.ZeroRun(member, joined), claim=claim).bound == expected.bound


def test_features_of_a_fitted_model_are_joined(game: NoisySum, named: Any) -> None:
    fit = LogisticPropensity().fit(game.holdout_features, game.holdout_member)
    features = pd.DataFrame(game.features, index=NAMES)
    plain = lb.audit(game.scores, lb.ZeroRun(game.member, fit, features=game.features))
    joined = lb.audit(named, lb.ZeroRun(game.member, fit, features=features.iloc[ORDER]))
    assert joined == plain


def innocent(seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.float64]]:
    """Features that tell of membership, and scores that say no more than they do."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(M, 1))
    member = rng.random(M) < 1 / (1 + np.exp(-2 * features[:, 0]))
    return features, member, features[:, 0] + 0.1 * rng.normal(size=M)


def test_what_has_no_ids_is_refused_beside_an_order_that_moved() -> None:
    """Read in the order of the scores, known propensities would belong to other examples."""
    features, member, scores = innocent()
    moved = pd.Series(scores).iloc[ORDER]
    given = moved, pd.Series(member)
    known = 1 / (1 + np.exp(-2 * features[:, 0]))
    with pytest.raises(errors.InputError, match="propensity has no ids"):
        flat.zero_run(*given, known)
    with pytest.raises(errors.InputError, match="prior has no ids"):
        flat.coins(*given, prior=known)
    with pytest.raises(errors.InputError, match="features has no ids"):
        flat.zero_run(*given, pd.Series(known), features=features)
    joined = flat.zero_run(*given, pd.Series(known), claim=lb.PureDP())
    assert joined.bound == 0
    assert flat.coins(*given, prior=0.5).m == M


@pytest.mark.parametrize("framed", [False, True])
def test_folds_in_another_order_are_refused(framed: bool) -> None:  # noqa: FBT001
    features, member, scores = innocent()
    crossed = cross_fit(
        LogisticPropensity(), pd.DataFrame(features) if framed else features, member
    )
    options: dict[str, Any] = {"claim": lb.PureDP(), "falsify": False}
    assert flat.zero_run(scores, member, crossed, **options).bound == 0
    with pytest.raises(errors.InputError, match="cross-fitted with another membership"):
        flat.zero_run(pd.Series(scores).iloc[ORDER], pd.Series(member), crossed, **options)


@pytest.mark.parametrize("name", [lambda i: i, lambda i: NAMES[i]], ids=["numbers", "text"])
def test_scores_of_synthetic_data_are_joined_with_both_tables(name: Any) -> None:
    """Scores in the order of one table of all records, which the split took apart."""
    rng = np.random.default_rng(8)
    records = pd.DataFrame(rng.normal(size=(M, 2)), index=name(np.arange(M)), columns=["a", "b"])
    inside, outside = records[MEMBER], records[~MEMBER]

    def bound(scores: Any, members: Any, others: Any) -> float:
        return lb.audit_synthetic(
            members, others, records[:9], attacks={"own": scores}, challenge=False
        ).bound

    first = np.concatenate([SCORES[MEMBER], SCORES[~MEMBER]])
    expected = bound(first, inside, outside)
    assert expected > 1
    named = pd.Series(SCORES, index=records.index)
    assert bound(named, inside, outside) == expected
    assert bound(named.iloc[ORDER], inside, outside) == expected
    plain = [table.reset_index(drop=True) for table in (inside, outside)]
    assert bound(pd.Series(first), plain[0], plain[1]) == expected
    with pytest.raises(errors.InputError, match="the index of members and non-members"):
        bound(pd.Series(SCORES, index=OTHERS), inside, outside)


def test_a_plan_of_a_series_keeps_its_names() -> None:
    for index in (NAMES[ORDER], ORDER):
        plan = lb.InclusionPlan(pd.Series(MEMBER[ORDER], index=index))
        np.testing.assert_array_equal(plan.ids, index)
        scores = pd.Series(SCORES, index=index[np.argsort(ORDER)])
        named = lb.audit(scores, lb.Coins(plan))
        assert unnamed(named) == unnamed(lb.audit(SCORES, lb.Coins(MEMBER)))
    for index in (np.arange(M), np.zeros(M), np.arange(M) / 2):
        plan = lb.InclusionPlan(pd.Series(MEMBER, index=index))
        np.testing.assert_array_equal(plan.ids, np.arange(M))


def test_confidence_sets_join_their_arguments() -> None:
    features, member, _ = innocent()
    moved = pd.DataFrame(features).iloc[ORDER], pd.Series(member)
    there = features[ORDER], member[ORDER]
    sets = [ConfidenceSet.fit(*one) for one in (moved, there)]
    np.testing.assert_array_equal(sets[0].coefficients, sets[1].coefficients)
    sets = [ConfidenceSet.fit(*there, reference=one) for one in (moved, there)]
    np.testing.assert_array_equal(sets[0].coefficients, sets[1].coefficients)
    bounds = [
        lb.audit(
            scores,
            lb.ZeroRun(labels, LogisticPropensity(), features=table),
            claim=lb.PureDP(),
            seed=0,
        ).bound
        for scores, (table, labels) in (
            (pd.Series(SCORES).iloc[ORDER], moved),
            (SCORES[ORDER], there),
        )
    ]
    assert bounds[0] == bounds[1]
    odds = pd.Series(2 * features[:, 0])
    p_values = [falsify(one, *moved).p_value for one in (odds, odds.to_numpy()[ORDER])]
    assert p_values[0] == p_values[1]


def test_models_join_features_and_membership() -> None:
    features, member, _ = innocent()
    moved = pd.DataFrame(features).iloc[ORDER], pd.Series(member)
    there = features[ORDER], member[ORDER]
    crossed, expected = (cross_fit(LogisticPropensity(), *one) for one in (moved, there))
    for one, other in zip(crossed.fits, expected.fits, strict=True):
        np.testing.assert_array_equal(one.log_odds(features), other.log_odds(features))
    fits = [LogisticPropensity().fit(*one) for one in (moved, there)]
    np.testing.assert_array_equal(fits[0].log_odds(features), fits[1].log_odds(features))
    p_values = [falsify(2 * features[ORDER, 0], *one).p_value for one in (moved, there)]
    assert p_values[0] == p_values[1]
    assert repr(fits[0].overlap(*moved)) == repr(fits[0].overlap(*there))


def test_functions_of_examples_join_their_arguments() -> None:
    odds = np.linspace(-2, 2, M)
    uniforms = np.random.default_rng(5).random(M)
    guesses = np.where(SCORES > 2, 1, np.where(SCORES < 0, -1, 0))
    moved = pd.Series(odds).iloc[ORDER]
    there = odds[ORDER]
    np.testing.assert_array_equal(
        stats.match(pd.Series(MEMBER), moved, uniforms), stats.match(MEMBER[ORDER], there, uniforms)
    )
    assert stats.shift_delta(moved, pd.Series(MEMBER), 0.5) == stats.shift_delta(
        there, MEMBER[ORDER], 0.5
    )
    np.testing.assert_array_equal(
        stats.residual_scores(pd.Series(SCORES), moved), stats.residual_scores(SCORES, odds)
    )
    np.testing.assert_array_equal(
        stats.tamper_probability(pd.Series(guesses), moved), stats.tamper_probability(guesses, odds)
    )
    with pytest.raises(errors.InputError):
        stats.match(pd.Series(MEMBER, index=np.arange(M) + 9), moved, uniforms)


@pytest.mark.parametrize("kind", ["coins", "random_split", "choices"])
def test_the_order_of_rows_moves_nothing_that_a_committed_seed_draws(kind: str) -> None:
    k = 3 if kind == "choices" else None
    plan: Any = ChoicePlan.create(M, k=k) if k else lb.InclusionPlan.create(M)
    terms = {"claim": {"type": "ApproxDP", "delta": 1e-3}, "confidence": 0.95, "cuts": "auto"}
    words = {"sides": "auto", "attacks": ["a", "b"], "unit": "one row", "canaries": "drawn"}
    opening = plan.commit({**terms, **words, "design": kind})
    attacks = {
        name: RNG.normal(size=(M, k) if k else M).round(1)
        + (np.eye(k)[plan.drawn] if k else plan.drawn)
        for name in "ab"
    }
    result = opening.audit(attacks)
    for order in (ORDER, np.arange(M)[::-1]):
        moved = {name: values[order] for name, values in attacks.items()}
        again = opening.audit(moved, ids=plan.ids[order])
        assert again.to_dict() | {"exposed": None} == result.to_dict() | {"exposed": None}
        if result.exposed is not None and again.exposed is not None:  # rows of the scores as given
            assert again.exposed.ids == result.exposed.ids
            np.testing.assert_array_equal(order[again.exposed.rows], result.exposed.rows)


def test_ids_of_the_call_count_whatever_plain_index_stands_beside_them() -> None:
    plan, ids = lb.InclusionPlan(MEMBER), ORDER
    table = pd.DataFrame({"id": ids, "score": SCORES[ORDER], "prior": RNG.uniform(0.4, 0.6, M)})
    for scores in (table["score"], table["score"].to_numpy()):
        for named in (table["id"], ids):
            assert lb.audit(scores, lb.Coins(plan), ids=named).bound == PLAIN.bound
    split = lb.audit(table["score"], lb.RandomSplit(plan), ids=table["id"], seed=0).bound
    assert split == lb.audit(SCORES, lb.RandomSplit(plan), seed=0).bound > 1
    renamed = lb.InclusionPlan(MEMBER[ORDER], ids=ORDER)
    by_id = pd.Series(table["prior"].to_numpy(), index=ids).iloc[RNG.permutation(M)]
    told = [
        lb.audit(table["score"], lb.Coins(renamed, prior=prior), ids=table["id"], seed=0).bound
        for prior in (table["prior"], by_id)
    ]
    assert told[0] == told[1] > 1


@pytest.mark.parametrize("name", ["strata", "groups"])
def test_the_names_of_strata_and_groups_move_no_pairs(name: str) -> None:
    labels = RNG.integers(0, 30, M) if name == "strata" else np.arange(M) // 3
    member = MEMBER if name == "strata" else MEMBER[labels]
    bounds = set()
    for seed in range(4):
        renamed = np.random.default_rng(seed).permutation(M)[labels]
        labelled: dict[str, Any] = {name: renamed}
        bounds.add(lb.audit(SCORES + member, lb.RandomSplit(member, **labelled), seed=1).bound)
    assert len(bounds) == 1


# --- integers that doubles would merge ------------------------------------------------------------

LARGE: dict[str, list[int]] = {
    "64 bits": [2**60 + i for i in range(M)],
    "without a sign": [2**63 + i for i in range(M)],
    "of both signs": [2**63 + i if i % 2 else -(2**60) - i for i in range(M)],
    "above and below 2^63": [2**63 + i - M // 2 for i in range(M)],
    "70 bits": [2**70 + i for i in range(M)],
}
LARGEST = pytest.mark.parametrize("ids", LARGE.values(), ids=LARGE)


@LARGEST
def test_large_ids_are_joined_by_all_of_their_digits(ids: list[int]) -> None:
    moved = [ids[i] for i in ORDER]
    named = pd.Series(MEMBER, index=pd.Index(ids, dtype=object))
    forms: list[Any] = [moved, tuple(moved), np.array(moved, dtype=object)]
    forms += [np.array(moved, dtype=np.uint64)] if max(ids) < 2**64 and min(ids) > 0 else []
    for form in forms:
        assert lb.audit(SCORES[ORDER], lb.Coins(named), ids=form).bound == PLAIN.bound > 1
    scores = Scores(SCORES[ORDER], np.array(moved, dtype=object), "any")
    assert lb.audit(scores, lb.Coins(named)).bound == PLAIN.bound
    wrong = [*moved[:-1], moved[-1] + M]
    with pytest.raises(errors.InputError, match=str(moved[-1])):
        lb.audit(SCORES[ORDER], lb.Coins(named), ids=wrong)
    twice = [*moved[:-1], moved[0]]
    with pytest.raises(errors.InputError, match=rf"{moved[0]} at rows 0, {M - 1}"):
        lb.audit(SCORES[ORDER], lb.Coins(MEMBER[ORDER]), ids=twice)


@LARGEST
def test_a_plan_holds_large_ids_or_refuses_them(ids: list[int]) -> None:
    if min(ids) < 0 or max(ids) >= 2**64:
        with pytest.raises(errors.InputTypeError, match="64-bit integers or all strings"):
            lb.InclusionPlan(MEMBER, ids=ids)
        return
    plan = lb.InclusionPlan(MEMBER, ids=ids)
    assert plan.ids.tolist() == ids
    moved = [ids[i] for i in ORDER]
    assert lb.audit(SCORES[ORDER], lb.Coins(plan), ids=moved).bound == PLAIN.bound


def test_doubles_are_not_the_integers_that_they_stand_for() -> None:
    ids = [2**60 + 1 + 512 * i for i in range(M)]
    rounded = np.array(ids, dtype=np.float64)
    whole = pd.Series(MEMBER, index=[2**60 + 512 * i for i in range(M)])
    assert lb.audit(SCORES[ORDER], lb.Coins(whole), ids=rounded[ORDER]).bound == PLAIN.bound
    with pytest.raises(errors.InputError, match="ids do not match"):
        lb.audit(SCORES, lb.Coins(pd.Series(MEMBER, index=ids)), ids=rounded)


@LARGEST
def test_large_groups_and_strata_stay_apart(ids: list[int]) -> None:
    small = list(range(M // 2)) * 2
    person = [ids[i] for i in small]
    member = np.tile(MEMBER[: M // 2], 2)
    expected = lb.audit(SCORES, lb.RandomSplit(member, groups=small), seed=1)
    found = lb.audit(SCORES, lb.RandomSplit(member, groups=person), seed=1)
    assert found.bound == expected.bound
    halves = [ids[i % 2] for i in range(M)]
    split = lb.RandomSplit(MEMBER, strata=halves)
    assert lb.audit(SCORES, split, seed=1).options["strata"] == 2
