"""Zero-Run bounds exceed the truth at most as often as they may, and the traps exceed it oftener.

Populations are shifted by a known amount; the mechanisms are as leaky as their claim allows. The
quick form runs with the other tests, the long one with `make validity`.
"""

import json
import math
import zlib
from typing import Any, Literal

import numpy as np
import pytest
from scipy import stats as scipy_stats

import leakbound as lb
from leakbound import stats
from leakbound.propensity import LogisticPropensity

BETA = 0.1
FAMILY_WISE = 1e-3
"""Probability that any of these tests fails by bad luck."""
M, R, EPSILON, DELTA, RARE, MU = 200, 60, 1.0, 1e-3, 1e-6, 1.0

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-np.asarray(x)))


def people(rng: np.random.Generator, shift: float, m: int = M) -> tuple[np.ndarray, np.ndarray]:
    """Log-odds of membership, and memberships."""
    odds = shift * rng.normal(size=m)
    return odds, rng.random(m) < sigmoid(odds)


def response(rng: np.random.Generator, member: np.ndarray, failure: float = 0.0) -> np.ndarray:
    """Reports that are ε-DP, but for failures that tell the truth: as leaky as (ε, δ) allows."""
    told = rng.random(member.size) < np.where(
        rng.random(member.size) < failure, 1.0, sigmoid(EPSILON)
    )
    return np.where(member == told, 1.0, -1.0) * (1 + rng.random(member.size))


def pure(rng: np.random.Generator, shift: float) -> Arrays:
    odds, member = people(rng, shift)
    return response(rng, member) + odds, member, odds


def approximate(rng: np.random.Generator, shift: float) -> Arrays:
    odds, member = people(rng, shift)
    return response(rng, member, DELTA) + odds, member, odds


def rarely(rng: np.random.Generator, shift: float) -> Arrays:
    odds, member = people(rng, shift)
    return response(rng, member, RARE) + odds, member, odds


def gaussian(rng: np.random.Generator, shift: float) -> Arrays:
    odds, member = people(rng, shift)
    return MU * member + rng.normal(size=member.size) + odds, member, odds


def nothing(rng: np.random.Generator, shift: float) -> Arrays:
    """A model that saw no member; its scores know the features."""
    odds, member = people(rng, shift)
    return odds + 0.5 * rng.normal(size=member.size), member, odds


GAMES: dict[str, tuple[Any, float]] = {
    "pure": (pure, EPSILON),
    "approximate": (approximate, EPSILON),
    "rarely approximate": (rarely, EPSILON),
    "gaussian": (gaussian, MU),
    "nothing": (nothing, 0.0),
}
CLAIMS: dict[str, Any] = {
    "pure": lb.PureDP(),
    "approximate": lb.ApproxDP(delta=DELTA),
    "rarely approximate": lb.ApproxDP(delta=RARE),
    "gaussian": lb.GaussianDP(),
}
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "pure": [
        {"correction": "match"},
        {"correction": "match", "cuts": lb.Fixed(R), "derandomize": True},
        {"correction": "poisson_binomial"},
        {"correction": "poisson_binomial", "sides": "member"},
        {"correction": "poisson_binomial", "variant": "absolute", "cuts": lb.Fixed(R)},
        {"correction": "tamper", "cuts": lb.Fixed(R)},
        {"correction": "tamper", "cuts": lb.Fixed(R), "variant": "paper", "adversary": "raw"},
        {"correction": "tamper", "cuts": lb.Fixed(R), "derandomize": True},
        {"correction": "composition"},
    ],
    "approximate": [
        {"correction": "match", "cuts": lb.Fixed(R)},
        {"correction": "match", "cuts": lb.Fixed(R), "sides": "member"},
        {"correction": "tamper", "cuts": lb.Fixed(R)},
        {"correction": "tamper", "cuts": lb.Fixed(R), "variant": "paper"},
        {"correction": "composition", "cuts": lb.Fixed(R)},
    ],
    "rarely approximate": [{"variant": "untampered", "cuts": lb.Fixed(R), "adversary": "raw"}],
    "gaussian": [
        {"correction": "match", "cuts": lb.Fixed(R)},
        {"correction": "match", "cuts": lb.Fixed(R), "sides": "member"},
        {"correction": "tamper", "cuts": lb.Fixed(R)},
        {"correction": "tamper", "cuts": lb.Fixed(R), "variant": "symmetric"},
        {"correction": "tamper", "cuts": lb.Fixed(R), "variant": "paper", "sides": "member"},
        {"correction": "tamper", "cuts": lb.Fixed(R), "adversary": "paper_aware"},
        {"correction": "composition", "cuts": lb.Fixed(R)},
    ],
}
Case = tuple[str, str, dict[str, Any]]
CASES: list[Case] = [
    (claim, game, options)
    for claim, listed in OPTIONS.items()
    for options in listed
    for game in (claim, "nothing")
]
SHIFTS = (0.0, 0.5, 1.0, 1.5, 2.0)


