"""Learnt log-odds in `ZeroRun`: innocent games, options, what is exploratory."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats
from sklearn.tree import DecisionTreeClassifier

import flat
import leakbound as lb
from leakbound.errors import InputError, OptionError
from leakbound.propensity import (
    LogisticPropensity,
    PropensityFit,
    SklearnPropensity,
    cross_fit,
    products_missing,
)
from validity.nuisance import CAUCHIT, People, Setting, gaussian, knowing, people, response

BOTH: list[Any] = [lb.PureDP(), lb.GaussianDP()]
PLAIN = LogisticPropensity(calibration=None)
QUICK = (Setting(0, 200, 1, 1.5), Setting(150, 600, 50, 1.5))


def fitted(game: People) -> PropensityFit | LogisticPropensity:
    """A model of D', or one to be learnt from the audited labels where there is none."""
    try:
        return PLAIN.fit(*game.reference)
    except (InputError, lb.errors.InputError):
        return PLAIN


def audited(game: People, scores: Any, **options: Any) -> Any:
    given: dict[str, Any] = {"falsify": False, "features": game.features}
    return flat.zero_run(scores, game.member, fitted(game), **given | options)


def allowed(games: int, chance: float = 1e-3) -> int:
    """The most false claims that an error of 5 % explains, but with this probability."""
    return int(scipy_stats.binom.isf(chance, games, 0.05))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sides": "member"},
        {"correction": "tamper"},
        {"correction": "composition"},
        {"cuts": lb.Fixed(50)},
    ],
    ids=str,
)
def test_no_option_makes_a_false_claim(options: dict[str, Any]) -> None:
    claims = (lb.PureDP(), lb.ApproxDP(delta=1e-4), lb.GaussianDP())
    found, games = 0, 2
    for seed in range(games):
        rng = np.random.default_rng(seed)
        game = people(Setting(60, 500, 6, 1.5), rng)
        attacks = {what: knowing(game, rng, what) for what in ("odds", "noisy", "bent")}
        how = {"confidence": 1 - 0.05 / 3, "seed": seed} | options
        results = [audited(game, attacks, claim=claim, **how) for claim in claims]
        assert [one.options["attacks_level"] for one in results] == pytest.approx([0.04 / 9] * 3)
        found += any(one.bound > 0 for one in results)
    assert found <= allowed(games)


def test_one_set_serves_all_attacks() -> None:
    rng = np.random.default_rng(2)
    game = people(Setting(200, 600, 4, 1.0), rng)
    scores = response(game, 2.0, rng)
    together = audited(game, {"told": scores, "noise": rng.normal(size=600)}, claim=lb.PureDP())
    alone = audited(game, scores, claim=lb.PureDP())
    assert together.options["set_level"] == pytest.approx(0.01)
    assert together.options["attacks_level"] == pytest.approx(0.04 / 2)
    assert together.options["attack"] == "told"
    assert np.array_equal(together.learnt.estimate, alone.learnt.estimate)
    assert 0 < together.bound < alone.bound
    assert together.confidence == alone.confidence == 0.95


def test_a_missing_product_withholds_the_bound() -> None:
    rng = np.random.default_rng(3)
    features = rng.normal(size=(3000, 4))
    odds = features[:, 0] + 0.8 * features[:, 1] * features[:, 2]
    member = rng.random(3000) < 1 / (1 + np.exp(-odds))
    for model, rows in (
        (PLAIN, slice(None)),
        (PLAIN.fit(features[:500], member[:500]), slice(500, None)),
    ):
        given: Any = odds[rows], member[rows], model
        result = flat.zero_run(*given, features=features[rows])
        assert (result.bound, result.withheld, result.refuted) == (0.0, True, True)
        assert result.learnt is not None
        assert result.learnt.tests[0].worst == (1, 2)
        assert result.assumptions[0].status == "contradicted"
        assert (
            flat.zero_run(*given, features=features[rows], release_refuted=True).assumptions
            == result.assumptions
        )


def shared(seed: int, share: float) -> tuple[People, PropensityFit]:
    """A game whose D' was thinned so that this is the share of members."""
    game = people(Setting(3000, 1500, 3, 1.0), np.random.default_rng(seed))
    table, labels = game.reference
    odds = share / (1 - share)
    kept = labels | (np.random.default_rng(seed + 1).random(3000) < 1 / odds)
    return game, PLAIN.fit(table[kept], labels[kept])


