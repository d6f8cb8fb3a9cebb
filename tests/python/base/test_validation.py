"""Bad input raises its own error, which says what is wrong, where, and what to do."""

import math
import pickle
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from torch.utils.data import TensorDataset

import flat
import leakbound as lb
from leakbound import errors, stats
from leakbound._base import checks
from leakbound._base.checks import check_membership, complement
from leakbound.stats import kl_scan_offsets as scan

Game = tuple[np.ndarray, np.ndarray]
GOOD = [0.3, -1.2, 2.5, 0.1]
COINS = [1, 0, 1, 0]

OF_AN_OPTION: dict[str, Callable[[], object]] = {
    "confidence": lambda: complement(2.0),
    "seed": lambda: checks.seed_of(-1),
    "steps": lambda: checks.integer(1 << 200, name="steps", least=0),
    "noise": lambda: checks.real(10**400, name="noise"),
    "prior": lambda: lb.audit(GOOD, lb.Coins(COINS, prior=1.0)),
    "sides": lambda: lb.audit(GOOD, lb.Coins(COINS), sides="left"),  # type: ignore[call-overload]
    "claim": lambda: lb.audit(GOOD, lb.Coins(COINS), claim=lb.PureDP),  # type: ignore[call-overload]
    "fixed": lambda: lb.Trials(COINS, fixed=1),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", OF_AN_OPTION)
def test_errors_about_an_option_carry_its_name(name: str) -> None:
    """The command line writes it as a flag; what was pickled in a worker still has it."""
    with pytest.raises(errors.LeakboundError) as raised:
        OF_AN_OPTION[name]()
    for error in (raised.value, pickle.loads(pickle.dumps(raised.value))):
        assert error.option == name
        assert str(error).startswith(f"{name} ")


def test_errors_about_data_name_no_option() -> None:
    with pytest.raises(errors.InputError) as raised:
        lb.audit([], lb.Coins(COINS))
    assert raised.value.option == ""


BAD_SCORES: list[tuple[Any, type[Exception], str]] = [
    ([0.1, math.nan, 2, math.nan], errors.InputError, r"2 of 4 .* rows 1, 3; drop"),
    (np.full(9, np.nan), errors.InputError, r"rows 0, 1, 2, 3, 4, …"),
    ([], errors.InputError, "scores is empty"),
    (3.0, errors.InputError, r"one-dimensional.*shape \(\)"),
    (np.ones((1, 2, 2)), errors.InputError, r"shape \(1, 2, 2\); pick a column"),
    (np.ones((4, 1, 1)), errors.InputError, r"shape \(4, 1, 1\)"),
    (["a", "b", "c", "d"], errors.InputTypeError, r"real numbers, got dtype <U1"),
    ([1.0, None, 2.0, 3.0], errors.InputTypeError, "got None at row 1; encode"),
    ([pd.NA, 1.0, 2.0, 3.0], errors.InputTypeError, "got <NA> at row 0"),
    ([2**70, 1, 2, 3], errors.InputTypeError, "objects beyond 2.53, .* pass their ranks"),
    ([*GOOD[:3], np.ma.masked], errors.InputTypeError, "masked entries; drop them"),
    ([Decimal("sNaN")] * 4, errors.InputTypeError, "got dtype object"),
    (dict(enumerate(GOOD)), errors.InputError, r"pass \[\*scores.values\(\)\] and ids=\[\*scores"),
    (np.ones((4, 2)), errors.InputError, r"shape \(4, 2\), and rows are attacks.*scores\[:, 1\]"),
    (np.array([1j, 2, 3, 4]), errors.InputTypeError, "got dtype complex128"),
    ([[1.0], [2.0, 3.0]], errors.InputError, "scores of 'attack 1' has 2 values"),
    (np.array(["2024-01-01"] * 4, dtype="M8[D]"), errors.InputTypeError, "datetime64"),
    (np.ma.masked_greater(np.array(GOOD), 2), errors.InputTypeError, "masked entries; drop them"),
    (torch.empty(4, device="meta"), errors.InputTypeError, "cannot be read as an array: .*meta"),
    (pl.DataFrame({"a": GOOD}).lazy(), errors.InputTypeError, r"a LazyFrame.* pass its \.collect"),
    (iter(GOOD), errors.InputTypeError, "pass only once: pass a list"),
    (coo_array([GOOD]), errors.InputTypeError, r"a sparse coo_array: pass its \.toarray\(\)"),
    (TensorDataset(torch.tensor(GOOD)), errors.InputTypeError, "TensorDataset: pass an array"),
    ([0.5, 0.5, 0.5, 0.5], errors.AbstentionError, "all 4 scores are equal.*use a score"),
    ([math.inf] * 4, errors.AbstentionError, "nothing can be guessed"),
    ([1.0, 2.0, 3.0], errors.InputError, "4 values and there are 3 scores"),
]

BAD_MEMBER: list[tuple[Any, type[Exception], str]] = [
    ([1, 0, 1], errors.InputError, "3 values and there are 4 scores; both must"),
    ([0, 2], errors.InputError, r"rows of the members, pass numpy.isin\(numpy.arange\(4\), member"),
    ([0, 2, 4], errors.InputError, "3 values and there are 4 scores; both must"),
    ([0, 1, 2, 1], errors.InputError, r"got 2 at row 2 \(1 such rows\)"),
    (
        [0.1, 0.2, 2.0, 3.0],
        errors.InputError,
        r"come first, lb.audit\(scores, lb.Coins",
    ),
    ([-1, 1, 0, 0], errors.InputError, "got 0 at row 2, while other rows hold -1"),
    ([0.0, 0.5, 1.0, 1.0], errors.InputError, "got 0.5 at row 1"),
    ([0.0, math.nan, 1.0, 1.0], errors.InputError, "got nan at row 1"),
    (["a", "b", "a", "b"], errors.InputTypeError, "words such as in and out, got 'a' at row 0"),
    ([[1, 0], [1, 0]], errors.InputError, "member must be one-dimensional"),
    (
        pd.Series([True, None, True, False], dtype="boolean"),
        errors.InputTypeError,
        "got '<NA>' at row 1",
    ),
]

BAD_OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"confidence": 0.0}, errors.OptionError, "confidence must be above 0 and below 1, got 0"),
    ({"confidence": 1.0}, errors.OptionError, "got 1"),
    ({"confidence": 95}, errors.OptionError, "got 95: write 0.95"),
    ({"confidence": math.nan}, errors.OptionError, "got nan"),
    ({"confidence": "95%"}, errors.InputTypeError, "confidence must be a real number"),
    ({"confidence": True}, errors.InputTypeError, "confidence must be a real number"),
    (
        {"sides": "top"},
        errors.OptionError,
        "sides must be one of 'both', 'member', 'auto', got 'top'",
    ),
    ({"sides": None}, errors.OptionError, "sides must be one of"),
    ({"claim": "eps"}, errors.InputTypeError, r"claim(\[0\])? must be one of PureDP\(\.\.\.\)"),
    ({"claim": lb.PureDP}, errors.InputTypeError, "call it"),
    ({"claim": 1.5}, errors.InputTypeError, r"and result\.check\(epsilon=1\.5\) tests one"),
    ({"claim": "gaussian"}, errors.InputTypeError, r"got 'gaussian': write GaussianDP\(\.\.\.\)"),
    ({"cuts": 10}, errors.InputTypeError, r"for a number of guesses write lb.cuts.Fixed\(10\)"),
    ({"cuts": "kl"}, errors.InputTypeError, r"cuts must be one of KLScan"),
    ({"cuts": lb.KLScan}, errors.InputTypeError, "call it"),
    ({"cuts": lb.Fixed(5)}, errors.OptionError, r"Fixed\(guesses=5\).*more guesses than.*\(4\)"),
    ({"cuts": lb.KLScan(min_guesses=9)}, errors.OptionError, r"KLScan\(min_guesses=9\)"),
    ({"seed": -1}, errors.OptionError, "seed must be at least 0"),
    ({"seed": 1.5}, errors.InputTypeError, "seed must be an integer"),
    ({"ids": [7, 8, 7, 9]}, errors.InputError, "the first being 7 at rows 0, 2"),
    ({"ids": [7, 7, 8, 9]}, errors.InputError, "both members and non-.*7 at rows 0, 1"),
    ({"ids": ["a", "b", "c"]}, errors.InputError, "ids has 3 values"),
    ({"ids": [1, "a", None, 2.0]}, errors.InputTypeError, "ids must be all numbers or all str"),
]

