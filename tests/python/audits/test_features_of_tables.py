"""Features in frames of any library: words, dates, booleans and missing values, by their names."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import leakbound as lb
from leakbound._base.features import FEW, read_features
from leakbound._base.numerics import expit
from leakbound.errors import InputError, InputTypeError, OptionError
from leakbound.propensity import LogisticPropensity, cross_fit, falsify
from leakbound.stats import binomial_tail

pytestmark = pytest.mark.usefixtures("few_trees")

UNTESTED = "the form of the propensity model was not tested: falsify=False"
CITIES = ["Bern", "Oslo", "Rome"]
FRAMES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda table: table,
    "polars": pl.from_pandas,
    "lazy": lambda table: pl.from_pandas(table).lazy(),
    "arrow": pa.Table.from_pandas,
    "mapping": lambda table: {name: table[name].tolist() for name in table},
    "records": lambda table: table.to_dict("records"),
    "objects": lambda table: table.to_numpy(object),
}


def people(m: int, seed: int = 0) -> pd.DataFrame:
    """Columns of every kind; nothing is known of a member."""
    rng = np.random.default_rng(seed)
    every_ninth = np.arange(m) % 9 == 0
    visits = pd.Series(rng.integers(0, 5, m), dtype="Int64").mask(every_ninth)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 70, m),
            "city": rng.choice(CITIES, m, p=[0.2, 0.3, 0.5]),
            "income": np.where(every_ninth, np.nan, rng.normal(size=m)),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, m), "D"),
            "smokes": rng.random(m) < 0.5,
            "visits": visits,
        }
    )


def game(m: int, seed: int = 0, leak: float = 2.0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Membership depends on age and on two of the cities; so do scores."""
    rng = np.random.default_rng(seed)
    table = people(m, seed)
    log_odds = (table["age"] - 45) / 20 + 2.0 * (table["city"] == "Rome") - 1.0
    log_odds += np.where(table["income"].isna(), 1.0, 0.0)
    member = rng.random(m) < 1 / (1 + np.exp(-log_odds.to_numpy()))
    return table, member, log_odds.to_numpy() + leak * member + rng.normal(size=m)


def audited(member: Any, scores: Any, features: Any, **options: Any) -> lb.ZeroRunResult:
    design = lb.ZeroRun(member, features=features, falsify=False, **options)
    return lb.audit(scores, design, claim=lb.PureDP(), seed=0)


@pytest.mark.parametrize("library", FRAMES)
def test_every_library_gives_the_same_columns(library: str) -> None:
    table = people(300)
    read = read_features(FRAMES[library](table))
    names = [*table.columns]
    if library == "objects":
        names = [str(place) for place in range(table.shape[1])]
    age, city, income, since, smokes, visits = names
    assert read.names == (
        *(age, f"{city} = Bern", f"{city} = Oslo", income, f"{income} is missing", since),
        *(smokes, visits, f"{visits} is missing"),
    )
    np.testing.assert_array_equal(read.rows, read_features(table).rows)
    first = table["since"].min()
    assert read.rows[:, 5].tolist() == ((table["since"] - first).dt.days).tolist()
    assert set(read.rows[table["income"].isna(), 3]) == {table["income"].median()}


def test_columns_of_numbers_stay_as_they_are() -> None:
    table = people(100)[["age", "smokes"]].assign(one=1.0)
    read = read_features(table)
    np.testing.assert_array_equal(read.rows, table.to_numpy(np.float64))
    assert read.encoding is not None
    assert read.encoding.sentences == ""


def test_the_order_of_rows_and_membership_have_no_part() -> None:
    table = people(400).assign(town=[f"town {place % 17}" for place in range(400)])
    order = np.random.default_rng(1).permutation(400)
    plain = read_features(table)
    moved = read_features(table.iloc[order].reset_index(drop=True))
    assert moved.names == plain.names
    np.testing.assert_array_equal(moved.rows, plain.rows[order])


