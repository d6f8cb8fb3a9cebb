"""Numbers of members that the declared design cannot give: no bound, or a contradicted one."""

import math
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from scipy import stats as scipy_stats

import leakbound as lb
from command_line import leakbound
from leakbound import errors
from leakbound._base.types import Correction
from leakbound.audits.member_count import DOUBTFUL, IMPOSSIBLE, MemberCount

RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=1000)
MOST = RNG.permutation(1000) < 800
FAIR = RNG.permutation(1000) < 500
DOUBTED = RNG.permutation(1000) < 560
IMPLAUSIBLE = pytest.raises(errors.DesignError, match="800 of 1,000 examples")


def status_of(result: Any, name: str) -> str:
    status: str = next(one.status for one in result.assumptions if one.name == name)
    return status


@pytest.mark.parametrize("examples", [1, 2, 20, 41, 300])
def test_p_values_are_twice_the_exact_tail(examples: int) -> None:
    for members in range(examples + 1):
        least = min(
            scipy_stats.binom.cdf(members, examples, 0.5),
            scipy_stats.binom.sf(members - 1, examples, 0.5),
        )
        fair = MemberCount.of_coins(members, examples)
        assert math.exp(fair.log_p) == pytest.approx(min(1.0, 2 * least), rel=1e-9)


def test_unequal_coins_are_summed_exactly() -> None:
    prior = RNG.uniform(0.05, 0.6, size=12)
    exact = np.ones(1)
    for chance in prior:
        exact = np.convolve(exact, [1 - chance, chance])
    for members in range(13):
        tail = exact[members:].sum() if members > prior.sum() else exact[: members + 1].sum()
        found = MemberCount.of_coins(members, 12, prior)
        assert math.exp(found.log_p) == pytest.approx(min(1.0, 2 * tail), rel=1e-9)
    log_odds = np.log(prior) - np.log1p(-prior)
    member = np.arange(12) < 11
    low, high = log_odds - 1, log_odds + 1
    point = MemberCount.of_propensities(member, log_odds, log_odds)
    assert point.log_p == pytest.approx(MemberCount.of_coins(11, 12, prior).log_p)
    assert MemberCount.of_propensities(member, low, high).log_p > point.log_p
    assert MemberCount.of_propensities(np.arange(12) < 4, low, high).log_p == 0


def test_noise_of_an_uneven_split_declared_as_coins_is_refused_by_every_audit() -> None:
    with IMPLAUSIBLE as caught:
        lb.audit(NOISE, lb.Coins(MOST))
    for words in ("500 ± 15.8", "prior=", "use ZeroRun", "RandomSplit"):
        assert words in str(caught.value)
    half, limits = np.full(1000, 0.5), (np.full(1000, 0.4), np.full(1000, 0.6))
    claims: list[Any] = [lb.ApproxDP(delta=1e-5), lb.GaussianDP()]
    audits: list[tuple[Any, Any, dict[str, Any]]] = [
        ({"a": NOISE, "b": -NOISE}, lb.Coins(MOST), {}),
        *((NOISE, lb.Coins(MOST), {"claim": claim}) for claim in claims),
        (NOISE, lb.Panoramia(MOST, baseline=NOISE), {}),
        (NOISE, lb.Panoramia(MOST, baseline=NOISE, real_nonmembers=True), {}),
        (NOISE, lb.ZeroRun(MOST, half, release_refuted=True), {}),
        (NOISE, lb.ZeroRun(MOST, limits, correction="tamper"), {}),
    ]
    audits += [
        (NOISE, lb.ZeroRun(MOST, half, correction=correction), {})
        for correction in get_args(Correction)
    ]
    for scores, design, options in audits:
        with IMPLAUSIBLE:
            lb.audit(scores, design, **options)


def test_a_few_examples_of_one_class_are_possible() -> None:
    """All 20 coins fall one way with probability 2e-6; all 21 do with less than 1e-6."""
    result = lb.audit(NOISE[:20], lb.Coins(np.ones(20, dtype=bool)))
    assert status_of(result, "independent fair coins") == "contradicted"
    assert lb.audit(NOISE[:5], lb.Coins(np.ones(5, dtype=bool))).warnings == (
        lb.audit(NOISE[:5], lb.Coins(np.arange(5) < 5)).warnings
    )
    for members in (np.ones(21, dtype=bool), np.zeros(21, dtype=bool)):
        with pytest.raises(errors.DesignError, match="of 21 examples are members"):
            lb.audit(NOISE[:21], lb.Coins(members))


