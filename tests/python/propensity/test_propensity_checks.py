"""How propensities describe themselves, and what they refuse."""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from leakbound._base.types import BoolArray, FloatArray
from leakbound.errors import FitError, InputError, InputTypeError, OptionError
from leakbound.propensity import (
    Falsification,
    LogisticPropensity,
    Overlap,
    SklearnPropensity,
    cross_fit,
    falsify,
    hold_out,
)
from leakbound.stats import bootstrap_quantile, match


def shifted(
    m: int, *, seed: int = 0, curve: float = 0.0
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Features, membership and its true log-odds, linear in the features but for `curve`."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(m, 4))
    log_odds = features @ np.array([1.0, -0.5, 0.3, 0.0]) + curve * (features[:, 3] ** 2 - 1)
    return features, rng.random(m) < 1 / (1 + np.exp(-log_odds)), log_odds


def test_fitted_propensities_are_near_the_truth() -> None:
    features, member, log_odds = shifted(40_000)
    fit = LogisticPropensity().fit(features[:20_000], member[:20_000])
    # Five coefficients, each with a standard error of about .018: .04 is the root of their squares.
    assert np.sqrt(np.mean((fit.log_odds(features[20_000:]) - log_odds[20_000:]) ** 2)) < 0.1
    draws = fit.bootstrap(features[20_000:20_100], K=200)
    spread = draws.std(axis=0)
    assert (np.abs(draws.mean(axis=0) - fit.log_odds(features[20_000:20_100])) < spread).all()


def test_another_share_of_members_shifts_all_log_odds() -> None:
    rng = np.random.default_rng(3)
    features, member, log_odds = shifted(20_000, seed=3)
    kept = np.flatnonzero(~member | (rng.random(member.size) < 0.25))
    fit = LogisticPropensity(calibration=None).fit(features[kept], member[kept])
    corrected = fit.with_member_share(member.mean())
    assert corrected.offset == pytest.approx(np.log(4), abs=0.08)
    assert np.abs(corrected.log_odds(features) - log_odds).mean() < 0.1
    shift = corrected.bootstrap(features[:5], K=4) - fit.bootstrap(features[:5], K=4)
    np.testing.assert_allclose(shift, corrected.offset)
    assert "log-odds shifted by +1.3" in repr(corrected)


def test_effective_sizes_are_those_of_matching() -> None:
    features, member, _ = shifted(5000, seed=1)
    fit = LogisticPropensity().fit(features[:2500], member[:2500])
    overlap = fit.overlap(features[2500:], member[2500:])
    claimed = fit.log_odds(features[2500:])
    rng = np.random.default_rng(0)
    kept = [match(member[2500:], claimed, rng.random(2500)).sum() for _ in range(50)]
    assert abs(np.mean(kept) - overlap.m_eff) < 5 * np.std(kept) / np.sqrt(50) + 40
    assert overlap.member_counts.sum() == overlap.members == member[2500:].sum()
    assert overlap.nonmember_counts.sum() == overlap.m - overlap.members
    assert Overlap.from_json(overlap.to_json()) == overlap


def test_certain_examples_are_counted_and_say_infinite_log_odds() -> None:
    features = np.arange(20.0)[:, None]
    fit = SklearnPropensity(DecisionTreeClassifier()).fit(features, np.arange(20) < 10)
    assert set(fit.log_odds(features)) == {-np.inf, np.inf}
    assert set(fit.predict(features)) == {0.0, 1.0}
    overlap = fit.overlap(features, np.arange(20) < 10)
    assert overlap.m_eff == 0.0


@pytest.mark.parametrize("curve", [0.7, -0.7])
def test_a_model_that_misses_a_curve_is_refuted(curve: float) -> None:
    features, member, log_odds = shifted(4000, seed=2, curve=curve)
    fit = LogisticPropensity().fit(features[:2000], member[:2000])
    found = falsify(fit.log_odds(features[2000:]), features[2000:], member[2000:])
    assert found.refuted
    assert found.p_value < 1e-6
    assert found.correct > found.expected
    assert not falsify(log_odds[2000:], features[2000:], member[2000:]).refuted
    assert Falsification.from_json(found.to_json()) == found


@pytest.mark.parametrize("scale", [0.0, 4.0])
def test_propensities_too_flat_or_too_steep_are_refuted(scale: float) -> None:
    features, member, log_odds = shifted(3000, seed=5)
    assert falsify(scale * log_odds, features, member).p_value < 1e-6


def test_cross_fitting_predicts_each_fold_from_the_others() -> None:
    features, member, log_odds = shifted(8000)
    crossed = cross_fit(LogisticRegression(), features, member, folds=4, seed=1)
    assert np.bincount(crossed.fold).tolist() == [2000] * 4
    for rows, fit in crossed.parts():
        assert np.abs(fit.log_odds(features[rows]) - log_odds[rows]).mean() < 0.1
        assert fit.rows.features.shape[0] == 8000 - rows.size
        assert not np.isin(features[rows], fit.rows.features).any()


def test_the_split_follows_ids_and_not_rows() -> None:
    names = np.array([f"p{i}" for i in range(100)])
    shuffled = np.random.default_rng(0).permutation(names)
    held_out, audited = hold_out(names, size=30, seed=2)
    again, _ = hold_out(shuffled, size=30, seed=2)
    assert set(names[held_out]) == set(shuffled[again])
    assert sorted([*held_out, *audited]) == list(range(100))
    assert set(hold_out(names, size=30, seed=3)[0]) != set(held_out)


FEATURES, MEMBER, _ = shifted(50)
BROKEN = FEATURES.copy()
BROKEN[3, 2] = np.nan


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda f: f(BROKEN, MEMBER), InputError, "nan at row 3, column 2 \\(1 such rows\\)"),
        (lambda f: f(FEATURES[:, 0], MEMBER), InputError, r"pass x\[:, None\]"),
        (lambda f: f(FEATURES[:0], MEMBER[:0]), InputError, "two-dimensional"),
        (lambda f: f([["a", "b"]], [True]), InputError, "no column of X says anything"),
        (lambda f: f(FEATURES, MEMBER[:9]), InputError, "9 values"),
        (lambda f: f(FEATURES, np.arange(50)), InputError, "row 2"),
        (lambda f: f(FEATURES, np.ones(50, bool)), InputError, "has no non-members"),
        (lambda f: f(FEATURES, np.arange(50) < 1), InputError, "no members outside of fold"),
        (lambda f: f(FEATURES, MEMBER, ids=np.zeros(50)), InputError, "both members and"),
        (lambda f: f(FEATURES, MEMBER, seed=-1), OptionError, "seed"),
    ],
)
def test_bad_input_to_a_fit(
    call: Callable[[Callable[..., object]], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(LogisticPropensity().fit)


def test_separable_classes_need_the_penalty() -> None:
    features = np.arange(40.0)[:, None]
    member = np.arange(40) < 20
    with pytest.raises(FitError, match="set l2 above 0"):
        LogisticPropensity(0.0).fit(features, member)
    assert np.isfinite(LogisticPropensity(1e-6).fit(features, member).log_odds(features)).all()
    with pytest.raises(FitError, match="depend on one another"):
        LogisticPropensity(0.0).fit(np.column_stack([FEATURES, FEATURES[:, 0]]), MEMBER)


def test_bad_input_to_a_fitted_model() -> None:
    fit = LogisticPropensity().fit(FEATURES, MEMBER, ids=np.arange(50))
    with pytest.raises(InputError, match="3 columns and D' has 4"):
        fit.log_odds(FEATURES[:, :3])
    with pytest.raises(InputError, match="row 3"):
        fit.bootstrap(BROKEN, K=2)
    with pytest.raises(OptionError, match="K must be at least 1"):
        fit.bootstrap(FEATURES, K=0)
    with pytest.raises(InputError, match=r"2 ids .* first 49 at row 0"):
        fit.rows.check_disjoint([49, 50, 3])
    fit.rows.check_disjoint([50, 51])
    with pytest.raises(OptionError, match="share"):
        fit.with_member_share(1.0)


def test_bad_options() -> None:
    for call in (
        lambda: LogisticPropensity(-1.0),
        lambda: LogisticPropensity(calibration="isotonic"),  # type: ignore[arg-type]
        lambda: LogisticPropensity(folds=1),
        lambda: hold_out([1, 2], size=2),
        lambda: cross_fit(LogisticPropensity(), FEATURES, MEMBER, folds=1),
    ):
        with pytest.raises(OptionError):
            call()
    with pytest.raises(InputTypeError, match="predict_proba"):
        SklearnPropensity(3)


def test_the_percentile_is_an_order_statistic_that_must_exist() -> None:
    values = np.random.default_rng(0).permutation(600).astype(float)
    assert bootstrap_quantile(values, p=0.025) == 14
    assert bootstrap_quantile([1.0, -np.inf, 3.0], p=0.25) == -np.inf
    assert bootstrap_quantile(range(100), p=0.29) == 28
    with pytest.raises(OptionError, match="at least 39 bootstrap resamples, got 38"):
        bootstrap_quantile(range(38), p=0.025)
    assert bootstrap_quantile(range(39), p=0.025) == 0
