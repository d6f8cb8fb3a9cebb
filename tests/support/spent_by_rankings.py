"""What audits of rankings, trials, streams and designs spend of a level, by laws of their counts.

Each check computes its limit or its tail from the binomial law alone, at the part of the level that
the union over what is tested leaves: numbers here are written out, and come from no table.
"""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

import leakbound as lb
from leakbound._base.streams import Purpose
from leakbound.audits.member_count import MemberCount
from leakbound.audits.pairs import Pairs, Units
from leakbound.audits.split_challenge import bets, challenge
from leakbound.errors import DesignError
from leakbound.propensity import falsification
from two_sceptics import Follower

__all__ = ["CHECKS", "limit", "near"]

BETA = 0.1
"""The probability of error of each audit."""
SURE = 1 - BETA
MEMBER = np.random.default_rng(3).random(200) < 0.5


def limit(correct: int, guesses: int, level: float) -> float:
    """Return the log-odds of the Clopper-Pearson limit, from the quantile of a beta law."""
    p = stats.beta.ppf(level, correct, guesses - correct + 1)
    return float(math.log(p / (1 - p)))


def near(value: float, other: float, rel: float = 1e-6) -> None:
    assert value == pytest.approx(other, rel=rel)


def leaking(shift: float, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=MEMBER.size) + shift * MEMBER


def audited(scores: Any, **options: Any) -> lb.AuditResult:
    sides = options.pop("sides", "member")
    result: lb.AuditResult = lb.audit(
        scores, lb.Coins(MEMBER), confidence=SURE, sides=sides, seed=0, **options
    )
    return result


def right_among_top(scores: NDArray[np.float64], guesses: int) -> int:
    return int(MEMBER[np.argsort(-scores)[:guesses]].sum())


def two_attacks_have_half_each() -> None:
    scores = {"strong": leaking(2.0), "weak": leaking(1.0)}
    found = audited(scores, cuts=lb.Fixed(60))
    near(found.bound, limit(right_among_top(scores["strong"], 60), 60, BETA / 2))


def two_subgroups_have_half_each() -> None:
    scores = leaking(2.0)
    by = np.arange(MEMBER.size) % 2
    found = lb.audit(
        scores,
        lb.Coins(MEMBER),
        by=by,
        cuts=lb.Fixed(30),
        confidence=SURE,
        sides="member",
        seed=0,
    )
    for label, one in found.items():
        rows = by == label
        order = np.argsort(-scores[rows])[:30]
        right = int(MEMBER[rows][order].sum())
        near(one.bound, limit(right, 30, BETA / 2))


def tests_of_a_second_look_have_their_parts() -> None:
    found = audited(leaking(2.5), sides="auto")
    parts: Any = found.options["parts"]
    first, look, scan = parts
    near(first["bound"], limit(first["correct"], first["guesses"], 0.9 * BETA))
    near(look["bound"], limit(look["correct"], look["guesses"], 0.05 * BETA))
    near(first["level"] + look["level"] + scan["level"], BETA)


def three_paths_have_a_third_each() -> None:
    scores = leaking(2.0)
    down = np.argsort(-scores)
    top, bottom = int(MEMBER[down[:40]].sum()), int((~MEMBER[down[-40:]]).sum())
    both = int(MEMBER[down[:20]].sum()) + int((~MEMBER[down[-20:]]).sum())
    most = max(top, bottom, both)
    found = audited(scores, cuts=lb.UnionBound(grid=[40]), sides="both")
    near(found.bound, limit(most, 40, BETA / 3))


def two_thresholds_have_half_each() -> None:
    scores = leaking(2.0)
    limits = [limit(right_among_top(scores, n), n, BETA / 2) for n in (30, 80)]
    near(audited(scores, cuts=lb.UnionBound(grid=[30, 80])).bound, max(limits))


def two_thresholds_of_a_family_have_half_each() -> None:
    scores, claim = leaking(2.0), lb.GaussianDP()
    limits = [
        claim.lower_bound(
            right_among_top(scores, n), n, 200, BETA / 2, test="tight", one_sided=True
        )
        for n in (30, 80)
    ]
    near(audited(scores, cuts=lb.UnionBound(grid=[30, 80]), claim=claim).bound, max(limits), 1e-4)