def test_rare_words_are_one_and_categories_of_numbers_are_words() -> None:
    usual = 50 * FEW - 2 * FEW
    many = [f"rare {place}" for place in range(FEW)] + ["usual"] * usual + ["other town"] * FEW
    table = pd.DataFrame({"town": many, "code": pd.Categorical(np.arange(50 * FEW) % 3)})
    read = read_features(table)
    assert read.names == ("town = other town", "town = other", "code = 1", "code = 2")
    assert read.rows[:, 1].sum() == FEW
    assert read.encoding is not None
    assert f"has {FEW} words in fewer than {FEW} rows ('rare 0', " in read.encoding.sentences
    ward = ["a"] * (50 * FEW - 3) + ["b", "c"]
    few = read_features(table.iloc[1:].assign(ward=ward, none=None))
    assert few.encoding is not None
    (said,) = few.encoding.doubts
    assert said.endswith("'ward' (the same in nearly all rows), 'none' (missing in all rows)")
    assert few.names == ("town = other town", "code = 1", "code = 2")


def test_one_rare_word_counts_as_the_most_frequent_one_as_that_is_written() -> None:
    places = ["county"] * (50 * FEW) + ["town"] * FEW + ["hamlet"]
    read = read_features(pd.DataFrame({"place": places}))
    assert read.encoding is not None
    (sentence,) = read.encoding.unmarked
    assert sentence == (
        f"column 'place' has 1 word in fewer than {FEW} rows ('hamlet'), which counts as 'county', "
        "the most frequent word"
    )