def test_another_share_of_members_is_declared_or_unknown_or_refuted() -> None:
    game, fit = shared(4, 0.8)
    scores = response(game, 1.5, np.random.default_rng(5))
    options: dict[str, Any] = {"claim": lb.PureDP(), "features": game.features}
    silent = flat.zero_run(scores, game.member, fit, **options)
    assert silent.withheld
    assert silent.learnt is not None
    assert silent.learnt.tests[0].worst == ()
    for declared in (fit.with_member_share(0.5), fit.with_member_share(None)):
        result = flat.zero_run(scores, game.member, declared, **options)
        assert not result.withheld
        assert 0.8 < result.bound <= 1.5
    unknown = fit.with_member_share(None)
    assert "up to a constant" in repr(unknown)
    with pytest.raises(OptionError, match="unknown"):
        flat.zero_run(scores, game.member, unknown, uncertainty="bootstrap", **options)
    with pytest.raises(OptionError, match="max_log_odds"):
        flat.zero_run(scores, game.member, unknown, max_log_odds=1.0, **options)


def test_a_counted_share_is_no_known_part_of_log_odds() -> None:
    """The share of D' is counted from labels that the set rests on: D' has its own intercept.

    Declared by design, it is known, and the bound may use it.
    """
    game, fit = shared(4, 0.8)
    scores = response(game, 1.5, np.random.default_rng(5))
    options: dict[str, Any] = {"claim": lb.PureDP(), "features": game.features, "falsify": False}

    def audit(model: PropensityFit, **more: Any) -> Any:
        return flat.zero_run(scores, game.member, model, **options | more)

    counted, designed = fit.with_member_share(0.5), fit.with_member_share(0.5, of_reference=0.8)
    assert (counted.share_of_reference, designed.share_of_reference) == ("counted", "declared")
    apart, together = audit(counted).learnt, audit(designed).learnt
    assert apart.estimate.size == together.estimate.size + 1
    unknown = audit(fit.with_member_share(None)).learnt
    np.testing.assert_allclose(apart.estimate[1:-1], unknown.estimate[1:-1], atol=1e-6)
    assert audit(designed, max_log_odds=1.0).abstained > 0
    with pytest.raises(OptionError, match="of_reference"):
        audit(counted, max_log_odds=1.0)
    with pytest.raises(OptionError, match="needs the share of the audit set"):
        fit.with_member_share(None, of_reference=0.5)


def test_rows_of_the_reference_are_refused_by_their_pandas_index_too() -> None:
    rng = np.random.default_rng(6)
    game = people(Setting(0, 600, 2, 1.0), rng)
    table: Any = pd.DataFrame(game.features, index=rng.permutation(10_000)[:600])
    scores = pd.Series(gaussian(game, 2.0, rng), index=table.index)
    member = pd.Series(game.member, index=table.index)
    fit = PLAIN.fit(table[:300], member[:300])
    for rows, uncertainty in ((slice(200, 600), "set"), (slice(299, 600), "none")):
        options: dict[str, Any] = {"features": table[rows], "uncertainty": uncertainty}
        with pytest.raises(InputError, match="also in D'"):
            flat.zero_run(scores[rows], member[rows], fit, falsify=False, **options)
    others: dict[str, Any] = {"features": table[300:], "falsify": False}
    assert flat.zero_run(scores[300:], member[300:], fit, **others).learnt is not None
    counted = PLAIN.fit(table[:300].reset_index(drop=True), game.member[:300])
    assert counted.rows.ids is None
    twice: Any = table.set_axis(np.arange(600) % 300)  # as of two tables put together
    mixed = rng.permutation(600)
    learn, rest = twice.iloc[mixed[:300]], twice.iloc[mixed[300:]]
    fit = PLAIN.fit(learn, game.member[mixed[:300]])
    others = {"features": rest, "falsify": False}
    names = (scores.to_numpy()[mixed[300:]], game.member[mixed[300:]])
    assert flat.zero_run(*names, fit, **others).learnt is not None


def test_outliers_of_the_features_overflow_nothing() -> None:
    rng = np.random.default_rng(7)
    game = people(Setting(200, 400, 2, 1.0), rng)
    features = game.features.copy()
    features[0] = 5000.0 * np.sign(game.theta[1:]) * (1 if game.member[0] else -1)
    for claim in BOTH:
        result = lb.audit(
            gaussian(game, 2.0, rng),
            lb.ZeroRun(game.member, PLAIN.fit(*game.reference), features=features, falsify=False),
            claim=claim,
        )
        assert np.isfinite(result.bound)