BAD_POLICIES: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: lb.KLScan(kappa=0), errors.OptionError, "kappa must be above 0"),
    (lambda: lb.KLScan(kappa=math.inf), errors.OptionError, r"kappa .* below 1e\+12"),
    (lambda: lb.KLScan(min_guesses=0), errors.OptionError, "min_guesses must be at least 1"),
    (lambda: lb.KLScan(min_guesses=2.5), errors.InputTypeError, "min_guesses"),  # type: ignore[arg-type]
    (lambda: lb.KLScan(grid="geometric"), errors.OptionError, "grid must be one of 'auto', 'all'"),  # type: ignore[arg-type]
    (lambda: lb.UnionBound(grid="auto"), errors.OptionError, "one of 'all', 'geometric'"),  # type: ignore[arg-type]
    (lambda: lb.UnionBound(grid=[]), errors.InputTypeError, "sequence of numbers of guesses"),
    (lambda: lb.UnionBound(grid=[3, 0]), errors.OptionError, r"grid\[1\] must be at least 1"),
    (lambda: lb.UnionBound(grid=[3, 1.5]), errors.InputTypeError, r"grid\[1\]"),  # type: ignore[list-item]
    (lambda: lb.UnionBound(grid=7), errors.InputTypeError, "got 7"),  # type: ignore[arg-type]
    (lambda: lb.UnionBound(ratio=1.0), errors.OptionError, "ratio must be above 1"),
    (lambda: lb.UnionBound(tail="normal"), errors.OptionError, "tail must be one of"),  # type: ignore[arg-type]
    (lambda: lb.Fixed(0), errors.OptionError, "guesses must be at least 1"),
    (lambda: lb.Fixed(guesses=True), errors.InputTypeError, "guesses must be an integer"),
]