def of_towns(rare: int, m: int = 1000, seed: int = 0) -> tuple[pd.DataFrame, Any, Any]:
    """Membership depends on the town, of which some are rare; scores know the town alone."""
    rng = np.random.default_rng(seed)
    place = np.maximum(np.arange(m) - m + rare, -1)
    town = np.where(place < 0, "Big", np.char.add("t", (place // 18).astype(str)))
    town[: m // 4] = "Old"
    names, codes = np.unique(town, return_inverse=True)
    chances = np.where(np.isin(names, ["Big", "Old"]), 0.5, rng.choice([0.1, 0.9], names.size))
    chance = chances[codes]
    return (
        pd.DataFrame({"town": town}),
        rng.random(m) < chance,
        chance + 0.05 * rng.normal(size=m),
    )


def test_rare_words_in_many_rows_are_refused_and_few_are_said() -> None:
    table, member, scores = of_towns(rare=720)
    said = (
        r"'town' of .* fewer than 20 rows each \(40, such as .* 72 % of the rows \(720 of 1,000\)"
    )
    doors: list[Callable[[], Any]] = [
        lambda: audited(member, scores, table),
        lambda: cross_fit(LogisticPropensity(), table, member, seed=0),
        lambda: falsify(np.zeros(1000), table, member, seed=0),
        lambda: LogisticPropensity().fit(table, member, seed=0),
        lambda: lb.audit(scores, lb.Panoramia(member, baseline=scores, features=table), seed=0),
    ]
    for door in doors:
        with pytest.raises(InputError, match=said):
            door()
    # Indicators of all of them are what was given.
    by_hand = pd.get_dummies(table["town"]).to_numpy(float)[:, 1:]
    assert audited(member, scores, by_hand).bound == 0
    # 2 % of the rows may be one word, which the result says.
    table, member, scores = of_towns(rare=20)
    pooled = "column 'town' has 2 words in fewer than 20 rows ('t0', 't1'), which count as one word"
    crossed = lb.ZeroRun(
        member, cross_fit(LogisticPropensity(), table, member, seed=0), falsify=False
    )
    for result in (audited(member, scores, table), lb.audit(scores, crossed, seed=0)):
        assert pooled in result.warnings
        (assumed,) = (one for one in result.assumptions if one.name == "propensities")
        assert pooled in assumed.statement
    with pytest.raises(InputError, match=r"each \(2, such as 't0'\) .* 2\.1 % of the rows \(21 of"):
        audited(member, scores, of_towns(rare=21)[0])


def with_gaps(
    columns: int, gaps: int, m: int = 1000, seed: int = 0
) -> tuple[pd.DataFrame, Any, Any]:
    """Each column lacks a few values of members; scores know which rows lack one, and no more."""
    rng = np.random.default_rng(seed)
    member = rng.random(m) < 0.5
    table = pd.DataFrame({f"c{place}": rng.normal(size=m) for place in range(columns)})
    rows = rng.permutation(np.flatnonzero(member))[: columns * gaps].reshape(columns, gaps)
    lacking = np.zeros(m)
    for place in range(columns):
        table.loc[rows[place], f"c{place}"] = np.nan
        lacking[rows[place]] = 1
    return table, member, lacking + rng.normal(size=m) * 0.05


def test_gaps_without_an_indicator_are_refused_in_many_rows_and_few_are_said() -> None:
    """However many columns they are spread over: a bound of 2 was found from gaps alone."""
    table, member, scores = with_gaps(columns=20, gaps=19)
    with pytest.raises(InputError, match="380 of 1,000 rows of features have values that are"):
        audited(member, scores, table)
    table, member, scores = with_gaps(columns=2, gaps=10)  # 2 % of the rows
    result = audited(member, scores, table)
    (assumed,) = (one for one in result.assumptions if one.name == "propensities")
    for name in ("c0", "c1"):
        told = f"column '{name}' is missing in 10 rows, too few for an indicator, which count as"
        assert any(told in one for one in result.warnings)
        assert told in assumed.statement


def test_rows_of_which_features_do_not_tell_all_are_not_audited() -> None:
    """Twenty gaps of members alone gave 28 false claims in 60 games, before they were left out."""
    table, member, scores = with_gaps(columns=2, gaps=10)
    result = audited(member, scores, table)
    assert (result.m, result.abstained) == (980, 20)
    (assumed,) = (one for one in result.assumptions if one.name == "propensities")
    assert "Rows with a rare word or gap are not audited." in assumed.statement
    table, member, scores = of_towns(rare=20)
    assert (audited(member, scores, table).m, audited(member, scores, table).abstained) == (980, 20)
    crossed = lb.ZeroRun(member, cross_fit(LogisticPropensity(), table, member, seed=0))
    assert lb.audit(scores, crossed, seed=0).m == 980
    false = 0
    for seed in range(60):
        table, member, scores = with_gaps(columns=2, gaps=10, seed=seed)
        design = lb.ZeroRun(member, features=table, falsify=False)
        false += lb.audit(scores, design, claim=lb.PureDP(), confidence=0.8, seed=0).bound > 0
    assert binomial_tail(false, 60, 0.2) > 0.01  # twice the rate gives 24


def fitted(seed: int) -> lb.ZeroRun:
    """A model of other examples with as many gaps, taken as it is."""
    there, member_there, _ = with_gaps(columns=2, gaps=10, seed=seed + 1000)
    here, member, _ = with_gaps(columns=2, gaps=10, seed=seed)
    fit = LogisticPropensity().fit(there, member_there, seed=0)
    return lb.ZeroRun(member, fit, features=here, uncertainty="none", falsify=False)


def crossed(seed: int) -> lb.ZeroRun:
    """Models of each fold, fitted to the other."""
    table, member, _ = with_gaps(columns=2, gaps=10, seed=seed)
    models = cross_fit(LogisticPropensity(), table, member, seed=0)
    return lb.ZeroRun(member, models, uncertainty="none", falsify=False)


@pytest.mark.parametrize("design", [fitted, crossed])
def test_models_that_are_taken_as_they_are_leave_these_rows_out(
    design: Callable[[int], lb.ZeroRun],
) -> None:
    """Gaps of members alone gave a false claim in each of 60 games, by either model."""
    false = 0
    for seed in range(60):
        scores = with_gaps(columns=2, gaps=10, seed=seed)[2]
        result = lb.audit(scores, design(seed), claim=lb.PureDP(), confidence=0.8, seed=0)
        false += result.bound > 0
    assert binomial_tail(false, 60, 0.2) > 0.01  # twice the rate gives 24


def test_fits_and_folds_say_how_many_rows_they_leave_out() -> None:
    table, member, scores = with_gaps(columns=2, gaps=10)
    for road in (fitted(0), replace(fitted(0), uncertainty="bootstrap")):
        result = lb.audit(scores, road, claim=lb.PureDP(), seed=0)
        assert (result.m, result.abstained) == (980, 20)
        assert any("column 'c0' is missing in 10 rows" in one for one in result.warnings)
        (assumed,) = (one for one in result.assumptions if one.name == "propensities")
        assert "Rows with a rare word or gap are not audited." in assumed.statement
        assert result.overlap.m == 980
    models = cross_fit(LogisticPropensity(), table, member, seed=0)
    assert [fit.rows.member.size for _, fit in models.parts()] == [
        int((~table.isna().any(axis=1) & (models.fold != number)).sum()) for number in (0, 1)
    ]
    result = lb.audit(scores, crossed(0), claim=lb.PureDP(), seed=0)
    of_fold = models.fold == result.options["fold"]
    assert result.m + result.abstained == of_fold.sum()
    assert result.abstained == (of_fold & table.isna().any(axis=1)).sum()


def test_nothing_is_predicted_of_rows_that_numbers_do_not_tell() -> None:
    """Propensities that are passed on as numbers would be taken as right."""
    table, member, scores = with_gaps(columns=2, gaps=10)
    fit = LogisticPropensity().fit(*with_gaps(columns=2, gaps=10, seed=1)[:2], seed=0)
    gaps = table.isna().any(axis=1).to_numpy()
    np.testing.assert_array_equal(np.isnan(fit.predict(table)), gaps)
    np.testing.assert_array_equal(np.isnan(fit.bootstrap(table, K=2, seed=0)), [gaps, gaps])
    assert fit.overlap(table, member).m == 980
    assert not falsify(fit.log_odds(table), table, member, seed=0).refuted
    with pytest.raises(InputError, match="log_odds must not be NaN, but 20 of 1000 are"):
        falsify(fit.log_odds(table), np.zeros((1000, 1)), member, seed=0)
    with pytest.raises(InputTypeError, match="propensity cannot be read as an array"):
        lb.audit(scores[:3], lb.ZeroRun(member[:3], [[1, 2], [3]]), seed=0)
    for propensity in (fit.predict(table), expit(fit.bootstrap(table, K=2, seed=0))):
        with pytest.raises(OptionError, match=f"NaN in 20 examples, .* {gaps.argmax()}: leave"):
            lb.audit(scores, lb.ZeroRun(member, propensity), seed=0)


def test_what_was_read_and_what_was_filled_is_told() -> None:
    """By every road: a fit to other examples, a cross-fit, and the audited examples alone."""
    table, member, scores = game(600)
    written = table["income"].round(6).map(str).replace("nan", "n/a")
    table = table[["city", "since"]].assign(income=written, none=None)
    fit = LogisticPropensity().fit(table[300:].reset_index(drop=True), member[300:], seed=0)
    crossed = cross_fit(LogisticPropensity(), table, member, seed=0)
    gone = (written == "n/a").to_numpy()
    results = (
        (gone.sum(), audited(member, scores, table)),
        (gone[300:].sum(), audited(member[:300], scores[:300], table[:300], propensity=fit)),
        (gone.sum(), lb.audit(scores, lb.ZeroRun(member, crossed), seed=0)),
    )
    for count, result in results:
        (assumed,) = (one for one in result.assumptions if one.name == "propensities")
        kinds = "read as words: 'city'; as dates: 'since'; as numbers: 'income'."
        assert kinds in assumed.statement
        marked = f"column 'income' has 'n/a' in {count} cells: read as missing values"
        assert marked in assumed.statement
        assert any("left out: 'none' (missing in all rows)" in one for one in result.warnings)


def test_rows_left_out_for_what_is_rare_in_d_prime_are_told() -> None:
    table, member, scores = game(800)
    columns = table[["age", "city"]].assign(age=table["age"].astype(float))
    fit = LogisticPropensity().fit(columns[400:].reset_index(drop=True), member[400:], seed=0)
    here = columns[:400].copy()
    here.loc[:4, "age"] = np.nan
    result = audited(member[:400], scores[:400], here, propensity=fit)
    assert result.abstained == 5
    assert any(one.startswith("5 examples are not audited: ") for one in result.warnings)


def test_words_that_were_rare_in_d_prime_are_refused_where_they_are_many() -> None:
    there, member, _ = of_towns(rare=20)
    fit = LogisticPropensity().fit(there, member, seed=0)
    here, audited_member, scores = of_towns(rare=0)
    here.loc[:199, "town"] = "t0"
    with pytest.raises(InputError, match=r"model was fitted to \(1, .* 20 % of the rows \(200 of"):
        audited(audited_member, scores, here, propensity=fit)
    assert fit.predict(pd.DataFrame({"town": ["Big", "t0"]})).shape == (2,)


def test_a_frame_audits_as_its_indicators_do() -> None:
    table, member, scores = game(700)
    missing = table["income"].isna()
    by_hand = np.column_stack(
        [
            table["age"],
            *(table["city"] == name for name in CITIES[:2]),
            table["income"].fillna(table["income"].median()),
            missing,
        ]
    ).astype(float)
    result = audited(member, scores, table[["age", "city", "income"]])
    assert result.bound > 0.5
    assert result.bound == audited(member, scores, by_hand).bound
    assert result.warnings == (UNTESTED,)
    (assumed,) = (one for one in result.assumptions if one.name == "propensities")
    assert "membership has no part in it" in assumed.statement
    # Rows that are joined by an index follow it.
    named = table.set_index(pd.Index([f"p{place}" for place in range(700)]))
    order = np.random.default_rng(2).permutation(700)
    joined = audited(
        member, pd.Series(scores, named.index), named[["age", "city", "income"]].iloc[order]
    )
    assert joined.bound == result.bound


def test_dependent_columns_are_left_out_by_name() -> None:
    table, member, scores = game(600)
    plain = audited(member, scores, table[["age", "city"]])
    wide = table[["age", "city"]].assign(
        same=1.0, copy=table["age"], half=table["age"] / 2 + 3, **pd.get_dummies(table["city"])
    )
    result = audited(member, scores, wide)
    assert result.bound == pytest.approx(plain.bound, abs=0.05)
    untested, warning = result.warnings
    assert untested == UNTESTED
    for words in (
        "6 of 9 features are constant or depend on those before them",
        "'same' (the same in all rows)",
        "'copy' (equal to 'age')",
        "'half' (a combination of 'age')",
        "'Bern' (equal to 'city = Bern')",
        "'Rome' (a combination of 'city = Bern' and 'city = Oslo')",
    ):
        assert words in warning


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"a": 1.0, "b": "x"}, r"every feature is constant: 'a' \(the same in all rows\)"),
        ({"a": "x", "b": None}, r"no column of features says anything: 'a' \(the same in nearly"),
        ({"id": [f"p{place}" for place in range(200)], "a": range(200)}, "'id' .*200 different"),
        ({"a": [[1, 2]] * 200}, "column 'a' of features holds list values"),
        ({"a": [1 + 2j] * 200}, "column 'a' of features holds complex"),
        ({"a": [*["1.5", "2", "3", "4"] * 49, "x", "5", "6", "7"]}, r"\.astype\('category'\)"),
        ({"a": [np.inf, *range(199)]}, "column 'a' of features is infinite in 1 rows"),
    ],
)
def test_tables_that_say_nothing_or_cannot_be_read(columns: dict[str, Any], words: str) -> None:
    member = np.arange(200) % 3 > 0
    table = pd.DataFrame(columns, index=range(200))
    with pytest.raises(InputError, match=words):
        audited(member, np.random.default_rng(0).normal(size=200), table)