def test_examples_beyond_a_limit_are_learnt_from_and_not_audited() -> None:
    rng = np.random.default_rng(6)
    game = people(Setting(500, 800, 3, 1.5), rng)
    fit = PLAIN.fit(*game.reference)
    result = audited(game, response(game, 2.0, rng), claim=lb.PureDP(), max_log_odds=1.0)
    near = np.abs(fit.log_odds(game.features)) <= 1.0
    assert (result.m, result.abstained) == (near.sum(), 800 - near.sum())
    assert result.learnt.reference == 500 + 800 - near.sum()
    assert result.bound > 0.5
    with pytest.raises(OptionError, match="other examples"):
        lb.audit(
            game.log_odds, lb.ZeroRun(game.member, PLAIN, features=game.features, max_log_odds=1.0)
        )


def test_constant_columns_and_copies_change_nothing() -> None:
    rng = np.random.default_rng(7)
    game = people(Setting(0, 800, 3, 1.0), rng)
    scores = response(game, 2.0, rng)
    wide = np.column_stack([game.features, np.ones(800), game.features[:, 1]])
    given: Any = scores, game.member, PLAIN
    options: dict[str, Any] = {"claim": lb.PureDP(), "falsify": False}
    plain = flat.zero_run(*given, features=game.features, **options)
    result = flat.zero_run(*given, features=wide, **options)
    assert result.learnt is not None
    assert result.learnt.columns.tolist() == [0, 1, 2]
    assert result.bound == pytest.approx(plain.bound, abs=0.05)
    assert any("2 of 5 features are constant or depend on" in note for note in result.warnings)
    with pytest.raises(lb.errors.InputError, match="every feature is constant"):
        flat.zero_run(*given, features=np.ones((800, 2)), **options)


def stamps(rng: np.random.Generator) -> tuple[Any, Any]:
    """Two times of 50 years that differ by seconds, on which all of membership depends."""
    seconds = rng.normal(size=1000)
    created = 1.6e9 + 1.2e8 * rng.random(1000)
    return 2 * seconds, np.column_stack([created, created + 60 + 30 * seconds])


@pytest.mark.parametrize("scale", ["stamps", "dependent", 1e-170, "far"])
def test_columns_that_nearly_depend_on_others_accuse_nobody(scale: Any) -> None:
    """What is left of that column may be what membership depends on: it is kept, or refused."""
    rng = np.random.default_rng(17)
    log_odds, features = stamps(rng)
    if scale != "stamps":
        plain = rng.normal(size=(1000, 2))
        log_odds = 2 * plain[:, 1]
        changed = {"dependent": plain.sum(axis=1), "far": plain[:, 1] + 1e13}
        odd = changed[scale] if isinstance(scale, str) else scale * plain[:, 1]
        features = np.column_stack([plain[:, :1] if scale != "dependent" else plain, odd])
    member = rng.random(1000) < 1 / (1 + np.exp(-log_odds))
    result = lb.audit(
        log_odds, lb.ZeroRun(member, PLAIN, features=features, falsify=False), claim=lb.PureDP()
    )
    assert result.bound == 0
    assert result.kind == "conditional_lower_bound"


def test_enormous_features_are_refused() -> None:
    rng = np.random.default_rng(5)
    game = people(Setting(0, 300, 2, 0.5), rng)
    with pytest.raises(lb.errors.InputError, match="give it in other units"):
        audited(replace(game, features=1e160 * game.features), game.log_odds)


def test_enormous_scores_are_audited() -> None:
    rng = np.random.default_rng(5)
    game = people(Setting(0, 300, 2, 0.5), rng)
    scores = np.where(game.member, 1e308, -1e308)
    given: Any = game.member, PLAIN
    options: dict[str, Any] = {"features": game.features}
    small = flat.zero_run(scores / 1e308, *given, **options)
    assert flat.zero_run(scores, *given, **options).bound == small.bound > 0