def test_a_stream_counts_all_its_batches() -> None:
    stream = lb.Stream()
    stream.update(NOISE[:20], np.arange(20) < 14).update(NOISE[20:40], np.arange(20) < 14)
    assert status_of(stream.result(), "independent fair coins") == "declared"
    stream.update(NOISE[40:60], np.arange(20) < 18)
    assert status_of(stream.result(), "independent fair coins") == "contradicted"
    with pytest.raises(errors.DesignError, match="66 of 80"):
        stream.update(NOISE[60:80], np.arange(20) < 20)
    assert "no bound" in repr(stream)
    with pytest.raises(errors.DesignError):
        _ = stream.bound
    with pytest.raises(errors.DesignError):
        stream.result()
    with pytest.raises(errors.DesignError, match="66 of 80"):
        stream.update(NOISE[:60], np.arange(60) < 10)  # a later excess does not mend it


def test_doubtful_numbers_contradict_the_design_and_are_reported() -> None:
    """560 of 1,000: p = 1.6e-4, between the thresholds."""
    count = MemberCount.of_coins(560, 1000)
    assert IMPOSSIBLE < math.exp(count.log_p) < DOUBTFUL
    audits: list[tuple[Any, str]] = [
        (lb.audit(NOISE, lb.Coins(DOUBTED)), "independent fair coins"),
        (lb.audit(NOISE, lb.Panoramia(DOUBTED, baseline=NOISE)), "independent fair coins"),
        (lb.audit(NOISE, lb.ZeroRun(DOUBTED, np.full(1000, 0.5))), "propensities"),
    ]
    for result, name in audits:
        assert status_of(result, name) == "contradicted"
        assert sum("560 of 1,000" in text for text in result.warnings) == 1
        assert "560 of 1,000" in next(
            one.statement for one in result.assumptions if one.name == name
        )
    for honest in (
        lb.audit(NOISE, lb.Coins(FAIR)),
        lb.audit(NOISE, lb.Panoramia(FAIR, baseline=NOISE)),
    ):
        assert status_of(honest, "independent fair coins") == "declared"


def test_an_exact_half_taken_for_coins_names_the_random_split(tmp_path: Path) -> None:
    """Coins give one in 2.5 % of audits of 1,000; an equal split is the commonest file there is."""
    (said,) = lb.audit(NOISE, lb.Coins(FAIR)).warnings
    assert said.startswith("exactly half of the 1,000 examples are members")
    assert "use RandomSplit" in said
    assert "in 2.5 % of audits" in said
    counted = lb.Tally.of(NOISE, FAIR)
    assert said in lb.audit(counted, lb.Coins()).warnings
    np.savez(tmp_path / "scores.npz", member=FAIR, score=NOISE)
    answer = leakbound("coins", tmp_path / "scores.npz")
    assert "leakbound split" in answer.out


def test_an_exact_half_says_nothing_where_coins_are_known_or_examples_few() -> None:
    fair = next(
        plan
        for plan in (lb.InclusionPlan.create(1000, seed=seed) for seed in range(1000))
        if plan.member.sum() == 500
    )
    assert not lb.audit(NOISE, lb.Coins(fair)).warnings
    assert not lb.audit(NOISE, lb.RandomSplit(FAIR)).warnings
    assert not lb.audit(NOISE[:999], lb.Coins(FAIR[:999])).warnings
    for examples, warned in ((254, False), (256, True), (257, False), (10_000_000, True)):
        assert bool(MemberCount.of_coins(examples // 2, examples).halved()) == warned


def test_learnt_propensities_with_impossible_numbers_are_withheld_not_raised() -> None:
    """Estimates are never quite right: too many members refute them, and no declaration."""
    draws = RNG.uniform(0.45, 0.55, size=(60, 1000))
    result = lb.audit(NOISE + 3 * MOST, lb.ZeroRun(MOST, draws))
    assert result.withheld
    assert result.bound == 0
    assert status_of(result, "propensities") == "contradicted"
    released = lb.audit(NOISE + 3 * MOST, lb.ZeroRun(MOST, draws, release_refuted=True))
    assert released.bound > 0
    assert status_of(released, "propensities") == "contradicted"


def test_what_a_baseline_proves_contradicts_limits_on_c() -> None:
    baseline = NOISE + 2 * FAIR
    real = lb.audit(baseline, lb.Panoramia(FAIR, baseline=baseline, real_nonmembers=True))
    assert status_of(real, "real non-members") == "contradicted"
    proved = f"{math.floor(100 * real.baseline.bound) / 100:.2f}"
    assert real.baseline.bound > 1
    assert f"the baseline shows c ≥ {proved}; " in str(real)
    assert f"the baseline gives c >= {proved}, " in str(real)
    values = {one.name: one.value for one in real.summary().metrics}
    assert values["c at least"] == proved
    limited = lb.audit(baseline, lb.Panoramia(FAIR, baseline=baseline, c_upper=0.1))
    assert status_of(limited, "upper limit on c") == "contradicted"
    enough = lb.audit(baseline, lb.Panoramia(FAIR, baseline=baseline, c_upper=9.0))
    assert status_of(enough, "upper limit on c") == "declared"


def test_ten_million_coins_are_counted_exactly() -> None:
    count = MemberCount.of_coins(5_004_000, 10_000_000)
    assert 0.01 < math.exp(count.log_p) < 0.02
