"""The number of guesses chosen from labels that are revealed from the outside in."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import flat
import leakbound as lb
import leakbound._core as _core
from leakbound import errors, simulate, stats
from leakbound._base.types import CoinSides, SidesChoice
from leakbound.audits.policies import approximate_dp
from leakbound.audits.policies.approximate_dp import failure_share
from leakbound.claims.base import counts_of
from leakbound.cuts.outside_in import planned_rule

BETA = 0.1


def audit(game: Any, claim: Any, **more: Any) -> lb.AuditResult:
    options: dict[str, Any] = {"confidence": 1 - BETA, "cuts": lb.OutsideIn(), **more}
    result: lb.AuditResult = flat.coins(game.scores, game.member, claim=claim, **options)
    return result


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
    named = zip(one_by_one, guesses, strict=True)
    joint = _core.JointCertificate([counts_of(*one, m, one_sided=False) for one in named], curve)
    assert failing_mechanism(one_by_one, guesses, chance) <= joint.bound_for(curve)


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 1e-2])
def test_the_largest_of_several_limits_is_that_of_one_of_them(delta: float, k: int) -> None:
    """Bit for bit: a plan that is made of it is the one that all limits would give."""
    shares = [0.01, 0.08, 0.5]
    for accuracy in (0.3, 0.55, 0.9, 1.0):
        made = [1, 2, 5, 40, 300, 1000]
        counts = [counts_of(int(accuracy * n), n, 1000, one_sided=False, k=k) for n in made]
        for level in (0.05, 0.0025):
            found = _core.approx_joint_largest(counts, delta, level, shares)
            limits = [
                max(_core.approx_joint_epsilon(one, delta, level, share) for one in counts)
                for share in shares
            ]
            assert found == limits


def test_a_plan_of_failures_costs_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took 224 bisections, a quarter of an audit of 1,000 examples, for each of two levels."""
    calls: list[int] = []
    largest = _core.approx_joint_largest

    def counted(counts: Any, *options: Any) -> list[float]:
        calls.append(len(counts))
        return largest(counts, *options)

    core = SimpleNamespace(approx_joint_largest=counted)
    monkeypatch.setattr(approximate_dp, "_core", core)
    share = failure_share.__wrapped__(1000, 0.05, 1e-5, "auto")
    assert 0 < share < 1
    assert len(calls) == 1


@pytest.mark.parametrize("sides", ["both", "member"])
def test_the_choice_reads_no_label_within_the_level(sides: SidesChoice) -> None:
    """Labels within are turned at random: the level stays."""
    rng = np.random.default_rng(0)
    plan, met = planned_rule(lb.OutsideIn(), 2000, 0.05, sides, "family"), set()
    for trial in range(200):
        right = rng.random(2000) < np.linspace(0.5 + 0.5 * rng.random(), 0.5, 2000)
        index = plan.choose(_core.Path.from_successes(right))
        met.add(index)
        within = plan.levels[index]
        right[:within] = rng.random(within) < rng.random()
        assert plan.choose(_core.Path.from_successes(right)) == index, trial
    assert len(met) > 3


def test_how_many_guesses_are_of_each_role_reads_no_label_within_them() -> None:
    """Labels within both ends are turned at random: both numbers stay."""
    rng = np.random.default_rng(0)
    plan, met = planned_rule(lb.OutsideIn(), 2000, 0.05, "auto", "family"), set()
    for trial in range(200):
        ends = [
            rng.random(1000) < np.linspace(0.5 + 0.5 * rng.random(), 0.5, 1000) for _ in range(2)
        ]
        index, members = plan.choose_ends(*map(_core.Path.from_successes, ends))
        kept = members, plan.levels[index] - members
        met.add(kept)
        for right, within in zip(ends, kept, strict=True):
            right[:within] = rng.random(within) < rng.random()
        again = plan.choose_ends(*map(_core.Path.from_successes, ends))
        assert again == (index, members), trial
    assert len(met) > 50
    assert min(members for members, _ in met) == 0 == min(others for _, others in met)


