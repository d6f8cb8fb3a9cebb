"""Bets of the challenge of a split: p-values are uniform or larger, as long as bets look back."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import BaseEstimator

import leakbound as lb
from leakbound._base import shares
from leakbound._base.numerics import expit
from leakbound.audits import split_challenge
from leakbound.audits.pairs import Pairs, Units
from leakbound.audits.split_challenge import BetsOfClassifier, _expected_in_words, bets, challenge
from leakbound.errors import InputTypeError
from leakbound.propensity import falsification
from leakbound.results import aisvs_fields

PAIRS = 100
LEVELS = (0.001, 0.01, 0.05)
RECORDS = np.arange(2.0 * PAIRS)[:, None] // 20
"""Ten records, each twenty times: what is known of some copies is known of the others."""


class Twins(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier that knows how many members among those it learnt from were equal to a row."""

    def fit(self, table: NDArray[np.float64], labels: NDArray[np.bool_]) -> "Twins":
        self.classes_ = np.array([False, True])
        signs = np.where(labels, 1.0, -1.0)
        self.sums = np.bincount(table[:, 0].astype(np.int64), signs, minlength=PAIRS)
        return self

    def predict_proba(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        chance = expit(self.sums[table[:, 0].astype(np.int64)].astype(np.float64))
        return np.column_stack([1 - chance, chance])


def out_of_bag(
    _: Any,
    table: NDArray[np.float64],
    labels: NDArray[np.bool_],
    first: NDArray[np.bool_],
    seed: int,
) -> BetsOfClassifier:
    """Bet on each pair by what all others show, later ones too, and count what is won."""
    code, signs = table[:, 0].astype(np.int64), np.where(labels, 1.0, -1.0)
    one, other = np.split(code, 2)
    total = np.bincount(code, signs)
    apart = total[one] - total[other] - 2 * (one != other)  # without the own pair
    tossed = np.random.default_rng([29, seed]).random(first.size) - 0.5
    right = int(((apart > 0) | ((apart == 0) & (tossed > 0))).sum())
    p_value = float(stats.binom.sf(right - 1, first.size, 0.5))
    return BetsOfClassifier(p_value, right, first.size)


def small_p_values(games: int, monkeypatch: pytest.MonkeyPatch) -> dict[float, int]:
    """Count p-values of bets up to each level, of random splits of the records."""
    monkeypatch.setattr(falsification, "default_sceptics", lambda: {"twins": Twins()})
    found = np.empty(games)
    for game in range(games):
        member = np.random.default_rng([23, game]).permutation(2 * PAIRS) < PAIRS
        pairs = Pairs.drawn(Units.of(member, None, None, "mean"), game)
        found[game] = bets(pairs, RECORDS, game).p_value
    price = shares.CHALLENGERS.price()
    return {level: int((found <= level * price).sum()) for level in LEVELS}


def most(games: int, level: float) -> int:
    """Return the number that as many uniform p-values exceed with probability 1e-3."""
    return int(stats.binom.isf(1e-3, games, level))


@pytest.mark.parametrize("games", [440, pytest.param(20_000, marks=pytest.mark.validity)])
def test_p_values_of_bets_are_uniform_or_larger(
    games: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stats.binom.sf(most(games, 0.05), games, 0.1) > 0.8
    found = small_p_values(games, monkeypatch)
    assert all(found[level] <= most(games, level) for level in LEVELS), found
    assert found[0.05] > 0.01 * games  # bets are made, and some win


def test_bets_that_learn_from_later_pairs_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guesses of pairs then depend on each other: small p-values are too frequent."""
    monkeypatch.setattr(split_challenge, "_bets_of_classifier", out_of_bag)
    found = small_p_values(440, monkeypatch)
    assert any(found[level] > most(440, level) for level in LEVELS), found


@pytest.mark.parametrize("pairs", [31, 32])
def test_classifiers_bet_where_they_could_contradict(
    pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If they win all bets on 31 pairs p is above 0.001, and they are not asked."""
    rows = np.arange(2.0 * pairs)[:, None]
    drawn = Units.of(np.arange(2 * pairs) < pairs, None, None, "mean")
    matched = Pairs.drawn(drawn, 0)
    asked = {one.view for one in challenge(matched, drawn, rows, 0).findings}
    assert bool(asked & {*falsification.default_sceptics()}) == (pairs == 32)

    def knows(*arguments: Any) -> NDArray[np.float64]:
        return np.where(arguments[2][arguments[4]], 1.0, -1.0)

    monkeypatch.setattr(falsification, "beliefs", knows)
    assert bets(matched, rows, 0).contradicts == (pairs == 32)


@pytest.mark.parametrize(
    ("expected", "said"), [(15_000.25, "15,000"), (31.42, "31.4"), (0.5, "0.5")]
)
def test_expected_numbers_have_their_digits(expected: float, said: str) -> None:
    assert _expected_in_words(expected) == said


def test_a_blind_baseline_says_how_well_membership_is_told_without_the_model() -> None:
    rng = np.random.default_rng(4)
    member = rng.permutation(200) < 100
    scores = rng.normal(size=200)
    told = rng.normal(size=(200, 2)) + 3 * member[:, None]
    found = lb.audit(scores, lb.RandomSplit(member, features=told), seed=0)
    blind = found.blind_baseline
    assert blind is not None
    assert blind.accuracy > 0.9
    assert blind.p is not None
    assert blind.p < 1e-3
    assert found.is_withheld
    assert "of" in str(blind)
    metrics = {one.name: one for one in found.summary().metrics}
    assert metrics["Blind baseline"].value == f"{blind.right:,} of {blind.guesses:,}"
    again = lb.AuditResult.from_json(found.to_json())
    assert again.blind_baseline == blind
    honest = lb.audit(scores, lb.RandomSplit(member, features=rng.normal(size=(200, 2))), seed=0)
    assert honest.blind_baseline is not None
    assert 0.3 < honest.blind_baseline.accuracy < 0.7
    bare = lb.audit(scores, lb.RandomSplit(member), seed=0)
    assert bare.blind_baseline is None
    assert "Blind baseline" not in {one.name for one in bare.summary().metrics}


def test_an_audit_has_the_five_fields_of_a_simulation() -> None:
    rng = np.random.default_rng(5)
    member = rng.permutation(400) < 200
    scores = {"strong": rng.normal(size=400) + 4 * member, "weak": rng.normal(size=400)}
    features = rng.normal(size=(400, 2))
    design = lb.RandomSplit(member, strata=np.arange(400) % 2, features=features)
    fields = aisvs_fields(lb.audit(scores, design, seed=0))
    assert list(fields) == [
        *("ensemble", "low_fpr", "blind_baseline", "subpopulations", "not_covered")
    ]
    assert fields["ensemble"] == ["strong", "weak"]
    assert 0.8 < fields["low_fpr"]["0.01"] <= 1
    assert fields["low_fpr"]["0.001"] is None
    assert 0.3 < fields["blind_baseline"] < 0.7
    assert fields["subpopulations"] == 2
    bare = aisvs_fields(lb.audit(rng.normal(size=400), lb.Coins(member), seed=0))
    assert (bare["ensemble"], bare["blind_baseline"]) == (["the scores given"], None)
    with pytest.raises(InputTypeError):
        aisvs_fields(features)  # type: ignore[arg-type]
