"""Local randomisers have the laws and the ε of theory, and audits of their reports are valid."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

import leakbound as lb
from leakbound.errors import InputError, InputTypeError, OptionError
from leakbound.mechanisms import GRR, OUE, SUE

KINDS = pytest.mark.parametrize("kind", [GRR, OUE, SUE])
RARE = 1e-4  # an exact test rejects below this probability


def law(kind: Any, k: int, epsilon: float, value: int) -> dict[tuple[int, ...], float]:
    """Return the probability of each report, as the papers state it."""
    e = math.exp(epsilon)
    if kind is GRR:
        return {(one,): (e if one == value else 1) / (e + k - 1) for one in range(k)}
    root = math.sqrt(e)
    p, q = (0.5, 1 / (e + 1)) if kind is OUE else (root / (root + 1), 1 / (root + 1))
    ones = [p if one == value else q for one in range(k)]
    return {
        bits: math.prod(a if bit else 1 - a for a, bit in zip(ones, bits, strict=True))
        for bits in product((0, 1), repeat=k)
    }


@KINDS
@pytest.mark.parametrize(("k", "epsilon"), [(2, 1.0), (3, 0.3), (4, 2.5)])
def test_reports_have_the_law_of_the_papers(kind: Any, k: int, epsilon: float) -> None:
    n, rng = 20_000, np.random.default_rng(7)
    for value in range(k):
        drawn = kind(k, epsilon).reports(np.full(n, value), rng).reshape(n, -1)
        theory = law(kind, k, epsilon, value)
        assert math.fsum(theory.values()) == pytest.approx(1)
        for report, probability in theory.items():
            seen = int((drawn == report).all(axis=1).sum())
            assert stats.binomtest(seen, n, probability).pvalue > RARE


@KINDS
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_log_ratios_are_those_of_the_law(kind: Any, k: int, epsilon: float) -> None:
    laws = [law(kind, k, epsilon, value) for value in range(k)]
    reports = np.array(list(laws[0]))
    given = reports[:, 0] if kind is GRR else reports
    for value, other in product(range(k), repeat=2):
        if value != other:
            ratio = kind(k, epsilon).log_ratio(given, value, other)
            theory = [math.log(laws[value][one] / laws[other][one]) for one in laws[0]]
            np.testing.assert_allclose(ratio, theory, rtol=0, atol=1e-12)
            assert max(ratio) == epsilon == -min(ratio)


@KINDS
def test_each_user_has_a_separate_report_of_the_right_value(kind: Any) -> None:
    values = np.array([2, 0, 1, 2, 1])
    reports = kind(3, 30.0).reports(values, np.random.default_rng(1))
    told = reports[:, None] == np.arange(3) if kind is GRR else reports
    assert told.shape == (5, 3)
    assert not (told & (np.arange(3) != values[:, None])).any()
    again = kind(3, 30.0).reports(values.tolist(), np.random.default_rng(1))
    assert (reports == again).all()


@KINDS
def test_bad_input_is_refused(kind: Any) -> None:
    rng, good = np.random.default_rng(0), kind(3, 1.0)
    for k, epsilon in ((1, 1.0), (2, 0.0), (2, -1.0), (2, math.inf), (2, math.nan), (2, 31.0)):
        with pytest.raises(OptionError, match=r"k|epsilon"):
            kind(k, epsilon)
    for values in ([0, 3], [-1], [0.5], [math.nan]):
        with pytest.raises(OptionError, match=r"values must be a whole number in \[0, 2\]"):
            good.reports(values, rng)
    with pytest.raises(InputError, match="values is empty"):
        good.reports([], rng)
    with pytest.raises(InputTypeError, match="rng must be one of Generator"):
        good.reports([0], 5)
    for pair in ((0, 3), (-1, 0), (1, 1)):
        with pytest.raises(OptionError, match=r"value|other"):
            good.log_ratio(good.reports([0, 1], rng), *pair)
    for wrong in (np.zeros((2, 2)), np.zeros((0, 3)), np.full((2, 3), 2), np.zeros((2, 3, 1))):
        with pytest.raises((InputError, OptionError), match="reports must"):
            good.log_ratio(wrong, 0, 1)


def audited(made: Any, n: int, seed: int, confidence: float) -> list[lb.AuditResult]:
    """Audit by default, and with guesses about all reports whose log ratio is not 0."""
    value, rng = made.k - 1, np.random.default_rng(seed)
    member = rng.random(n) < 0.5
    scores = made.log_ratio(made.reports(np.where(member, value, 0), rng), value, 0)
    told, design = scores != 0, lb.Trials(member)
    cuts = lb.Fixed(int(told.sum()))
    default = lb.audit(scores, design, confidence=confidence, seed=seed)
    fixed = lb.audit(scores, design, confidence=confidence, seed=seed, cuts=cuts)
    assert fixed.guesses == told.sum()
    assert fixed.correct == ((scores > 0) == member)[told].sum()
    return [default, fixed]


@KINDS
@pytest.mark.parametrize("k", [2, 5])
def test_bounds_are_above_the_truth_no_more_often_than_stated(kind: Any, k: int) -> None:
    games = [audited(kind(k, 1.0), 200, seed, 0.9) for seed in range(300)]
    for way in (0, 1):
        assert stats.binom.sf(sum(one[way].bound > 1 for one in games) - 1, 300, 0.1) > RARE


@KINDS
@pytest.mark.parametrize("epsilon", [2.0, 3.0, 4.0])
def test_two_values_and_ten_thousand_reports_prove_95_per_cent(kind: Any, epsilon: float) -> None:
    games = [audited(kind(2, epsilon), 10_000, seed, 0.95) for seed in range(20)]
    default, told = np.mean([[one.bound for one in game] for game in games], axis=0)
    assert told >= 0.95 * epsilon
    assert default >= 0.95 * epsilon
