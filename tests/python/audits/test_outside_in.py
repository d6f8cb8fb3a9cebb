"""The number of guesses chosen from labels, looked at from the outside in."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import leakbound as lb
import leakbound._core as _core
from leakbound import errors, simulate, stats
from leakbound._base.types import BoolArray, FloatArray, SidesChoice
from leakbound.audits.policies.joint import joint_policy
from leakbound.validity import most_errors

BETA = 0.1
M = 300
GAMES = [pytest.param(250, id="quick"), pytest.param(20_000, marks=pytest.mark.validity)]
APPROXIMATE = lb.ApproxDP(delta=1e-4)


def audit(game: Any, claim: Any, **more: Any) -> lb.AuditResult:
    options: dict[str, Any] = {"confidence": 1 - BETA, "cuts": lb.OutsideIn(), **more}
    result: lb.AuditResult = lb.audit_one_run(game.scores, game.member, claim=claim, **options)
    return result


@dataclass
class Played:
    """Scores and membership of a game."""

    scores: FloatArray
    member: BoolArray


def response(seed: int, epsilon: float, delta: float = 0.0) -> Played:
    """Randomised response about each example, or with probability δ the truth."""
    rng = np.random.default_rng([seed, 6])
    member = rng.random(M) < 0.5
    told = np.where(rng.random(M) < 1 / (1 + math.exp(-epsilon)), member, ~member)
    told = np.where(rng.random(M) < delta, member, told)
    return Played(np.where(told, 1.0, -1.0) + 1e-3 * rng.random(M), member)


@pytest.mark.parametrize("sides", ["both", "member"])
@pytest.mark.parametrize("games", GAMES)
@pytest.mark.parametrize("mu", [0.0, 1.0])
def test_gaussian_scores_keep_the_truth(mu: float, sides: SidesChoice, games: int) -> None:
    """At the boundary of Gaussian DP: each score is one of N(±μ/2, 1)."""
    wrong = 0
    for seed in range(games):
        game = simulate.gaussian(M, mu, seed=seed) if mu else simulate.null(M, seed=seed)
        wrong += audit(game, lb.GaussianDP(), sides=sides).bound > mu
    assert wrong <= most_errors(games, BETA, 12)


@lru_cache
def dp_sgd(sigma: float, sides: SidesChoice) -> lb.TradeOff:
    """The curve of 20 steps at a rate of .2, at the next noise on a grid that allows more."""
    return lb.SubsampledGaussianDP(sampling_rate=0.2, steps=20).curve(sigma, sides)


@pytest.mark.validity
@pytest.mark.parametrize("sides", ["both", "member"])
def test_subsampled_noise_keeps_the_truth(sides: SidesChoice) -> None:
    """At the boundary of DP-SGD: every example has its own 20 noisy samples of membership."""
    rate, steps, sigma, games = 0.2, 20, 1.0, 400
    claim = lb.TradeOffFamily(
        parameter="sigma",
        tradeoff=lambda noise: dp_sgd(math.floor(10 * noise + 1e-9) / 10, sides),
        bracket=(0.5, 8.0),
        increasing=False,
    )
    wrong = 0
    for seed in range(games):
        rng = np.random.default_rng([seed, 41])
        member = rng.random(M) < 0.5
        sampled = member[:, None] & (rng.random((M, steps)) < rate)
        seen = sampled + sigma * rng.normal(size=(M, steps))
        ratio = np.exp((2 * seen - 1) / (2 * sigma**2))
        scores = np.log1p(rate * (ratio - 1)).sum(axis=1)
        wrong += audit(Played(scores, member), claim, sides=sides).bound < sigma
    assert wrong <= most_errors(games, BETA, 12)


@pytest.mark.parametrize("sides", ["both", "member"])
@pytest.mark.parametrize("games", GAMES)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 1e-4), (1.0, 1e-4), (3.0, 1e-2)])
def test_randomised_response_keeps_the_truth(
    epsilon: float, delta: float, sides: SidesChoice, games: int
) -> None:
    wrong = 0
    for seed in range(games):
        game = response(seed, epsilon, delta)
        wrong += audit(game, lb.ApproxDP(delta=delta), sides=sides).bound > epsilon
    assert wrong <= most_errors(games, BETA, 12)


@pytest.mark.parametrize("games", GAMES)
def test_pure_dp_has_a_free_choice(games: int) -> None:
    wrong = sum(
        audit(response(seed, 1.0), lb.PureDP(), seed=seed).bound > 1 for seed in range(games)
    )
    assert wrong <= most_errors(games, BETA, 12)


@pytest.mark.parametrize("games", GAMES)
def test_mixtures_keep_the_truth(games: int) -> None:
    """Whole runs that tell much or nothing: guesses are right together."""
    wrong = 0
    for seed in range(games):
        game = simulate.mixture(M, 1.0, seed=seed)
        wrong += audit(game, lb.GaussianDP()).bound > 1.0
    assert wrong <= most_errors(games, BETA, 12)


def failing_mechanism(
    least: tuple[int, int], guesses: tuple[int, int], chance: float, right: float = 0.5
) -> float:
    """Return the probability that a mechanism which may fail reaches a least count.

    As a rule it answers at random, rightly with probability `right`, and asks for many guesses;
    with a small chance it tells the truth about as many examples as the few guesses that it asks
    for then.
    """
    few, many = guesses
    noise = stats.binomial_tail(least[1], many, right) if least[1] <= many else 0.0
    return (1 - chance) * noise + chance * (least[0] <= few)


def test_a_mechanism_that_knows_when_it_leaked_breaks_levels_tested_one_by_one() -> None:
    """m = 10,000, δ = 1e-5: with probability .0167 six examples leak, so the mean number is m δ."""
    m, delta, guesses, level = 10_000, 1e-5, (6, 5000), 0.05
    chance = m * delta / guesses[0]

    def least(made: int, limit: Any) -> int:
        return next((c for c in range(made // 2, made + 1) if limit(c, made) >= 0), made + 1)

    def alone(correct: int, made: int) -> float:
        p = stats.one_run_p_value(correct, made, m, epsilon=0.0, delta=delta)
        return 0.0 if p <= level else -1.0

    def together(share: float) -> Any:
        return lambda correct, made: _core.approx_joint_epsilon(
            {"correct": correct, "guesses": made, "m": m, "k": 2, "one_sided": False},
            delta,
            level,
            share,
        )

    one_by_one = least(guesses[0], alone), least(guesses[1], alone)
    assert failing_mechanism(one_by_one, guesses, chance) > 0.064
    for share in (0.02, 0.2, 0.34, 0.4, 0.6):
        counts = least(guesses[0], together(share)), least(guesses[1], together(share))
        assert failing_mechanism(counts, guesses, chance) <= level
    # as a family: (0, δ)-DP is a curve
    curve = lb.TradeOff.approx(0.0, delta).core
    joint = _core.JointCertificate(guesses, one_by_one, m, one_sided=False, curve=curve)
    assert failing_mechanism(one_by_one, guesses, chance) <= joint.bound_for(curve)


@pytest.mark.parametrize("values", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.0, 1.5])
@pytest.mark.parametrize("share", [0.05, 0.3])
def test_a_mechanism_that_knows_keeps_its_bound_about_several_values(
    values: int, epsilon: float, share: float
) -> None:
    """Guesses between k values, k-ary randomised response, and δ that fails all at once."""
    m, delta, level = 2000, 2e-5, 0.05
    right = math.exp(epsilon) / (math.exp(epsilon) + values - 1)
    worst = 0.0
    for few in (1, 2, 3, 5, 8):
        guesses = few, 1000
        chance = m * delta / few

        def least(made: int) -> int:
            counts = {"guesses": made, "m": m, "k": values, "one_sided": False}
            return next(
                (
                    right
                    for right in range(1, made + 1)
                    if _core.approx_joint_epsilon(
                        {"correct": right, **counts},  # type: ignore[typeddict-item]
                        delta,
                        level,
                        share,
                    )
                    >= epsilon
                ),
                made + 1,
            )

        counts = least(few), least(guesses[1])
        worst = max(worst, failing_mechanism(counts, guesses, chance, right))
    assert 0.3 * level < worst <= level


class Knowing:
    """Plays the (0, δ)-DP mechanism above: scores stand out as many as it wants to be guessed."""

    m, delta, guesses = 10_000, 1e-5, (6, 5000)

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 23])
        self.member = rng.random(self.m) < 0.5
        few, many = self.guesses
        row = rng.permutation(self.m)
        self.scores = 1e-3 * rng.normal(size=self.m)
        if rng.random() < self.m * self.delta / few:
            self.scores[row[:few]] += np.where(self.member[row[:few]], 5.0, -5.0)
        else:
            self.scores[row[: many - 1000]] += np.where(rng.random(many - 1000) < 0.5, 1.0, -1.0)


@pytest.mark.parametrize("games", [pytest.param(6000, marks=pytest.mark.validity)])
@pytest.mark.parametrize("cuts", [lb.OutsideIn([6, 5000]), lb.OutsideIn()])
def test_a_mechanism_that_knows_when_it_leaked_is_not_slandered(cuts: Any, games: int) -> None:
    claim = lb.ApproxDP(delta=Knowing.delta)
    wrong = 0
    for seed in range(games):
        game = Knowing(seed)
        wrong += audit(game, claim, cuts=cuts, confidence=0.95).bound > 0
    assert wrong <= most_errors(games, 0.05, 12)


@pytest.mark.parametrize("sides", ["both", "member"])
def test_the_choice_reads_no_label_within_the_level(sides: SidesChoice) -> None:
    """Labels within are turned at random: the level stays."""
    rng = np.random.default_rng(0)
    policy = joint_policy(lb.OutsideIn(), lb.GaussianDP(), examples=2000, sides=sides, beta=0.05)
    plan, met = policy.plan, set()
    for trial in range(200):
        right = rng.random(2000) < np.linspace(0.5 + 0.5 * rng.random(), 0.5, 2000)
        index = plan.choose(_core.Path.from_successes(right))
        met.add(index)
        within = plan.levels[index]
        right[:within] = rng.random(within) < rng.random()
        assert plan.choose(_core.Path.from_successes(right)) == index, trial
    assert len(met) > 3


def test_stronger_attacks_stop_further_out() -> None:
    cuts = [
        audit(simulate.gaussian(1000, mu, seed=1), lb.GaussianDP()).guesses for mu in (0.5, 2, 6)
    ]
    assert cuts[0] < cuts[1] < cuts[2]


def test_tails_among_members_are_told_from_the_labels_beyond() -> None:
    """5 % of 1,000 examples are known for sure, so 25 ± 5 members: each level near there is met."""
    policy = joint_policy(lb.OutsideIn(), lb.GaussianDP(), examples=1000, sides="member", beta=0.05)
    plan, met = policy.plan, []
    for seed in range(200):
        rng = np.random.default_rng([seed, 77])
        member, noise, known = rng.random(1000) < 0.5, rng.normal(size=1000), rng.random(1000)
        scores = np.where(known < 0.05, np.where(member, 20.0, -20.0) + 0.1 * noise, noise)
        path = _core.Path.from_successes(member[np.argsort(-scores)])
        met.append(plan.levels[plan.choose(path)])
    near = [level for level in plan.levels if 16 <= level <= 31]
    assert set(near) <= set(met)
    assert np.isin(met, near).mean() > 0.8


@pytest.mark.parametrize("claim", [lb.PureDP(), APPROXIMATE, lb.GaussianDP(), lb.LaplaceDP()])
def test_results_tell_the_levels_and_the_price(claim: Any) -> None:
    result = audit(simulate.gaussian(1000, 2.0, seed=2), claim)
    told: Any = result.options["outside_in"]
    assert result.options["cuts"] == {"type": "OutsideIn", "levels": None}
    assert told["guesses"] == result.guesses
    assert result.guesses in told["levels"]
    assert 0 < result.bound <= result.ceiling
    if "bound_if_fixed" in told:
        assert 0.9 * told["bound_if_fixed"] < result.bound < 1.2 * told["bound_if_fixed"]
    marked = ~np.isnan(result.curve.bound)
    assert result.curve.guesses[marked].tolist() == [result.guesses]
    assert lb.AuditResult.from_json(result.to_json()) == result


def test_levels_of_ones_own() -> None:
    game = simulate.gaussian(1000, 1.0, seed=3)
    result = audit(game, lb.GaussianDP(), cuts=lb.OutsideIn([50, 100, 200]))
    assert result.guesses in {50, 100, 200}
    alone = audit(game, lb.GaussianDP(), cuts=lb.OutsideIn([100]))
    fixed = audit(game, lb.GaussianDP(), cuts=lb.Fixed(100))
    assert 0.97 * fixed.bound < alone.bound <= fixed.bound * (1 + 1e-6)


@pytest.mark.parametrize("m", [2, 3, 5, 9, 30])
@pytest.mark.parametrize("claim", [lb.PureDP(), APPROXIMATE, lb.GaussianDP()])
@pytest.mark.parametrize("sides", ["both", "member"])
def test_few_examples(m: int, claim: Any, sides: SidesChoice) -> None:
    member = np.arange(m) % 2 == 0
    result = lb.audit_one_run(
        np.where(member, 1.0, -1.0) + 0.01 * np.arange(m),
        member,
        claim=claim,
        cuts=lb.OutsideIn(),
        sides=sides,
    )
    assert 0 <= result.bound <= result.ceiling
    assert result.bound or result.reason


CLAIMS: list[Any] = [
    lb.PureDP(),
    lb.ApproxDP(delta=1e-300),
    lb.ApproxDP(delta=1e-3),
    lb.ApproxDP(delta=0.999999),
    lb.GaussianDP(),
    lb.LaplaceDP(),
]


@pytest.mark.parametrize("m", [2, 3, 4, 7, 12, 20])
@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("sides", ["both", "member"])
def test_few_examples_with_levels_of_ones_own(m: int, claim: Any, sides: SidesChoice) -> None:
    """Perfect scores, noise and ties; also where the ceiling is so low that more are asked for."""
    rng = np.random.default_rng(m)
    member = np.arange(m) % 2 == 0
    for scores in (
        np.where(member, 1.0, -1.0) + 0.01 * np.arange(m),
        rng.normal(size=m),
        np.where(member, 1.0, np.round(rng.normal(size=m))) + 0.5 * (np.arange(m) == 0),
    ):
        for levels in ([m], [1, m], range(1, m + 1)):
            result = audit(
                Played(scores, member), claim, cuts=lb.OutsideIn(sorted(set(levels))), sides=sides
            )
            assert 0 <= result.bound <= result.ceiling
            assert result.bound or result.reason
            assert lb.AuditResult.from_json(result.to_json()) == result


@pytest.mark.parametrize(
    "wrong", [[3, 2], [2, 2], [0, 3], [math.nan, 3], [1.5], [True, 2], [], [2.0]]
)
def test_levels_are_increasing_positive_integers(wrong: Any) -> None:
    with pytest.raises((errors.OptionError, errors.OptionTypeError), match="levels"):
        lb.OutsideIn(wrong)


def test_ties_are_broken_from_the_seed() -> None:
    game = simulate.gaussian(1000, 1.0, seed=4)
    coarse = np.round(game.scores)
    results = [
        lb.audit_one_run(coarse, game.member, claim=lb.GaussianDP(), cuts=lb.OutsideIn(), seed=s)
        for s in (0, 0, 1)
    ]
    assert results[0] == results[1]
    assert results[0].correct != results[2].correct


def test_what_it_is_not_for() -> None:
    game = simulate.gaussian(100, 1.0, seed=0)
    with pytest.raises(errors.OptionError, match="more guesses than there are"):
        audit(game, lb.GaussianDP(), cuts=lb.OutsideIn([10, 200]))
    with pytest.raises((errors.OptionError, errors.OptionTypeError), match="levels"):
        lb.OutsideIn([5, 5])