def counts_and_failures_have_the_whole_together() -> None:
    """With T and a guess's failures at the bound: one of both has all of its part, none has more.

    κ = (1 - φ) β bounds the binomial tail T, and δ (1 - κ) m T / (v P(W = v)) ≤ φ β what failures
    add. At a small δ the first decides, at a large one the second.
    """
    for delta, deciding in ((1e-7, 0), (1e-2, 1)):
        claim = lb.ApproxDP(delta=delta)
        found = audited(leaking(1.0), claim=claim, cuts=lb.OutsideIn(), sides="both")
        told: Any = found.options["outside_in"]
        kappa, failing = (1 - told["failures"]) * BETA, told["failures"] * BETA
        law = stats.binom(found.guesses, 1 / (1 + math.exp(-found.bound)))
        tail = float(law.sf(found.correct - 1))
        added = delta * (1 - kappa) * 200 * tail / (found.correct * law.pmf(found.correct))
        spent = [tail / kappa, float(added) / failing]
        assert int(np.argmax(spent)) == deciding
        near(max(spent), 1.0)


def two_lists_have_half_of_the_rate_each() -> None:
    """With strong scores the list is the longest whose estimated share is half of 10 %."""
    scores = leaking(3.0)
    member = MEMBER[np.argsort(-scores)]
    estimate = (1 + np.cumsum(~member)) / np.maximum(1, np.cumsum(member))
    longest = int(np.flatnonzero(estimate <= 0.1 / 2)[-1]) + 1
    assert longest < int(np.flatnonzero(estimate <= 0.1)[-1]) + 1
    found = audited({"strong": scores, "weak": leaking(0.0)}, sides="auto")
    assert found.exposed is not None
    assert found.exposed.rows.size == int(member[:longest].sum())


def _risks() -> Any:
    """Audit a table of noisy copies by two attacks: all of 60 pairs are guessed right."""
    table = np.random.default_rng(12).normal(size=(120, 4))
    how: dict[str, Any] = {"attacks": ["singling_out", "linkability"], "challenge": False}
    members, others = table[:60], table[60:]
    return lb.audit_synthetic(members, others, members + 1e-3, confidence=SURE, seed=0, **how).risks


def counts_of_two_risks_have_a_quarter_each() -> None:
    """With w right guesses and no wrong one, the evidence is the mean of (2p)^w, an integral."""
    means = [integrate.quad(lambda t, w: (2 - t**2) ** w, 0, 1, args=(w,))[0] for w in range(60)]
    right = int(np.flatnonzero(np.less(means, 4 / BETA))[-1])
    for _, risk in _risks():
        assert (risk.surely_seen_from, risk.certified) == (right + 1, 60 - right)


def limits_of_two_risks_have_a_quarter_each() -> None:
    for _, risk in _risks():
        hits = round(60 * risk.control_rate)
        near(risk.control_rate_upper, float(stats.beta.isf(BETA / 4, hits + 1, 60 - hits)), 1e-9)


def numbers_of_failures_have_the_whole_on_average() -> None:
    """Levels of all numbers of trials that fail, 1 beyond those told, are 95 % of β on average."""
    claim = lb.ApproxDP(delta=0.01)
    found = lb.audit(leaking(2.0), lb.Trials(MEMBER), claim=claim, confidence=SURE, seed=0)
    first: Any = found.options["parts"]
    told: Any = found.options["outside_in"]
    law, levels, start = stats.binom(200, 0.01), np.ones(201), 0
    for last, level in told["failures"]:
        levels[start : last + 1] = level
        start = last + 1
    near(float(law.pmf(np.arange(201)) @ levels), 0.95 * BETA)
    guesses, correct = first[0]["guesses"], first[0]["correct"]
    limits = [limit(correct - k, guesses - k, level) for k, level in told["failures"]]
    near(first[0]["bound"], min(limits))


def fixed_runs_have_the_chance_that_they_suffice() -> None:
    """Binomial coins ask for more runs of a kind than there are in the other cases."""
    design = lb.Trials(MEMBER, fixed=True)
    found = lb.audit(leaking(2.0), design, cuts=lb.OutsideIn(), confidence=SURE, seed=0)
    kinds = [int(MEMBER.sum()), int((~MEMBER).sum())]
    suffice = 1 - sum(float(stats.binom.sf(kind, found.m, 0.5)) for kind in kinds)
    assert 0.9 < suffice < 1
    near(found.bound, limit(found.correct, found.guesses, suffice * BETA))