BAD_NUMBERS: list[tuple[Callable[[], object], type[Exception], str]] = [
    (
        lambda: stats.normal_quantile([0.5, 1.5]),
        errors.OptionError,
        r"\[0, 1\], got 1.5 at index 1",
    ),
    (lambda: stats.normal_cdf(math.nan), errors.OptionError, "got nan"),
    (lambda: stats.log_normal_cdf("x"), errors.InputTypeError, "x must hold real numbers"),
    (lambda: stats.binomial_tail(1.5, 3, 0.5), errors.OptionError, "v must be a whole number"),
    (lambda: stats.binomial_tail(1, -3, 0.5), errors.OptionError, "n must be a whole number in"),
    (lambda: stats.binomial_tail(1, 3, [[0.5, 2]]), errors.OptionError, "at index 0, 1"),
    (lambda: stats.clopper_pearson(4, 3, beta=0.1), errors.OptionError, "n - v"),
    (lambda: stats.clopper_pearson(-1, 3, beta=0.1), errors.OptionError, "v must be a whole"),
    (lambda: stats.clopper_pearson(0, 0, beta=0.1), errors.OptionError, "n must be a whole"),
    (lambda: stats.clopper_pearson(1, 2, beta=0.0), errors.OptionError, "beta"),
    (lambda: scan([], [], beta=0.1), errors.InputError, "successes is empty"),
    (
        lambda: stats.kl_scan_offsets([0, 3], [0, 0], beta=0.1),
        errors.InputError,
        "successes must be boolean",
    ),
    (
        lambda: stats.kl_scan_offsets([1, 0], [0, 0], beta=1.0),
        errors.OptionError,
        "beta must be above 0",
    ),
    (
        lambda: stats.kl_scan_offsets([1, 0], [0, 0], beta=0.1, min_guesses=3),
        errors.OptionError,
        "than there are",
    ),
]