def test_two_tables_or_one_column_of_words_are_no_features() -> None:
    table, member, scores = game(200)
    inside, outside = table[member], table[~member]
    for several in ((inside, outside), {"in": inside, "out": outside}):
        with pytest.raises(InputError, match=r"one table with a row for each .* got 2 tables"):
            audited(member, scores, several)
    for words in (table["city"], table["city"].tolist()):
        with pytest.raises(InputTypeError, match=r"pass a frame, such as series\.to_frame"):
            audited(member, scores, words)


def test_what_decides_membership_is_named() -> None:
    table, member, scores = game(500)
    year = np.where(member, 2023, 2024)
    result = audited(member, scores, table[["age"]].assign(year=year))
    assert result.bound == 0
    assert "column 'year' alone tells every member from every non-member" in result.reason
    # What only one part has is missing in the other, where two tables were put together.
    torn = table[["age"]].assign(ward=np.where(member, np.arange(500) % 3, np.nan))
    result = audited(member, scores, torn)
    assert "column 'ward is missing' alone tells every member" in result.reason
    rare = table[["age"]].assign(site=np.where(member & (np.arange(500) % 9 == 0), "a", "b"))
    result = audited(member, scores, rare)
    assert "in column 'site = a' are members" in result.reason


def test_other_examples_are_converted_alike() -> None:
    table, member, scores = game(1000)
    columns = ["age", "city", "income"]
    there = table[columns].iloc[500:].reset_index(drop=True)
    here = table[columns].iloc[:500]
    fit = LogisticPropensity().fit(there, member[500:], seed=0)
    result = audited(member[:500], scores[:500], here, propensity=fit)
    assert result.learnt is not None
    assert result.learnt.reference == 500
    assert fit.predict(here.iloc[:3]).shape == (3,)
    for changed, words in (
        (here.assign(city="Wien"), "has 'Wien' at row 0 .* that the model was not fitted to"),
        (here.drop(columns="city"), "X lacks 'city'"),
        (here.assign(more=1), "X has 'more' besides"),
        (here.assign(age="old"), "holds words, and the model was fitted to numbers"),
    ):
        with pytest.raises(InputError, match=words):
            fit.predict(changed)