def sequences_of_a_stream_have_the_whole_on_average() -> None:
    """At the bound, likelihood ratios averaged over larger probabilities have the mean 1/β."""
    stream = lb.Stream(confidence=SURE).update(leaking(2.5), MEMBER)
    p, ratios = 1 / (1 + math.exp(-stream.bound)), []
    for guesses, right in stream._counts.T:
        wrong = guesses - right
        above = stats.beta(right + 1, wrong + 1)
        whole = math.lgamma(right + 1) + math.lgamma(wrong + 1) - math.lgamma(guesses + 2)
        log = whole + above.logsf(p) - right * math.log(p) - (wrong + 1) * math.log(1 - p)
        ratios.append(math.exp(log) if right > p * guesses else 0.0)
    near(float(np.mean(ratios)), 1 / BETA)


def bets_have_the_whole_on_average() -> None:
    """What bets have at the bound is 1/β on average, from what each right and wrong guess pays."""
    claim = lb.GaussianDP()
    stream = lb.Stream(claim=claim, confidence=SURE).update(leaking(2.5), MEMBER)
    mu, bets = stream.bound, stream._bets
    left = bets.log_wealth(mu, 200, stream._counts, bets.interval_of(mu))
    near(float(np.exp(left).mean()), 1 / BETA, 1e-2)


def both_sides_of_a_number_have_half_each() -> None:
    """By enumeration: fair coins give a p-value of p or less with the probability p, exactly."""
    numbers = np.arange(31)
    p_values = np.exp([MemberCount.of_coins(number, 30).log_p for number in numbers.tolist()])
    chances = stats.binom.pmf(numbers, 30, 0.5)
    spent = [float(chances[p_values <= p * (1 + 1e-9)].sum()) / p for p in p_values]
    near(max(spent), 1.0)
    prior = np.full(200, 0.3)
    near(
        MemberCount.of_coins(90, 200, prior).log_p, math.log(2 * stats.binom.sf(89, 200, prior[0]))
    )


def candidates_have_equal_parts() -> None:
    chosen = np.repeat([0, 1, 2], [70, 30, 20])
    tail = stats.binom.sf(69, 120, 1 / 3)
    near(MemberCount.of_choices(chosen, 3).log_p, math.log(3 * 2 * tail))


def a_reference_is_refused_by_twice_the_smaller_tail() -> None:
    """Of records held, all coins fair, the tail of the members is between 1e-6 / 2 and 1e-6."""
    inside, outside = 44, 9
    assert 0.5e-6 < stats.binom.sf(inside - 1, inside + outside, 0.5) < 1e-6
    table = np.random.default_rng(9).normal(size=(400, 2))
    held = np.concatenate([table[:inside], table[100 : 100 + outside], table[200:300]])
    parts: Any = {"members": table[:100], "nonmembers": table[100:200], "reference": held}
    try:
        lb.audit_synthetic(**parts, synthetic=table[300:], attacks="nearest_synthetic", seed=0)
    except DesignError as error:
        raise AssertionError("p is above 1e-6") from error


def _fisher(tails: list[float]) -> float:
    """Return the p-value of tails of independent tests, by the law of a sum of exponentials."""
    return float(stats.chi2.sf(-2 * np.log(tails).sum(), 2 * len(tails)))


def two_sceptics_have_half_each() -> None:
    """Both guess as a column says: the tails of the better one are those of coins."""
    rng = np.random.default_rng(5)
    member, features = rng.random(400) < 0.5, rng.normal(size=(400, 2))
    features[:, 0] += 0.4 * member
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(falsification, "default_sceptics", Follower.two)
        found = falsification.falsify(np.zeros(400), features, member, seed=1)
    order = Purpose.SCEPTIC_PARTS.rng(1).permutation(np.arange(400))
    best = 1.0
    for column in range(2):
        right = (features[order, column] > 0) == member[order]
        tails = [stats.binom.sf(part.sum() - 1, part.size, 0.5) for part in np.split(right, 5)[1:]]
        best = min(best, _fisher(tails))
    near(found.p_value, 2 * best)
    assert found.p_value < 0.5


