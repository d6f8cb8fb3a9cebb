"""Zero-concentrated DP: its curve against a linear programme of tests, and audits under it."""

import itertools
import json
import math
import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq

import leakbound as lb
from leakbound.claims import ZeroConcentratedDP, concentrated
from leakbound.cli.output import brief
from leakbound.errors import OptionError
from leakbound.evidence.bundle import model_index
from leakbound.testing import assert_not_refuted

CLAIM = ZeroConcentratedDP()
RHOS = (0.01, 0.3, 2.0, 20.0)
ORDERS = 1 + np.geomspace(1e-4, 2000, 4000)


def divergence(p: float, q: float) -> NDArray[np.float64]:
    """The Rényi divergences of two coins, term by term."""
    heads = ORDERS * math.log(p) + (1 - ORDERS) * math.log(q)
    tails = ORDERS * math.log1p(-p) + (1 - ORDERS) * math.log1p(-q)
    found: NDArray[np.float64] = np.logaddexp(heads, tails) / (ORDERS - 1)
    return found


def largest(rho: float, level: float) -> float:
    """The largest power at a level, by a root of the order that is exceeded most."""

    def excess(p: float) -> float:
        both = np.maximum(divergence(p, level), divergence(level, p))
        return float(np.max(both / ORDERS)) - rho

    high = 1 - 1e-13
    if excess(high) <= 0:
        return 1.0
    return float(brentq(excess, level * (1 + 1e-9), high, xtol=1e-14))


@pytest.mark.parametrize("rho", RHOS)
@pytest.mark.parametrize("level", [1e-7, 1e-3, 0.05, 0.3])
def test_curves_are_on_either_side_of_what_all_orders_allow(rho: float, level: float) -> None:
    missed = 1 - largest(rho, level)
    above, below = CLAIM.curve(rho, "both").f(level), CLAIM.attained(rho, "both").f(level)
    assert above <= missed + 1e-9
    assert below >= missed - 1e-9
    assert below - above < 0.02


@pytest.mark.parametrize("rho", RHOS)
def test_points_that_are_attained_obey_every_order(rho: float) -> None:
    """Coins at corners, at orders that the curve was not made from, and their largest losses."""
    level, missed = CLAIM.attained(rho, "both").corners()
    inside = (level > 1e-12) & (missed > 1e-12) & (level + missed < 1 - 1e-9)
    for q, p in zip(level[inside][::5], 1 - missed[inside][::5], strict=True):
        for one, other in ((p, q), (q, p)):
            assert np.all(divergence(one, other) <= rho * ORDERS * (1 + 1e-7))


@pytest.mark.parametrize("mu", [0.2, 1.0, 3.0])
def test_gaussian_noise_obeys_its_rho_and_is_no_translation(mu: float) -> None:
    """N(0, 1) against N(μ, 1) has ρ = μ²/2, and zCDP with that ρ allows more."""
    rho, gaussian = mu**2 / 2, lb.TradeOff.gaussian(mu)
    levels = np.linspace(0.001, 0.999, 60)
    assert np.all(CLAIM.curve(rho, "both").f(levels) <= gaussian.f(levels) + 1e-9)
    assert CLAIM.attained(rho, "both").f(0.05) < gaussian.f(0.05) - 0.001
    for delta in (1e-3, 1e-5):
        known = rho + 2 * math.sqrt(rho * math.log(1 / delta))  # Bun and Steinke 2016, Lemma 3.5
        attained = CLAIM.attained(rho, "both").epsilon(delta)
        assert gaussian.epsilon(delta) < attained
        assert attained <= CLAIM.curve(rho, "both").epsilon(delta) < known


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_pure_dp_obeys_half_of_its_square(epsilon: float) -> None:
    """ε-DP is ε²/2-zCDP: the curve of randomised response lies on or above."""
    levels = np.linspace(0.001, 0.999, 60)
    response = lb.TradeOff.approx(epsilon)
    assert np.all(CLAIM.curve(epsilon**2 / 2, "both").f(levels) <= response.f(levels) + 1e-9)


def test_curves_are_ordered_and_mirrored() -> None:
    levels = np.linspace(0.001, 0.999, 200)
    curves = [CLAIM.curve(rho, "both") for rho in np.geomspace(1e-3, 50, 30)]
    for less, more in itertools.pairwise(curves):
        assert np.all(more.f(levels) <= np.asarray(less.f(levels)) + 1e-12)
    for curve in curves[::6]:
        missed = np.asarray(curve.f(levels))
        keep = missed > 1e-6
        np.testing.assert_allclose(curve.f(missed[keep]), levels[keep], atol=1e-6)
    with pytest.raises(OptionError, match="rho must be above 0"):
        CLAIM.tradeoff(0.0)


