"""Audits of independent trials: the worst law, its statistic, and the bound."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

import leakbound as lb
import leakbound._core as _core
from leakbound._base.types import BoolArray, FloatArray
from leakbound.audits.policies import ladder
from leakbound.audits.policies.trials import TrialsPolicy, pooled
from leakbound.audits.trials import _runs_of_coins
from leakbound.claims.tradeoff import convex_hull
from leakbound.errors import AbstentionError, DesignError, InputError, OptionError
from leakbound.stats import binomial_tail

Play: TypeAlias = Callable[[np.random.Generator, BoolArray], FloatArray]
CURVES = {
    "gaussian": lb.TradeOff.gaussian(1.2),
    "failing": lb.TradeOff.gaussian(0.7, 0.05),
    "laplace": lb.TradeOff.laplace(1.0),
    "response": lb.TradeOff.approx(1.0, 0.02),
    "steep": lb.TradeOff.table([0, 0.1, 1], [0.9, 0.6, 0]),
}


def game(m: int, seed: int, shift: float = 1.0) -> tuple[FloatArray, BoolArray]:
    rng = np.random.default_rng(seed)
    member = rng.random(m) < 0.5
    return rng.normal(size=m) + shift * member, member


def in_cells(order: BoolArray, cells: _core.Cells) -> NDArray[np.uint64]:
    """Return the members in each cell of a ranking."""
    return np.add.reduceat(order, np.array(cells.edges[:-1]), dtype=np.uint64)


def ranked(scores: FloatArray, member: BoolArray, rng: np.random.Generator) -> BoolArray:
    return member[np.lexsort((rng.random(scores.size), -scores))]


@pytest.mark.parametrize(
    ("curve", "m"),
    [(CURVES["steep"], 10), *((curve, 61) for curve in CURVES.values())],
    ids=["steep-10", *(f"{name}-61" for name in CURVES)],
)
def test_members_between_ranks_have_the_law_of_likelihood_ratios(
    curve: lb.TradeOff, m: int
) -> None:
    """Against the game itself, of two laws on the lines of the curve: means and covariances."""
    level, missed = convex_hull(*curve.corners())
    laws = np.diff(level, prepend=0), np.diff(1 - missed, prepend=0)
    cells, rng = _core.Cells(m), np.random.default_rng(m)
    drawn = cells.draw(pooled(curve), 40_000, m)
    played = []
    for _ in range(4_000):
        member = rng.random(m) < 0.5
        which = np.empty(m)
        for told, law in zip((~member, member), laws, strict=True):
            which[told] = rng.choice(law.size, told.sum(), p=law / law.sum())
        played.append(in_cells(ranked(-which, member, rng), cells))
    games, width = np.array(played), len(cells.edges) - 1
    some = np.vstack([np.eye(width), rng.normal(size=(8, width))]).T
    one, other = drawn @ some, games @ some
    spread = np.sqrt(one.var(axis=0) / len(one) + other.var(axis=0) / len(other) + 1e-9)
    assert np.abs((one.mean(axis=0) - other.mean(axis=0)) / spread).max() < 4.5
    assert one.std(axis=0)[-8:] == pytest.approx(other.std(axis=0)[-8:], rel=0.06)


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_lines_of_a_curve_allow_at_least_as_much_and_hardly_more(curve: lb.TradeOff) -> None:
    level, missed = curve.corners()
    inside = np.linspace(0, 1, 2_001)
    below = curve.f(inside) - np.interp(inside, level, missed)
    assert below.min() > -1e-15
    assert below.max() < 1e-4


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
@pytest.mark.parametrize("m", [10, 11, 60, 5_001])
def test_statistics_grow_when_a_member_moves_up(curve: lb.TradeOff, m: int) -> None:
    """From any cell that has one to any cell above with room for it."""
    cells, rng = _core.Cells(m), np.random.default_rng(m)
    sizes = np.diff(cells.edges)
    statistic = cells.reference(pooled(curve))
    for _ in range(200):
        held = rng.binomial(sizes, rng.random()).astype(np.uint64)
        upper, lower = np.sort(rng.choice(sizes.size, 2, replace=False))
        moved = held.copy()
        if held[lower] and held[upper] < sizes[upper]:
            moved[[upper, lower]] += np.array([1, -1]).astype(np.uint64)
        assert (statistic.ratios(moved) >= statistic.ratios(held) - 1e-12).all()


GAUSSIAN, LAPLACE, SHARE = lb.GaussianDP(), lb.LaplaceDP(), 0.3


def _told(share: float) -> lb.TradeOff:
    return lb.TradeOff.table([0, 1], [1 - share, 0])


BOUNDARIES: dict[str, tuple[Any, float, Play]] = {
    "noise": (GAUSSIAN, 1e-9, lambda rng, b: rng.normal(size=b.size)),
    "gaussian": (GAUSSIAN, 1.0, lambda rng, b: rng.normal(size=b.size) + b),
    "tied": (GAUSSIAN, 1.0, lambda rng, b: np.rint(rng.normal(size=b.size) + b)),
    "laplace": (LAPLACE, 1.0, lambda rng, b: rng.laplace(size=b.size) + b),
    "members-told": (
        lb.TradeOffFamily(parameter="share", tradeoff=_told, bracket=(0.01, 0.99)),
        SHARE,
        lambda rng, b: rng.random(b.size) + (b & (rng.random(b.size) < SHARE)),
    ),
}
CAUTIOUS = ("tied",)
"""Where scores say less than likelihood ratios: equal ones."""


def refutations(name: str, m: int, games: int, levels: tuple[float, ...]) -> list[int]:
    """Count games in which one rung refutes the truth, by 199 draws: exact at 10 % and 20 %."""
    claim, truth, play = BOUNDARIES[name]
    rng, policy = np.random.default_rng([m, games]), TrialsPolicy(claim=claim, trials=m)
    counts = dict.fromkeys(levels, 0)
    for seed in range(games):
        member = rng.random(m) < 0.5
        order = ranked(play(rng, member), member, rng)
        reached = policy.statistic(in_cells(order, policy.cells))
        for level in levels:
            counts[level] += policy.ladder(reached, level, seed).refuted(truth, 0) is not None
    return list(counts.values())


def unlikely(count: int, games: int, rate: float) -> float:
    """Return twice the smaller tail of a number of refutations."""
    above = float(binomial_tail(count, games, rate))
    below = 1 - float(binomial_tail(count + 1, games, rate))
    return 2 * min(above, below)


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rungs have 199 draws: the level is exact whatever their number."""
    monkeypatch.setattr(ladder, "_RUNG_DRAWS", 199)
    monkeypatch.setattr(ladder, "_DRAWS_BEYOND_LEVEL", 0)


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("name", ["laplace", "members-told"])
def test_the_truth_is_refuted_exactly_as_often_as_the_level(name: str) -> None:
    """Neither more often nor less, and a doubled level would be seen."""
    games, level = 600, 0.1
    count, doubled = refutations(name, 60, games, (level, 2 * level))
    assert unlikely(count, games, level) > 1e-3
    assert unlikely(doubled, games, level) < 1e-6