def name(case: Case) -> str:
    words = [case[0], case[1], *(str(value) for value in case[2].values())]
    return "-".join(words)


def allowed(repetitions: int, tests: int, beta: float = BETA) -> int:
    return int(scipy_stats.binom.isf(FAMILY_WISE / tests, repetitions, beta))


def check(case: Case, repetitions: int, shifts: tuple[float, ...]) -> None:
    claim, game, options = case
    draw, truth = GAMES[game]
    for shift in shifts:
        rng = np.random.default_rng(zlib.crc32(repr((case, shift, repetitions)).encode()))
        errors = 0
        for seed in range(repetitions):
            scores, member, odds = draw(rng, shift)
            result = lb.audit_zero_run(
                scores,
                member,
                sigmoid(odds),
                claim=CLAIMS[claim],
                confidence=1 - BETA,
                seed=seed,
                **options,
            )
            errors += result.bound > truth
        assert errors <= allowed(repetitions, len(CASES) * len(SHIFTS))


every_case = pytest.mark.parametrize("case", CASES, ids=name)


@every_case
def test_oracle_propensities(case: Case) -> None:
    check(case, 150, (1.0,))


@pytest.mark.validity
@every_case
def test_oracle_propensities_at_length(case: Case) -> None:
    check(case, 2000, SHIFTS)


def learnt(
    rng: np.random.Generator, m: int, replicates: int, options: dict[str, Any], truth: float
) -> bool:
    """Whether an audit with propensities learnt from as many other examples claims too much."""
    slopes = np.array([0.8, -0.5, 0.3])
    features = rng.normal(size=(2 * m, 3))
    member = rng.random(2 * m) < sigmoid(features @ slopes)
    fit = LogisticPropensity().fit(features[m:], member[m:])
    here, audited = features[:m], member[:m]
    noise = rng.normal(size=m)
    scores = here @ slopes + (truth * audited + noise if truth else noise / 2)
    draws = fit.bootstrap(here, K=replicates, seed=int(rng.integers(2**31)), progress=False)
    result = lb.audit_zero_run(
        scores,
        audited,
        sigmoid(draws),
        confidence=1 - BETA,
        seed=int(rng.integers(2**31)),
        **options,
    )
    return bool(result.bound > truth)


LEARNT: list[dict[str, Any]] = [
    {"correction": "match", "cuts": lb.Fixed(R)},
    {"correction": "tamper", "cuts": lb.Fixed(R)},
    {"claim": lb.PureDP(), "correction": "poisson_binomial", "cuts": lb.Fixed(R)},
]


