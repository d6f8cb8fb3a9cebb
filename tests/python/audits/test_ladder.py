"""The ladder of exact tests: valid for any rungs that draws of their own had no part in."""

from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

from leakbound.audits.policies.ladder import Kind, MonteCarloLadder, ProbitLine, Reaching

NORMAL = NormalDist()
SEARCH = (-9.0, 9.0)


def shifted(observed: float, seed: int, asked: list[tuple[Kind, int]] | None = None) -> Reaching:
    """Return counts of draws θ + N(0, 1) that reach what was observed, by stream."""

    def reaching(theta: float, kind: Kind, index: int, draws: int, most: int) -> int:
        if asked is not None:
            asked.append((kind, index))
        rng = np.random.default_rng([seed, kind == "rung", index])
        return min(int(rng.binomial(draws, NORMAL.cdf(theta - observed))), most + 1)

    return reaching


def ladder(reaching: Reaching, level: float = 0.1, scale: float = 1.0) -> MonteCarloLadder:
    return MonteCarloLadder(reaching=reaching, level=level, search=SEARCH, scale=scale)


@pytest.mark.parametrize("level", [1e-4, 1e-3, 0.01, 0.05, 0.1, 0.5, 0.9])
def test_one_rung_is_exact(level: float) -> None:
    """Where the chance is uniform, as many as (1 + most)/(draws + 1) refute: at most the level."""
    refuting = [
        count
        for count in range(3_000)
        if ladder(lambda *_, count=count: count, level).refuted(0.0, 0) is not None
    ]
    draws = ladder(shifted(0, 0), level).draws
    assert draws >= max(2_000, 20 / level)
    assert refuting == list(range(len(refuting)))
    assert len(refuting) / (draws + 1) <= level < (len(refuting) + 1) / (draws + 1)
    chances = (np.arange(200_000) + 0.5) / 200_000
    rate = stats.binom.cdf(len(refuting) - 1, draws, chances).mean()
    assert rate == pytest.approx(len(refuting) / (draws + 1), rel=1e-3)


@pytest.mark.parametrize("atoms", [1, 2, 7, 400])
def test_discrete_statistics_are_refuted_no_more_often(atoms: int) -> None:
    """P(T ≥ t) is then at least uniform: Σ P(t) P(Bin(N, P(T ≥ t)) < β (N + 1)) ≤ β."""
    rng = np.random.default_rng(atoms)
    for level in (0.013, 0.05, 0.3):
        search = ladder(shifted(0, 0), level)
        most = int(level * (search.draws + 1)) - 1
        for _ in range(20):
            law = rng.dirichlet(np.full(atoms, 0.5))
            reach = np.minimum(law[::-1].cumsum()[::-1], 1)
            assert law @ stats.binom.cdf(most, search.draws, reach) <= level + 1e-12


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("start", [-5.0, 0.0, 5.0])
def test_bounds_are_just_below_the_crossing(scale: float, start: float) -> None:
    """Wherever the pilot begins, and though a probit is not the change of θ that it was told."""
    for level in (0.001, 0.05, 0.6):
        crossing = NORMAL.inv_cdf(level) + 1
        bounds = [ladder(shifted(1, seed), level, scale).bound(start) for seed in range(60)]
        assert max(bounds) < crossing + 0.3
        assert min(bounds) > crossing - 2.5
        assert np.mean(bounds) > crossing - 0.25


def test_rungs_go_up_and_have_streams_that_nothing_else_reads() -> None:
    for seed in range(50):
        asked: list[tuple[Kind, int]] = []
        ladder(shifted(0.5, seed, asked)).bound(0.0)
        assert len(set(asked)) == len(asked)
        assert {kind for kind, _ in asked} == {"pilot", "rung"}


def test_what_no_draws_can_refute_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer draws than the inverse of the level refute nothing; nor does what always reaches."""
    assert ladder(lambda *asked: min(asked[3], asked[4] + 1)).bound(0.0) == 0.0
    monkeypatch.setattr("leakbound.audits.policies.ladder._RUNG_DRAWS", 8)
    monkeypatch.setattr("leakbound.audits.policies.ladder._DRAWS_BEYOND_LEVEL", 0)
    search = ladder(lambda *_: 0)
    assert search.draws == 8
    assert search.refuted(0.0, 0) is None
    assert search.bound(0.0) == 0.0
    monkeypatch.setattr("leakbound.audits.policies.ladder._RUNG_DRAWS", 9)
    assert search.bound(0.0) == SEARCH[1]


def test_chances_that_jump_end_the_search() -> None:
    """A family whose curves change at once, where no parameter has a chance near the level."""

    search = ladder(lambda *asked: min(asked[3] if asked[0] > 2 else 0, asked[4] + 1))
    assert 1.5 < search.bound(7.0) <= 2.0
    assert 1.5 < search.bound(-7.0) <= 2.0


LEVEL, GAMES = 0.1, 6_000


def one_by_one(seed: int, *, by_parameter: bool) -> Reaching:
    """Return counts of 199 draws θ + N(0, 1), of a stream or, wrongly, of a parameter."""
    observed = float(np.random.default_rng([seed, 7]).normal())

    def reaching(theta: float, kind: Kind, index: int, draws: int, most: int) -> int:
        name = [int(1e6 * theta)] if by_parameter else [kind == "rung", index]
        drawn = np.random.default_rng([seed, *name]).normal(size=draws)
        return min(int((drawn + theta >= observed).sum()), most + 1)

    return reaching


def false_claims(
    search: type[MonteCarloLadder], games: int = GAMES, *, by_parameter: bool = False
) -> int:
    """Count bounds above a truth of 0, of a statistic whose law is N(θ, 1)."""
    searches = (
        search(
            reaching=one_by_one(seed, by_parameter=by_parameter),
            level=LEVEL,
            search=(0.0, 9.0),
            scale=1.0,
        )
        for seed in range(games)
    )
    return sum(one.bound(0.5) > 0 for one in searches)


class Luckiest(MonteCarloLadder):
    """A pilot that picks the luckiest of many places above the truth as the first rung."""

    def _first_rung(self, _start: float) -> tuple[float, ProbitLine]:
        places = np.linspace(1e-6, 0.01, 8).tolist()
        counts = [self.reaching(theta, "pilot", i, 199, 199) for i, theta in enumerate(places)]
        return places[int(np.argmin(counts))], ProbitLine(self.level, 1.0)


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_RUNG_DRAWS": 199, "_DRAWS_BEYOND_LEVEL": 0, "_PILOT_DRAWS": 199}.items():
        monkeypatch.setattr(f"leakbound.audits.policies.ladder.{name}", value)


@pytest.mark.usefixtures("few_draws")
def test_any_choice_of_rungs_is_valid_and_draws_that_chose_a_rung_must_not_count() -> None:
    """10 % at most, but nearly 13 % where the pilot's draws are those of the rung."""
    most = int(stats.binom.isf(1e-3, GAMES, LEVEL))
    assert false_claims(MonteCarloLadder, 1_000) <= stats.binom.isf(1e-3, 1_000, LEVEL)
    fresh, reused = false_claims(Luckiest), false_claims(Luckiest, by_parameter=True)
    assert fresh <= most
    assert stats.binom.sf(fresh, GAMES, 0.8 * LEVEL) < 0.01
    assert reused > most