@pytest.mark.validity
@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(("m", "games"), [(60, 16_000), (500, 4_000)])
@pytest.mark.parametrize("name", [name for name in BOUNDARIES if name not in CAUTIOUS])
def test_the_truth_is_refuted_as_often_as_the_level_in_many_games(
    name: str, m: int, games: int
) -> None:
    count, doubled = refutations(name, m, games, (0.1, 0.2))
    assert unlikely(count, games, 0.1) > 1e-3
    assert unlikely(doubled, games, 0.1) < 1e-12


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize("name", CAUTIOUS)
def test_the_truth_is_refuted_less_often_where_ranks_say_less(name: str) -> None:
    games, level = 500, 0.1
    (count,) = refutations(name, 60, games, (level,))
    assert binomial_tail(count, games, level) > 1e-4


def test_counts_are_those_of_statistics_and_each_stream_has_its_own() -> None:
    """What the core counts is what its draws have, and no two streams share draws."""
    policy = TrialsPolicy(claim=GAUSSIAN, trials=200)
    scores, member = game(200, 3)
    reached = policy.statistic(
        in_cells(ranked(scores, member, np.random.default_rng(0)), policy.cells)
    )
    (law, cells), found = (policy.worst(0.8), policy.cells), []
    for seed in range(3):
        drawn = cells.draw(law, 1_000, seed)
        far = sum(
            any(
                np.logaddexp.reduce(reference.ratios(one)) >= threshold - 1e-9
                for reference, threshold in reached.references
            )
            or cells.perfect(one)
            for one in drawn
        )
        most = {far - 1, far, 1_000}
        counted = {
            cells.reaching(law, reached.references, number=1_000, most=one, seed=seed)
            for one in most
        }
        assert counted == {far}
        found.append(drawn)
    assert len({one.tobytes() for one in found}) == 3
    search = policy.ladder(reached, 0.05, 7)
    streams = [(kind, index) for kind in ("pilot", "rung") for index in range(40)]
    counts = [search.reaching(0.8, *stream, 1_000, 1_000) for stream in streams]  # type: ignore[arg-type]
    assert counts == [search.reaching(0.8, *stream, 1_000, 1_000) for stream in streams]  # type: ignore[arg-type]
    assert 20 < len(set(counts)) <= 80