@pytest.mark.parametrize("options", LEARNT, ids=lambda options: options["correction"])
def test_estimated_propensities(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(11)
    errors = sum(learnt(rng, M, 79, options, 0.0) for _ in range(200))
    assert errors <= allowed(200, len(LEARNT))


@pytest.mark.validity
@pytest.mark.parametrize(
    ("options", "truth"),
    [(options, 0.0) for options in LEARNT] + [(options, MU) for options in LEARNT[:2]],
    ids=str,
)
def test_estimated_propensities_at_length(options: dict[str, Any], truth: float) -> None:
    rng = np.random.default_rng(12)
    errors = sum(learnt(rng, 2 * M, 600, options, truth) for _ in range(2000))
    assert errors <= allowed(2000, 2 * len(LEARNT))


class TestTraps:
    """What the audits do not do, and why."""

    def test_redrawing_what_stands_for_every_epsilon(self) -> None:
        """The largest ε that any of 200 draws refutes exceeds the truth; one for all does not."""
        rng = np.random.default_rng(2)
        levels = np.linspace(0.0, 2.0, 200)
        false = {"redrawn": 0, "once": 0}
        for _ in range(100):
            odds, member = people(rng, 2.5)
            told = np.sign(response(rng, member))
            guesses = np.where(told * odds > 0, told, 0)  # right with log-odds ε + |λ|
            made, sign = np.count_nonzero(guesses), np.where(member, 1, -1)
            drawn = {"redrawn": rng.random((200, M)), "once": np.tile(rng.random(M), (200, 1))}
            for how, uniforms in drawn.items():
                refuted = np.zeros(200, dtype=bool)
                for i, u in enumerate(uniforms):
                    left = stats.tamper(guesses, odds, u, epsilon=float(levels[i]))
                    p = stats.clopper_pearson(int((left == sign).sum()), made, beta=BETA)
                    refuted[i] = p > sigmoid(levels[i])
                first = levels[np.argmin(refuted)]  # the least that is not refuted
                last = levels[refuted].max() if refuted.any() else 0.0
                false[how] += (last if how == "redrawn" else first) > EPSILON
        assert scipy_stats.binom.sf(false["redrawn"] - 1, 100, BETA) < 1e-6
        assert false["once"] <= allowed(100, 1)

    def test_propensities_that_are_too_steep(self) -> None:
        """Signed odds trust λ where it speaks against a guess; absolute ones do not."""
        rng = np.random.default_rng(3)
        false: dict[Literal["directional", "absolute"], int] = {"directional": 0, "absolute": 0}
        for seed in range(60):
            odds, member = people(rng, 1.0)
            for variant in false:
                result = lb.audit_zero_run(
                    -odds,
                    member,
                    sigmoid(2.5 * odds),
                    claim=lb.PureDP(),
                    adversary="raw",
                    variant=variant,
                    confidence=1 - BETA,
                    seed=seed,
                )
                false[variant] += result.bound > 0
        assert false["directional"] > 50
        assert false["absolute"] <= allowed(60, 1)

    def test_subsets_of_fixed_pools_replace_an_example(self) -> None:
        """One member and one non-member, of which a coin picks the one that is audited.

        The other stays where it is: what a correct guess proves is the difference between training
        on one and on the other. Under ε-DP for adding or removing it is right with probability
        1 - e^-ε/2, since both are ε from training on neither.
        """
        rng = np.random.default_rng(4)
        likely = 1 - math.exp(-EPSILON) / 2
        assert likely > sigmoid(EPSILON)
        member = rng.random(2000) < 0.5
        right = rng.random(2000) < likely
        scores = np.where(member == right, 1, -1) * (1 + rng.random(2000))
        result = lb.audit_zero_run(scores, member, np.full(2000, 0.5), claim=lb.PureDP())
        assert EPSILON < result.bound < 2 * EPSILON

    def test_fixed_numbers_make_guesses_dependent(self, golden: Any) -> None:
        stored = json.loads((golden / "zero_run.json").read_text(encoding="utf-8"))["cases"]
        listed = next(c for c in stored if c["name"] == "fixed_size_counterexample")["output"]
        both = [np.array([1, -1]), np.array([-1, 1])]
        assert np.mean([(s == [1, -1]).all() for s in both]) == listed["P(W>=2)"] > 0.25
        # of 1,000 examples, 500 guessed members: W = 2 · (members among the guessed)
        found = scipy_stats.hypergeom.sf(265, 1000, 500, 500)
        assert found == pytest.approx(listed["m=1000,r=1000,k+=500: P(W>=532)"], rel=1e-9)
        assert found > stats.binomial_tail(532, 1000, 0.5) == pytest.approx(listed["binom"])

    def test_an_insufficient_model_is_seen_by_the_sceptic(self) -> None:
        """Matching with constant propensities claims leakage of a model that saw nothing."""
        rng = np.random.default_rng(5)
        odds = 2.0 * rng.normal(size=2000)
        member = rng.random(2000) < sigmoid(odds)
        scores = odds + 0.5 * rng.normal(size=2000)
        options: dict[str, Any] = {"features": odds[:, None], "adversary": "raw"}
        given = scores, member, np.full(2000, 0.5)
        shown = lb.audit_zero_run(*given, release_refuted=True, **options)
        assert shown.bound > 0.5
        assert shown.falsification is not None
        assert shown.falsification.p_value < 1e-6
        assert lb.audit_zero_run(*given, **options).bound == 0.0