@pytest.mark.parametrize(("scores", "error", "words"), BAD_SCORES)
def test_bad_scores(scores: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        lb.audit(scores, lb.Coins(COINS))


@pytest.mark.parametrize(("member", "error", "words"), BAD_MEMBER)
def test_bad_membership(member: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        lb.audit(GOOD, lb.Coins(member))


@pytest.mark.parametrize(("options", "error", "words"), BAD_OPTIONS)
def test_bad_options(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        flat.coins(GOOD, COINS, **options)


@pytest.mark.parametrize(("call", "error", "words"), [*BAD_POLICIES, *BAD_NUMBERS])
def test_bad_numbers(call: Callable[[], object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize(
    ("baseline", "options", "error", "words"),
    [
        ([math.nan, 1, 2, 3], {}, errors.InputError, "baseline must not be NaN"),
        (GOOD[:3], {}, errors.InputError, "baseline has 3 values"),
        ([1, 1, 1, 1], {}, errors.AbstentionError, "all 4 baseline scores are equal"),
        (GOOD, {"ids": [1, 1, 2, 3]}, errors.InputError, "both members and non-"),
        (GOOD, {"real_nonmembers": True, "c_upper": 0.5}, errors.OptionError, "leave out c_upper"),
        *(
            (GOOD, {"c_upper": x}, errors.OptionError, "c_upper")
            for x in (-0.1, math.inf, math.nan)
        ),
    ],
)
def test_bad_input_of_panoramia(
    baseline: Any, options: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        flat.panoramia(baseline, GOOD, COINS, **options)


READABLE: list[Callable[[np.ndarray], Any]] = [
    list,
    tuple,
    torch.from_numpy,
    pd.Series,
    lambda a: pd.Series(a).astype("Float64"),
    pl.Series,
    pa.array,
    lambda a: pa.chunked_array([a[:100], a[100:]]),
    lambda a: a.astype(">f8"),
    lambda a: np.repeat(a, 3)[::3],
    lambda a: a[::-1][::-1],
    lambda a: np.ma.array(a, mask=False),
]


@pytest.mark.parametrize("wrap", READABLE)
def test_scores_may_be_anything_that_numpy_reads(
    wrap: Callable[[np.ndarray], Any], game: Game
) -> None:
    scores, member = game
    assert lb.audit(wrap(scores), lb.Coins(member)) == lb.audit(scores, lb.Coins(member))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble, np.int8, np.uint64])
def test_scores_of_any_real_dtype(dtype: type[np.generic], game: Game) -> None:
    scores, member = game
    coarse = np.abs(scores * 10).astype(dtype)
    result = lb.audit(coarse, lb.Coins(member))
    assert result == lb.audit(coarse.astype(np.float64), lb.Coins(member))


@pytest.mark.parametrize(
    "wrap",
    [
        lambda s: s.astype(np.int8),
        lambda s: 2 * s.astype(int) - 1,
        lambda s: s.astype(float),
        lambda s: pd.Series(s, dtype="boolean"),
        pl.Series,
        pa.array,
        torch.from_numpy,
        lambda s: s.tolist(),
        lb.InclusionPlan,
    ],
)
def test_membership_in_every_form(wrap: Callable[[np.ndarray], Any], game: Game) -> None:
    scores, member = game
    assert lb.audit(scores, lb.Coins(wrap(member))) == lb.audit(scores, lb.Coins(member))


def test_read_only_input_is_read_and_left_alone(game: Game) -> None:
    scores, member = game
    scores.flags.writeable = member.flags.writeable = False
    before = scores.copy(), member.copy()
    result = lb.audit(scores, lb.Coins(member))
    assert result.curve.guesses.size > 0
    np.testing.assert_array_equal(scores, before[0])
    np.testing.assert_array_equal(member, before[1])


@given(st.integers(1, 999_999))
def test_the_complement_of_a_decimal_is_a_decimal(parts: int) -> None:
    assert complement(parts / 10**6) == (10**6 - parts) / 10**6


def test_the_complement_keeps_confidence_near_one() -> None:
    assert complement(0.95) == 0.05
    assert complement(np.nextafter(1, 0)) > 0


@pytest.mark.parametrize(
    ("design", "words"),
    [
        (COINS, r"must say how members were chosen, got list: pass lb\.Coins\(member\) if"),
        (np.array(COINS), "got ndarray: pass lb"),
        (lb.InclusionPlan(np.array(COINS, bool)), "got InclusionPlan: pass lb"),
        (None, "got NoneType: pass lb"),
        (lb.Coins, r"design is the class Coins: call it, .*lb\.Coins\(member\)"),
        (lb.ZeroRun, "design is the class ZeroRun: call it"),
    ],
)
def test_membership_or_a_class_is_no_design(design: Any, words: str) -> None:
    with pytest.raises(errors.InputTypeError, match=words):
        lb.audit(GOOD, design)


@pytest.mark.parametrize("form", [list, deque, lambda values: pd.Series(values, dtype=object)])
def test_strata_of_lists_are_what_is_in_them(form: Any) -> None:
    """NumPy reads integers of both signs as floats, and NaN beside text as text."""
    scores, member = np.arange(8.0), np.arange(8) % 2

    def strata(*values: Any) -> Any:
        design = lb.RandomSplit(member, strata=form([one for one in values for _ in range(2)]))
        return lb.audit(scores, design).options["strata"]

    assert strata(2**63, 2**63 + 1, -1, 0) == 4
    assert strata(Decimal("1.1"), Decimal("1.2"), Decimal(1), Decimal(1)) == 3
    for missing in (None, math.nan, pd.NA, pd.NaT, Decimal("sNaN")):
        with pytest.raises(errors.InputTypeError, match="strata is missing at row 2"):
            strata("a", missing, "b", "b")


PAIRS = [("in", "out"), ("Member", "non-member"), ("yes", "no"), ("train", "test"), ("1", "0")]
PAIRS += [("True", "False"), ("1", "-1"), ("Included ", "excluded")]


@pytest.mark.parametrize("pair", PAIRS)
def test_membership_may_be_words(pair: tuple[str, str]) -> None:
    member = np.arange(8) % 3 == 0
    words = np.where(member, *pair)
    for values in (words, words.tolist(), words.astype(object), words.astype("S")):
        assert check_membership(values, 8).tolist() == member.tolist()
    assert check_membership(member.astype(object), 8).tolist() == member.tolist()


@pytest.mark.parametrize(
    ("words", "row"),
    [(["in", "no"], 1), (["a", "b"], 0), (["train", "val"], 1), ([True, None], 1), (["2", "0"], 0)],
)
def test_other_words_are_refused_with_the_line_to_write(words: list[Any], row: int) -> None:
    message = f"got '{words[row]}' at row {row}: say which word members have, numpy.asarray"
    with pytest.raises(errors.InputTypeError, match=message):
        check_membership(np.array(words, dtype=object), 2)


def test_two_arrays_of_scores_get_the_line_to_write() -> None:
    with pytest.raises(errors.InputTypeError, match="scores of two parts, a of members and b of"):
        lb.audit([0.5, 1.5], [0.25, 2.5, 3.0])  # type: ignore[call-overload]


def test_letters_that_are_composed_otherwise_are_named() -> None:
    ids = np.array([f"\u00e9{i}" for i in range(4)])
    plan = lb.InclusionPlan([True, False, True, False], ids=ids)
    apart = [one.replace("\u00e9", "e\u0301") for one in ids.tolist()]
    with pytest.raises(errors.InputError, match=r"letters such as .* are composed \(NFC, NFD\)"):
        lb.audit([1.0, 2.0, 3.0, 4.0], lb.Coins(plan), ids=apart)


@pytest.mark.parametrize("design", [lb.Coins, lb.RandomSplit])
def test_a_design_of_two_arrays_gets_the_line_to_write(design: Any) -> None:
    with pytest.raises(errors.InputTypeError, match=f"lb.{design.__name__}.numpy.arange"):
        design(GOOD, GOOD[:2])
    inside, outside = np.arange(8.0) + 5, np.arange(8.0)
    member = np.arange(16) < 8
    split = lb.audit(np.concatenate([inside, outside]), lb.RandomSplit(member), seed=0)
    assert split.m == 16


def test_scores_may_be_objects_that_are_numbers() -> None:
    rng = np.random.default_rng(0)
    member = rng.random(200) < 0.5
    plain = np.round(rng.normal(size=200) + 2 * member, 4)
    expected = lb.audit(plain, lb.Coins(member), seed=0).bound
    for scores in (
        plain.astype(object),
        [Decimal(str(one)) for one in plain],
        pd.Series(plain).astype(object),
        pd.DataFrame({"a": plain.astype(object)})["a"],
    ):
        assert lb.audit(scores, lb.Coins(member), seed=0).bound == expected > 0