def test_independence_proves_more_of_curves_and_nothing_under_pure_dp() -> None:
    scores, member = game(1_000, 0)

    def bounds(claim: Any, **options: Any) -> tuple[float, float]:
        audits = (
            lb.audit(scores, one, claim=claim, seed=0, **options)
            for one in (lb.Trials(member), lb.Coins(member))
        )
        one, other = (audit.bound for audit in audits)
        return one, other

    one, other = bounds(GAUSSIAN)
    assert 1.05 * other < one < 1
    one, other = bounds(lb.ApproxDP(delta=0.01))
    assert 2 * other < one < 2
    same: list[tuple[Any, dict[str, Any]]] = [
        (lb.PureDP(), {}),
        (lb.ApproxDP(delta=1e-4), {"cuts": lb.OutsideIn()}),
        (GAUSSIAN, {"cuts": lb.Fixed(500)}),
        (GAUSSIAN, {"confidence": 1 - 1e-5}),
    ]
    for claim, options in same:
        one, other = bounds(claim, **options)
        assert one == other


def test_results_say_what_was_tested_and_assumed() -> None:
    scores, member = game(200, 1, shift=2.0)
    found = lb.audit(scores, lb.Trials(member), claim=GAUSSIAN, seed=3)
    again = lb.audit(scores**3, lb.Trials(member), claim=GAUSSIAN, seed=3)
    assert (found.bound, found.guesses, found.correct) == (
        again.bound,
        again.guesses,
        again.correct,
    )
    assert found.options["design"] == "trials"
    assert found.kind == "family_lower_bound"
    assert found.assumptions[0].name == "independent trials with fair coins"
    assert found.exposed is None
    assert 0 < found.bound < found.ceiling
    assert found.epsilon(1e-5) == lb.TradeOff.gaussian(found.bound).epsilon(1e-5)
    down = np.sort(scores)[::-1]
    top, bottom = scores >= down[found.guesses // 2 - 1], scores <= down[-(found.guesses // 2)]
    right = {
        "members": member[scores >= down[found.guesses - 1]].sum(),
        "non-members": (~member)[scores <= down[-found.guesses]].sum(),
        "interleaved": member[top].sum() + (~member)[bottom].sum(),
    }
    assert found.correct == right[found.path]
    assert lb.AuditResult.from_json(found.to_json()) == found


def test_a_perfect_attack_reaches_the_ceiling_and_none_more() -> None:
    member = np.arange(100) < 50
    for claim in (GAUSSIAN, lb.ApproxDP(delta=0.1)):
        found = lb.audit(np.arange(100), lb.Trials(~member), claim=claim, seed=0)
        assert found.bound == found.ceiling > 2.3, claim
        one = lb.audit(np.arange(100)[::-1], lb.Trials(np.roll(member, 1)), claim=claim, seed=0)
        assert one.bound < found.bound


def test_what_cannot_be_audited_is_refused() -> None:
    scores, member = game(40, 0)
    with pytest.raises(InputError, match="at least 10 runs, got 9"):
        lb.audit(scores[:9], lb.Trials(member[:9]), claim=GAUSSIAN)
    with pytest.raises(AbstentionError, match="equal"):
        lb.audit(np.zeros(40), lb.Trials(member), claim=GAUSSIAN)
    with pytest.raises(DesignError, match="coin must decide before each run"):
        lb.audit(scores, lb.Trials(np.arange(40) > 1), claim=GAUSSIAN)
    with pytest.raises(OptionError, match="does not apply to Trials"):
        lb.audit(scores, lb.Trials(member), claim=GAUSSIAN, sides="member")


def test_coins_of_one_run_are_no_trials() -> None:
    """A mechanism whose canaries leak together: trials claim too much, coins do not."""
    wrong = {lb.Trials: 0, lb.Coins: 0}
    for seed in range(20):
        played = lb.simulate.mixture(1_000, 1.0, seed=seed)
        for design in wrong:
            found = lb.audit(played.scores, design(played.member), claim=GAUSSIAN, seed=seed)
            wrong[design] += found.bound > 1
    assert wrong[lb.Trials] >= 6  # of 20 at 5 %: p = 3e-4
    assert wrong[lb.Coins] <= 3


def test_fixed_numbers_of_runs_become_trials_with_coins() -> None:
    """Randomised response at the truth, 10 %: twice as many false claims would show."""
    member, false = np.arange(110) < 40, 0
    for seed in range(300):
        right = np.random.default_rng(seed).random(110) < 1 / (1 + np.exp(-1))
        design = lb.Trials(member, fixed=True)
        result = lb.audit(1.0 * (member == right), design, confidence=0.9, seed=seed)
        false += result.bound > 1
    assert binomial_tail(false, 300, 0.1) > 1e-3
    assert result.m == 70
    assert (result.options["fixed"], result.options["runs"]) == (True, 110)
    assert 0.09 <= sum(part["level"] for part in result.options["parts"]) < 0.1
    assert result.assumptions[0].name == "independent runs, alike"
    with pytest.raises(InputError, match="got 10, of which 6 can be used"):
        lb.audit(np.arange(10.0), lb.Trials(np.arange(10) < 5, fixed=True))


def test_runs_of_fixed_numbers_are_taken_at_random_and_none_twice() -> None:
    member = np.arange(60) < 30
    used = np.zeros(60, dtype=int)
    members = []
    for seed in range(2_000):
        rows, share = _runs_of_coins(member, seed)
        assert np.unique(rows).size == rows.size
        used[rows] += 1
        members.append(member[rows].sum())
    trials = rows.size
    assert share == pytest.approx(1 - 2 * float(binomial_tail(31, trials, 0.5)))
    assert np.abs(used / 2_000 - trials / 60).max() < 0.04
    assert np.mean(members) == pytest.approx(trials / 2, abs=0.3)


def test_runs_that_share_seeds_are_seen_and_discrete_outputs_are_not_blamed() -> None:
    rng = np.random.default_rng(0)
    member, noise = rng.random(1000) < 0.5, rng.normal(size=1000)
    shared = lb.audit(noise[np.arange(1000) % 300] + member, lb.Trials(member), seed=0)
    assert [one for one in shared.warnings if "runs share a seed or a cache" in one]
    for scores in (noise + member, np.rint(3 * noise) + member, member.astype(float)):
        fine = lb.audit(scores, lb.Trials(member), seed=0)
        assert not [one for one in fine.warnings if "seed" in one]