@pytest.mark.parametrize(
    ("claim", "gain"), [(lb.GaussianDP(), 3), (lb.ApproxDP(delta=1e-5), 3), (lb.PureDP(), 0.95)]
)
def test_a_leak_at_one_end_is_found_at_either(claim: Any, gain: float) -> None:
    """A twentieth of members four deviations up, and of others as many down, m = 10,000."""
    rng = np.random.default_rng(1)
    member = rng.random(10_000) < 0.5
    scores = rng.normal(size=10_000) + 4 * (member & (rng.random(10_000) < 0.05))
    both = audit(
        SimpleNamespace(scores=scores, member=member), claim, cuts=None, sides="both"
    ).bound
    for sign in (1, -1):
        game = SimpleNamespace(scores=sign * scores, member=member if sign == 1 else ~member)
        result = lb.audit(game.scores, lb.Coins(game.member), claim=claim, confidence=0.9, seed=0)
        assert gain * both < result.bound <= result.ceiling
        reached = result.options["outside_in"]
        members, guesses = reached["members"], reached["guesses"]
        assert (members if sign == 1 else guesses - members) > 0.9 * guesses > 100
        assert result.path == "ends"
        assert any("ties are broken by the seed" in one.statement for one in result.assumptions)


def test_only_coins_have_two_ends() -> None:
    scores, half = np.random.default_rng(0).normal(size=20), np.full(20, 0.5)
    design = lb.ZeroRun(np.arange(20) % 2, half)
    assert lb.audit(scores, design, sides="auto", seed=0) == lb.audit(scores, design, seed=0)
    assert lb.audit(scores, design, seed=0).options["sides"] == "both"
    with pytest.raises(errors.OptionError, match="not apply to RandomSplit"):
        lb.audit(scores, lb.RandomSplit(np.arange(20) % 2), sides="member")


CLAIMS: list[Any] = [
    lb.PureDP(),
    lb.ApproxDP(delta=1e-300),
    lb.ApproxDP(delta=1e-3),
    lb.ApproxDP(delta=0.999999),
    lb.GaussianDP(),
    lb.LaplaceDP(),
]


@pytest.mark.parametrize("m", [2, 3, 7])
@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("sides", ["both", "member", "auto"])
def test_few_examples_with_levels_of_ones_own(m: int, claim: Any, sides: CoinSides) -> None:
    """Perfect scores, noise and ties; also where the ceiling is so low that more are asked for."""
    rng = np.random.default_rng(m)
    member = np.arange(m) % 2 == 0
    for scores in (
        np.where(member, 1.0, -1.0) + 0.01 * np.arange(m),
        rng.normal(size=m),
        np.where(member, 1.0, np.round(rng.normal(size=m))) + 0.5 * (np.arange(m) == 0),
    ):
        for levels in ([m], [1, m], range(1, m + 1)):
            game = SimpleNamespace(scores=scores, member=member)
            result = audit(game, claim, cuts=lb.OutsideIn(sorted(set(levels))), sides=sides)
            assert 0 <= result.bound <= result.ceiling
            assert result.bound or result.reason


@pytest.mark.parametrize(
    "wrong", [[3, 2], [2, 2], [0, 3], [math.nan, 3], [1.5], [True, 2], [], [2.0]]
)
def test_levels_are_increasing_positive_integers(wrong: Any) -> None:
    with pytest.raises((errors.OptionError, errors.InputTypeError), match="levels"):
        lb.OutsideIn(wrong)


def test_more_guesses_than_examples_are_refused() -> None:
    game = simulate.gaussian(100, 1.0, seed=0)
    with pytest.raises(errors.OptionError, match="more guesses, 200, than there are examples"):
        audit(game, lb.GaussianDP(), cuts=lb.OutsideIn([10, 200]))