def test_features_are_joined_by_their_ids() -> None:
    rng = np.random.default_rng(9)
    game = people(Setting(0, 400, 3, 1.0), rng)
    ids = np.arange(400) + 1000
    order = rng.permutation(400)
    frame = pd.DataFrame(game.features, index=ids)
    given: Any = response(game, 2.0, rng), game.member, PLAIN
    plain = flat.zero_run(*given, features=game.features, ids=ids, falsify=False)
    assert plain == flat.zero_run(*given, features=frame.iloc[order], ids=ids, falsify=False)
    fit = PLAIN.fit(game.features[:100], game.member[:100], ids=ids[:100])
    with pytest.raises(InputError):
        lb.audit(given[0], lb.ZeroRun(game.member, fit, features=game.features), ids=ids)
    with pytest.raises(InputError, match="features has 399"):
        flat.zero_run(*given, features=game.features[1:])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"cuts": lb.KLScan()}, "cuts"),
        ({"adversary": "raw"}, "adversary"),
        ({"variant": "paper"}, "variant"),
        ({"correction": "poisson_binomial"}, '"tamper" or "composition"$'),
        ({"correction": "composition", "claim": lb.LaplaceDP()}, "composition"),
        ({"uncertainty": "bootstrap"}, "not fitted"),
        ({"features": None}, "features="),
    ],
    ids=str,
)
def test_options_without_a_form_are_refused(options: dict[str, Any], named: str) -> None:
    game = people(Setting(0, 200, 2, 1.0), np.random.default_rng(10))
    options = {"features": game.features} | options
    with pytest.raises(OptionError, match=named):
        flat.zero_run(game.log_odds, game.member, PLAIN, **options)


def test_what_no_set_covers_is_exploratory_and_refutes_nothing() -> None:
    rng = np.random.default_rng(11)
    game = people(Setting(400, 400, 2, 0.5), rng)
    scores = response(game, 3.0, rng)
    tree = SklearnPropensity(DecisionTreeClassifier(max_depth=1))
    given: dict[str, tuple[Any, dict[str, Any]]] = {
        "refits": (PLAIN.fit(*game.reference), {"uncertainty": "bootstrap"}),
        "as it is": (PLAIN.fit(*game.reference), {"uncertainty": "none"}),
        "a tree": (tree.fit(*game.reference), {"uncertainty": "none"}),
        "folds": (cross_fit(tree, game.features, game.member), {"uncertainty": "none"}),
        "replicates": (np.full((40, 400), 0.5), {"confidence": 0.9}),
    }
    for name, (model, options) in given.items():
        if name not in {"folds", "replicates"}:
            options |= {"features": game.features}
        result = flat.zero_run(
            scores, game.member, model, claim=lb.PureDP(), falsify=False, **options
        )
        assert result.kind == "exploratory_lower_bound", name
        assert result.bound > 0, name
        assert result.check(epsilon=0.0) == "inconclusive"
        assert (result.verdict, result.summary().leaks) == ("exploratory", False)
    models: list[Any] = [tree.fit(*game.reference), tree]
    for model in models:
        with pytest.raises(OptionError, match="logistic"):
            lb.audit(
                scores, lb.ZeroRun(game.member, model, features=game.features, uncertainty="set")
            )
    with pytest.raises(OptionError, match="given"):
        lb.audit(scores, lb.ZeroRun(game.member, np.full(400, 0.5), uncertainty="set"))


def test_a_feature_that_the_model_lacks_is_found() -> None:
    rng = np.random.default_rng(13)
    features = rng.normal(size=(800, 2))
    member = rng.random(800) < 1 / (1 + np.exp(-features @ [1.0, 1.0]))
    found = lb.propensity.ConfidenceSet.fit(features[:, :1], member)
    assert not products_missing(found).refuted
    assert products_missing(found, features=features).refuted


def test_another_link_withholds_the_bound() -> None:
    game = people(CAUCHIT, np.random.default_rng(0))
    result = audited(game, game.log_odds, falsify=True)
    assert (result.bound, result.withheld, result.refuted) == (0.0, True, True)
    assert [one.refuted for one in result.learnt.tests] == [False, True, False]


def test_bets_alone_refute() -> None:
    game = people(QUICK[0], np.random.default_rng(0))
    result = audited(game, game.log_odds, falsify=True)
    assert not result.refuted
    *others, bets = result.learnt.tests
    bets = replace(bets, p_value=result.learnt.level + 0.001, refuted=True)
    assert replace(result, learnt=replace(result.learnt, tests=(*others, bets))).refuted