def permute_and_flip(trials: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Which of ten is chosen, of utilities that differ between two data sets; ε = 2 a choice."""
    rng = np.random.default_rng(seed)
    member = rng.random(trials) < 0.5
    utilities = np.where(member[:, None], np.arange(10) < 1, np.arange(10) >= 1).astype(float)
    heads = rng.random((trials, 10)) < np.exp(utilities - 1)
    order = rng.random((trials, 10))
    chosen = np.where(heads, order, 2.0).argmin(axis=1)
    return np.where(chosen == 0, 1.0, -1.0), member


def rho_of_choices() -> float:
    """The least ρ of one choice: the largest divergence over its order."""
    counts = [permute_and_flip(400_000, 99)]
    scores, member = counts[0]
    p, q = (float((scores[member == side] > 0).mean()) for side in (True, False))
    return float(np.max(np.maximum(divergence(p, q), divergence(q, p)) / ORDERS))


def test_bounds_of_a_private_choice_grow_towards_its_rho() -> None:
    truth = rho_of_choices()
    bounds = []
    for trials in (1_000, 20_000):
        scores, member = permute_and_flip(trials, 1)
        began = time.process_time()
        result = lb.audit(scores, lb.Trials(member), claim=CLAIM, seed=0)
        assert time.process_time() - began < 5
        bounds.append(result.bound)
    assert 0.4 * truth < bounds[0] < bounds[1] < truth
    assert bounds[1] > 0.7 * truth


def test_a_result_is_a_lower_bound_with_its_words() -> None:
    rng = np.random.default_rng(0)
    member = rng.random(800) < 0.5
    result = lb.audit(rng.normal(size=800) + 3 * member, lb.Coins(member), claim=CLAIM, seed=0)
    assert result.kind == "lower_bound"
    assert 0.5 < result.bound < 4.5
    assert lb.AuditResult.from_json(result.to_json()) == result
    assert "zero-concentrated DP" in str(result)
    assert f"rho >= {math.floor(100 * result.bound) / 100:.2f}" in repr(result)
    assert result.check(parameter=0.9 * result.bound) == "refuted"
    assert result.check(parameter=1.01 * result.bound) == "not refuted"
    with pytest.raises(OptionError, match="implies no ε at any δ"):
        result.check(epsilon=1.0)


def test_a_claim_for_adding_one_is_four_times_one_for_replacing() -> None:
    rng = np.random.default_rng(0)
    member = rng.permutation(np.arange(2_000) < 1_000)
    result = lb.audit(rng.normal(size=2_000) + 3 * member, lb.RandomSplit(member), claim=CLAIM)
    quarter = result.bound / 4
    assert result.check(parameter=0.99 * quarter, relation="add_remove") == "refuted"
    assert result.check(parameter=1.01 * quarter, relation="add_remove") == "not refuted"
    assert result.check(parameter=0.99 * result.bound, relation="replace") == "refuted"
    with pytest.raises(OptionError, match="implies no ε at any δ"):
        result.check(epsilon=1.0, delta=1e-5, relation="add_remove")


def test_a_right_bracket_is_halved() -> None:
    """Fewer orders and halvings only ever allow more."""
    q = concentrated._level_log_odds(0.5, 0.5 * concentrated._RENYI_ORDERS)
    limits = 0.5 * concentrated._RENYI_ORDERS
    found = concentrated._power_log_odds_brackets(
        q, 0.5, limits, concentrated._RENYI_ORDERS, halvings=60
    )
    rough = concentrated._power_log_odds_brackets(
        q, 0.5, limits, concentrated._RENYI_ORDERS, halvings=8
    )
    assert np.all(rough[0] <= found[0])
    assert np.all(found[1] <= rough[1])
    assert np.all(found[1] - found[0] < 1e-9)


def test_the_truth_is_rejected_no_more_often_than_stated() -> None:
    """Coins on the border of ρ = 0.5: guesses of "member" among 400, in 3,000 games."""
    from validity.suite import most_errors

    rho, level = 0.5, 0.1
    power = 1 - float(CLAIM.attained(rho, "both").f(level))
    rng = np.random.default_rng(0)
    right = power / (power + level)
    guesses = round(200 * (power + level))
    counts = rng.binomial(guesses, right, size=3_000)
    curve = CLAIM.curve(rho, "member")
    rejected = {
        int(count): lb.stats.fdp_rejects(
            int(count), guesses, 400.0, tradeoff=curve, tau=0.05, one_sided=True
        )
        for count in np.unique(counts)
    }
    false = sum(rejected[int(count)] for count in counts)
    assert false <= most_errors(3_000, 0.05, 1)
    assert lb.stats.fdp_rejects(guesses, guesses, 400.0, tradeoff=curve, tau=0.05, one_sided=True)


def response(seed: int) -> lb.AuditResult:
    """Audit randomised response, which is exactly (2.15, 0)-DP."""
    rng = np.random.default_rng(seed)
    member = rng.random(2000) < 0.5
    kept = rng.random(2000) < 1 / (1 + math.exp(-2.15))
    scores = np.where(kept, member, ~member).astype(float)
    return lb.audit(scores, lb.Coins(member), claim=CLAIM, seed=seed)


REFUSED: dict[str, Callable[[lb.AuditResult], object]] = {
    "epsilon": lambda one: one.epsilon(1e-5),
    "check": lambda one: one.check(epsilon=2.15, delta=1e-5),
    "with_check": lambda one: one.with_check(epsilon=2.15, delta=1e-5),
    "against": lambda one: one.against(epsilon=2.15, delta=1e-5, relation="add_remove"),
    "gate": lambda one: assert_not_refuted(one, epsilon=2.15, delta=1e-5),
}


@pytest.mark.parametrize("seed", range(2))
def test_a_bound_on_rho_implies_no_epsilon(seed: int) -> None:
    """Its ρ is proved; an ε from there would be above the true 2.15."""
    found = response(seed)
    # the largest D_a / a of its two coins
    low = 1 / (1 + math.exp(2.15))
    true = float(np.max(divergence(1 - low, low) / ORDERS))
    assert 0.1 < found.bound <= true
    assert found.kind == "lower_bound"
    for ask in REFUSED.values():
        with pytest.raises(OptionError, match=r"implies no ε at any δ: state rho, or audit with"):
            ask(found)
    assert found.implied() is None
    assert found.rejected is None
    assert found.rejectable is None
    assert found.check(parameter=true) != "refuted"
    assert found.check(parameter=found.bound / 2) == "refuted"


def test_a_result_on_rho_shows_no_epsilon(tmp_path: Path) -> None:
    found = response(0).with_check(parameter=0.01)
    said = found.summary()
    shown = f"{said} {found} {found!r} {said.formula} {said.metrics} {said.levels} {said.answer}"
    shown += " ".join(text for one in said.sections for text in one.paragraphs)
    shown += " ".join(one.statement for one in found.assumptions)
    shown += " ".join(f"{one.title} {one.caption}" for one in said.figures)
    assert "ε" not in shown
    assert "nan" not in shown.lower().split()
    assert "δ" not in str(said)
    assert f"ρ < {math.floor(100 * found.bound) / 100:.2f}" in said.headline  # noqa: RUF001 (Greek)
    assert not {"epsilon", "epsilon_ceiling", "delta"} & said.numbers.keys()
    assert said.numbers["bound"] == found.bound
    assert set(said.units) == {"bound"}
    assert not said.plainly
    assert "family" not in [one.name.split()[0] for one in found.assumptions]
    # stored, and read again
    found.to_json(tmp_path / "result.json")
    again = lb.load(tmp_path / "result.json")
    assert again == found
    assert str(again.summary()) == str(said)
    # a page says why there is none, and nothing else about it
    found.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    visible = re.sub(r"<(script|style|svg).*?</\1>", "", page, flags=re.DOTALL)
    assert visible.count("ε") == 1
    assert "A bound on ρ implies no ε at any δ" in visible  # noqa: RUF001 (Greek)
    told = json.loads(brief(found))
    assert "epsilon" not in told
    assert told["bound_units"] == "ρ of zero-concentrated DP"  # noqa: RUF001 (Greek)


def test_the_model_card_and_remarks_have_rho() -> None:
    found = response(0)
    metrics = str(model_index(found, model="coins", dataset="2,000 coins"))
    assert "rho_lower_bound" in metrics
    assert "ε" not in metrics
    assert "epsilon" not in metrics