def test_other_doors_take_the_same_frames() -> None:
    table, member, scores = game(600)
    columns = table[["age", "city"]]
    crossed = cross_fit(LogisticPropensity(), columns, member, seed=0)
    assert crossed.features.shape == (600, 3)
    bound = lb.audit(scores, lb.ZeroRun(member, crossed, falsify=False), seed=0).bound
    assert (
        bound == lb.audit(scores, lb.ZeroRun(member, features=columns, falsify=False), seed=0).bound
    )
    assert falsify(np.zeros(600), columns, member, seed=0).refuted
    fair = np.random.default_rng(0).random(600) < 0.5
    result = lb.audit(
        scores * 0 + fair + np.arange(600) % 7,
        lb.Panoramia(fair, baseline=np.arange(600) % 11, features=columns),
        seed=0,
    )
    assert result.conditional is not None
    assert result.conditional.learnt is not None
    assert result.conditional.learnt.columns.size == 4


@pytest.mark.parametrize("library", ["polars", "lazy", "arrow", "mapping", "records", "objects"])
def test_rows_without_ids_cannot_follow_another_order(library: str) -> None:
    """A mapping and a query were read by position: features were those of other examples."""
    table, member, scores = game(200)
    names = pd.Index([f"p{place}" for place in range(200)])
    moved = pd.Series(scores, names).sample(frac=1, random_state=0)
    told = pd.Series(member, names)
    columns = table[["age", "city"]]
    for design in (
        lb.ZeroRun(told, features=FRAMES[library](columns), falsify=False),
        lb.RandomSplit(told, features=FRAMES[library](columns)),
    ):
        with pytest.raises(InputError, match="different orders, and features has no ids"):
            lb.audit(moved, design, seed=0)
    joined = audited(told, moved, columns.set_index(names))
    assert joined.m == 200


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_a_split_is_challenged_by_frames(library: str) -> None:
    rng = np.random.default_rng(0)
    table = people(400).assign(name=[f"p{place}" for place in range(400)], same=1)
    member = rng.permutation(400) < 200
    scores = rng.normal(size=400) + 2 * member
    result = lb.audit(scores, lb.RandomSplit(member, features=FRAMES[library](table)), seed=0)
    assert result.bound > 0
    assert not result.warnings
    assert "'same' is the same in all records: ignored" in result.assumptions[0].statement
    assert result.blind_baseline is not None
    told = table.assign(city=np.where(member, "Rome", table["city"]))
    result = lb.audit(scores, lb.RandomSplit(member, features=FRAMES[library](told)), seed=0)
    assert result.bound == 0
    assert "the most telling column is 'city'" in result.warnings[0]


GAMES = 60
LEVEL = 0.2


def false_claims(columns: list[str]) -> int:
    """Count audits of scores that know these features alone and yet prove something."""
    count = 0
    for seed in range(GAMES):
        table, member, scores = game(400, seed=seed, leak=0.0)
        design = lb.ZeroRun(member, features=table[columns], falsify=False)
        result = lb.audit(scores, design, claim=lb.PureDP(), confidence=1 - LEVEL, seed=seed)
        count += result.bound > 0
    return count


def test_words_and_gaps_take_out_what_they_explain() -> None:
    """At twice the level, as many false claims as are allowed would be rare."""
    allowed = 16
    assert binomial_tail(allowed + 1, GAMES, 2 * LEVEL) > 0.95
    assert false_claims(["age", "city", "income"]) <= allowed
    assert false_claims(["age", "income"]) > allowed
