"""How often a bound is above the truth: at most as often as its confidence allows.

Small games are enumerated, so their error is known exactly. Larger ones are simulated at the
boundary of the claim, where every guess is right with the largest probability that the claim
allows, and the number of errors is judged by an exact binomial test. The quick form runs with the
other tests, the long form (`make validity`) has enough repetitions to see an excess of a percent.
"""

import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import pytest
from scipy import stats as scipy_stats

import leakbound as lb
from leakbound import stats

Sides = Literal["both", "member"]
SIDES: tuple[Sides, ...] = ("both", "member")
TRUTHS = (0.5, 0.73, 0.95, 0.993)
FAMILY_WISE = 1e-3
"""Probability that any of the simulated tests fails by bad luck."""


def logit(p: float) -> float:
    return math.log(p) - math.log1p(-p)


def policies(m: int) -> dict[str, Any]:
    return {
        "kl": lb.KLScan(),
        "kl-late": lb.KLScan(min_guesses=m // 4, kappa=3.0),
        "equal-level": lb.EqualLevelScan(),
        "union": lb.UnionBound(),
        "union-geometric": lb.UnionBound(grid="geometric"),
        "union-hoeffding": lb.UnionBound(tail="hoeffding"),
        "fixed": lb.Fixed(m // 2),
        "split": lb.Split(),
        "ville": lb.VilleMixture(),
    }


VALID = tuple(policies(100))


class Null:
    """Every guess is right with probability p, whatever the scores: nothing leaks beyond that."""

    def __init__(self, m: int, p: float, sides: Sides, *, tied: bool) -> None:
        self.m, self.p, self.sides, self.tied = m, p, sides, tied

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        size = np.ceil(6 * rng.random(self.m)) if self.tied else 1 - rng.random(self.m)
        if self.sides == "member":
            return size, rng.random(self.m) < self.p
        upper = rng.permutation(self.m) < self.m // 2
        return np.where(upper, size, -size), upper == (rng.random(self.m) < self.p)


def rng_of(*key: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def false_claims(game: Null, cuts: Any, confidence: float, repetitions: int, key: object) -> int:
    """Count the audits that claim more than the truth."""
    rng, truth = rng_of(key), logit(game.p)
    bounds = (
        lb.audit_one_run(
            *game.draw(rng), cuts=cuts, sides=game.sides, confidence=confidence, seed=seed
        ).bound
        for seed in range(repetitions)
    )
    return sum(bound > truth for bound in bounds)


def allowed(repetitions: int, beta: float, tests: int) -> int:
    """The most errors that an exact binomial test accepts at its share of the family's level."""
    return int(scipy_stats.binom.isf(FAMILY_WISE / tests, repetitions, beta))


Case = tuple[str, Sides, float, str]
CASES: list[Case] = [
    (name, sides, p, ties)
    for name in VALID
    for sides in SIDES
    for p, ties in [*((p, "distinct") for p in TRUTHS), (0.73, "tied")]
]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))


def length(p: float) -> int:
    """Examples enough for a bound above the truth to be within reach of every policy."""
    return {0.5: 60, 0.73: 80, 0.95: 300, 0.993: 2000}[p]


def check_case(case: Case, repetitions: int) -> None:
    name, sides, p, ties = case
    game = Null(length(p), p, sides, tied=ties == "tied")
    errors = false_claims(game, policies(game.m)[name], 0.9, repetitions, (case, repetitions))
    assert errors <= allowed(repetitions, 0.1, len(CASES))


@every_case
def test_valid_policies_at_the_boundary(case: Case) -> None:
    check_case(case, repetitions=100 if case[2] == 0.993 else 300)


@pytest.mark.validity
@every_case
def test_valid_policies_at_the_boundary_at_length(case: Case) -> None:
    check_case(case, repetitions=20_000)


def memberships(m: int) -> np.ndarray:
    bits = np.arange(2**m)[:, None] >> np.arange(m)
    return (bits & 1).astype(bool)


SMALL = 9
SMALL_SCORES = {
    "distinct": np.arange(SMALL, 0.0, -1),
    "tied": np.array([5.0, 5, 4, 3, 3, 3, 2, 1, 1]),
}


def error_curve(cuts: Any, sides: Sides, scores: np.ndarray, truths: np.ndarray) -> np.ndarray:
    """Exact probability that the bound exceeds each truth, summed over all memberships."""
    everyone = memberships(SMALL)
    bounds = np.array(
        [
            lb.audit_one_run(scores, m, cuts=cuts, sides=sides, confidence=0.8, seed=3).bound
            for m in everyone
        ]
    )
    upper = np.full(SMALL, fill_value=True)
    if sides == "both":  # the tied-block end nearest to the middle parts the roles
        ends = np.flatnonzero(np.diff(scores)) + 1
        upper = np.arange(SMALL) < ends[np.argmin(np.abs(ends - SMALL / 2))]
    right = (everyone == upper).sum(axis=1)
    return np.array(
        [(p**right * (1 - p) ** (SMALL - right))[bounds > logit(p)].sum() for p in truths]
    )


@pytest.mark.parametrize("scores", list(SMALL_SCORES))
@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("name", VALID)
def test_exact_error_of_small_audits(name: str, sides: Sides, scores: str) -> None:
    truths = np.linspace(0.5, 0.95, 91)
    curve = error_curve(policies(SMALL)[name], sides, SMALL_SCORES[scores], truths)
    assert curve.max() <= 0.2 * (1 + 1e-9)


def test_the_scan_spends_what_it_is_given() -> None:
    curve = error_curve(lb.KLScan(), "member", SMALL_SCORES["distinct"], np.linspace(0.5, 0.8, 301))
    assert curve.max() > 0.95 * 0.2


def test_the_scan_errs_as_often_as_it_may() -> None:
    errors = false_claims(Null(400, 0.73, "member", tied=False), lb.KLScan(), 0.9, 1000, "exact")
    assert errors >= scipy_stats.binom.ppf(1e-4, 1000, 0.8 * 0.1)


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("p", TRUTHS)
def test_the_uncorrected_bound_is_wrong_too_often(sides: Sides, p: float) -> None:
    game = Null(length(p), p, sides, tied=False)
    errors = false_claims(game, lb.Uncorrected(), 0.9, 300, ("uncorrected", sides, p))
    assert scipy_stats.binom.sf(errors - 1, 300, 0.1) < 1e-6


def test_why_labels_must_not_order_ties() -> None:
    """The trap: sort by score with members first among equals, and noise looks like leakage."""
    rng = rng_of("ties")
    claims = {"trap": 0, "audit": 0}
    for _ in range(200):
        member = rng.random(200) < 0.5
        scores = rng.integers(0, 4, size=200).astype(float)
        path = member[np.lexsort((~member, -scores))]
        claims["trap"] += stats.kl_scan(path, beta=0.05).logit > 0
        claims["audit"] += lb.audit_one_run(scores, member, sides="member").bound > 0
    assert claims["trap"] == 200
    assert claims["audit"] <= allowed(200, 0.05, 1)


def test_why_members_must_be_drawn_by_coins() -> None:
    """With exactly half of six members, all six guesses are right in one of twenty draws."""
    scores = np.arange(6.0)

    def share(members: np.ndarray) -> float:
        claims = [
            lb.audit_one_run(scores, m, cuts=lb.Fixed(6), confidence=0.98).bound > 0
            for m in members
        ]
        return float(np.mean(claims))

    everyone = memberships(6)
    assert share(everyone) == 1 / 64 <= 0.02
    assert share(everyone[everyone.sum(axis=1) == 3]) == 1 / 20 > 0.02


def test_noise_gives_zero_quietly() -> None:
    rng = rng_of("noise")
    results = [lb.audit_one_run(rng.normal(size=300), rng.random(300) < 0.5) for _ in range(300)]
    claims = sum(result.bound > 0 for result in results)
    assert claims <= allowed(300, 0.05, 1)
    noisy = sum(bool(result.warnings) for result in results)
    assert noisy <= allowed(300, 0.01, 1)


def report_of(member: np.ndarray, p: float, rng: np.random.Generator) -> np.ndarray:
    """Scores whose upper side holds a member with probability p."""
    upper = member == (rng.random(member.size) < p)
    return np.where(upper, 1, -1) * rng.random(member.size)


PAIRS = [(0.5, 0.5), (0.5, 0.73), (0.6, 0.8), (0.8, 0.8), (0.73, 0.95)]
JOINT: dict[str, dict[str, Any]] = {
    "kl": {},
    "equal-level": {"cuts": lb.EqualLevelScan()},
    "union": {"cuts": lb.UnionBound()},
    "hoeffding": {"cuts": lb.UnionBound(), "tail": "hoeffding"},
    "fixed": {"cuts": lb.Fixed(50)},
    "split": {"cuts": lb.Split()},
    "ville": {"cuts": lb.VilleMixture()},
}
JOINT_CASES = [(name, c, a) for name in JOINT for c, a in PAIRS]
every_pair = pytest.mark.parametrize(("name", "baseline", "attack"), JOINT_CASES)


def panoramias(
    baseline: float, attack: float, repetitions: int, key: object, **options: Any
) -> Iterator[lb.PanoramiaResult]:
    """Audits where c and c + ε are exactly the log-odds of the two probabilities."""
    rng = rng_of(key)
    for seed in range(repetitions):
        member = rng.random(150) < 0.5
        scores = report_of(member, baseline, rng), report_of(member, attack, rng)
        yield lb.audit_panoramia(*scores, member, confidence=0.9, seed=seed, **options)


def check_pair(name: str, baseline: float, attack: float, repetitions: int) -> None:
    results = panoramias(baseline, attack, repetitions, (name, baseline, attack), **JOINT[name])
    errors = sum(
        result.c_lb > logit(baseline) or result.c_plus_epsilon_lb > logit(attack)
        for result in results
    )
    assert errors <= allowed(repetitions, 0.1, len(JOINT_CASES))


@every_pair
def test_both_bounds_hold_together(name: str, baseline: float, attack: float) -> None:
    check_pair(name, baseline, attack, 200)


@pytest.mark.validity
@every_pair
def test_both_bounds_hold_together_at_length(name: str, baseline: float, attack: float) -> None:
    check_pair(name, baseline, attack, 20_000)


LIMITED: list[tuple[dict[str, Any], Callable[[float], float]]] = [
    ({"real_nonmembers": True}, lambda total: total),
    ({"c_upper": logit(0.6)}, lambda total: total - logit(0.6)),
]


@pytest.mark.parametrize(("options", "epsilon"), LIMITED)
def test_lower_bounds_of_panoramia_hold(
    options: dict[str, Any], epsilon: Callable[[float], float]
) -> None:
    truth = epsilon(logit(0.73))
    results = panoramias(0.5, 0.73, 300, "limited", **options)
    errors = sum(result.bound > truth for result in results)
    assert errors <= allowed(300, 0.05, len(LIMITED))


def test_the_estimate_is_no_lower_bound() -> None:
    """A generator that the baseline cannot tell from data, and the attack can: ε̃ exceeds ε = 0."""
    results = list(panoramias(0.5, 0.8, 100, "estimate"))  # c = c + ε = logit 0.8, ε = 0
    assert all(result.kind == "estimate" for result in results)
    assert sum(result.bound > 0 for result in results) > 90