def two_challengers_have_a_twentieth_each() -> None:
    """One follows a column that is often right, the other one of noise: all pairs are guessed."""
    pairs, rng = 60, np.random.default_rng(6)
    member = rng.permutation(np.arange(2 * pairs) < pairs)
    drawn = Pairs.drawn(Units.of(member, None, None, "mean"), 2)
    features = np.empty((2 * pairs, 2))
    features[drawn.members] = np.where(rng.random((pairs, 2)) < [0.85, 0.5], 1.0, -1.0)
    features[drawn.others] = -features[drawn.members]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(falsification, "default_sceptics", Follower.two)
        found = bets(drawn, features, 2)
    order = Purpose.SPLIT_PARTS.rng(2).permutation(pairs)
    best = 1.0
    for column in range(2):
        right = (features[drawn.members, column] > 0)[order]
        tails = [stats.binom.sf(part.sum() - 1, part.size, 0.5) for part in np.split(right, 5)[1:]]
        best = min(best, _fisher(tails))
    near(found.p_value, 2 * best / 0.1)
    assert found.p_value < 0.5


def _seen_by(view: str, features: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Return the p-value of a view of 200 rows, the first half of which are members."""
    units = Units.of(np.arange(200) < 100, None, None, "mean")
    found = challenge(Pairs.drawn(units, 0), units, features, 0, labels=labels)
    return {one.view: one.p_value for one in found.findings}[view]


def _no_draw_has_three_tenths(view: str, features: NDArray[np.float64]) -> None:
    """What no draw reaches has the smallest p-value, one over draws and the real one."""
    labels = np.random.default_rng(0).integers(0, 2, 200)
    labels[:100] = features[:100, 0] > 0  # those of members can be foreseen
    near(_seen_by(view, features, labels), 1 / 20_000 / 0.3)


def closest_pairs_have_three_tenths() -> None:
    """Each row has a double in the same part."""
    twice = np.repeat(np.random.default_rng(1).normal(size=(100, 3)), 2, axis=0)
    _no_draw_has_three_tenths("closest pairs", twice)


def usual_rows_have_three_tenths() -> None:
    """Numbers of others are three times as large."""
    rows = np.random.default_rng(2).normal(size=(200, 3)) * np.repeat([[1], [3]], 100, axis=0)
    _no_draw_has_three_tenths("usual rows", rows)


def surprising_labels_have_three_tenths() -> None:
    """Labels of others are tossed."""
    rows = np.random.default_rng(3).normal(size=(200, 3))
    _no_draw_has_three_tenths("surprising labels", rows)


CHECKS = {
    "SUBGROUPS": two_subgroups_have_half_each,
    "ATTACKS": two_attacks_have_half_each,
    "PARTS": tests_of_a_second_look_have_their_parts,
    "PATHS": three_paths_have_a_third_each,
    "GRID": two_thresholds_have_half_each,
    "FAMILY_GRID": two_thresholds_of_a_family_have_half_each,
    "JOINT": counts_and_failures_have_the_whole_together,
    "EXPOSED": two_lists_have_half_of_the_rate_each,
    "RISK_COUNTS": counts_of_two_risks_have_a_quarter_each,
    "RISK_LIMITS": limits_of_two_risks_have_a_quarter_each,
    "ALLOWANCE": numbers_of_failures_have_the_whole_on_average,
    "FIXED_RUNS": fixed_runs_have_the_chance_that_they_suffice,
    "SEQUENCES": sequences_of_a_stream_have_the_whole_on_average,
    "BETS": bets_have_the_whole_on_average,
    "MEMBER_SIDES": both_sides_of_a_number_have_half_each,
    "CANDIDATES": candidates_have_equal_parts,
    "REFERENCE_SIDES": a_reference_is_refused_by_twice_the_smaller_tail,
    "SCEPTICS": two_sceptics_have_half_each,
    "CHALLENGERS": two_challengers_have_a_twentieth_each,
    "CLOSE_PAIRS": closest_pairs_have_three_tenths,
    "USUAL_ROWS": usual_rows_have_three_tenths,
    "LABELS": surprising_labels_have_three_tenths,
}
"""The exact check of each row of the table that is about these."""
