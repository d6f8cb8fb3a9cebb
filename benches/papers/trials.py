"""Trials beside coins: what they prove of one mechanism, of several shapes of leaks, and wrongly.

`python benches/papers/trials.py [gaussian] [shapes] [wrong]` prints tables of
`docs/theory/trials.md`; that of (ε, δ)-DP is from `benches/tightness/allowance.py`.
"""

import sys
from collections.abc import Callable, Iterator

import numpy as np

import leakbound as lb
from leakbound._base.types import BoolArray, FloatArray
from leakbound.claims import Claim

Play = Callable[[np.random.Generator, BoolArray], FloatArray]


def shifted(mu: float) -> Play:
    """Scores of a Gaussian mechanism."""
    return lambda rng, member: rng.normal(size=member.size) + mu * member


def told(members: float, others: float) -> Play:
    """Scores that give shares of members and of others away, and are noise for the rest."""

    def play(rng: np.random.Generator, member: BoolArray) -> FloatArray:
        known = rng.random(member.size) < np.where(member, members, others)
        return rng.normal(size=member.size) + np.where(known, np.where(member, 8, -8), 0)

    return play


SHAPES: dict[str, Play] = {
    "μ = 0.3": shifted(0.3),
    "μ = 1": shifted(1),
    "μ = 2": shifted(2),
    "μ = 4": shifted(4),
    "5 % of members told": told(0.05, 0),
    "5 % of others told": told(0, 0.05),
    "5 % of both told": told(0.05, 0.05),
}


def audited(
    scores: FloatArray, member: BoolArray, claim: Claim, seed: int
) -> tuple[lb.AuditResult, lb.AuditResult]:
    """Audit scores as trials, and as coins."""
    return (
        lb.audit(scores, lb.Trials(member), claim=claim, seed=seed),
        lb.audit(scores, lb.Coins(member), claim=claim, seed=seed),
    )


def mean(play: Play, m: int, claim: Claim, games: int) -> tuple[float, float]:
    """Return the mean bound of trials and of coins, of families as ε at 1e-5."""
    found = []
    for seed in range(games):
        rng = np.random.default_rng(seed)
        member = rng.random(m) < 0.5
        scores = play(rng, member)
        results = audited(scores, member=member, claim=claim, seed=seed)
        found.append([one.epsilon(claim.delta or 1e-5) for one in results])
    trials, coins = np.mean(found, axis=0).tolist()
    return trials, coins


def gaussian() -> Iterator[str]:
    """Yield what is proved of the Gaussian mechanism, by the number of runs."""
    for m in (1_000, 10_000, 100_000):
        trials, coins = mean(shifted(1), m=m, claim=lb.GaussianDP(), games=40)
        yield f"{m:,} | {coins:.2f} | {trials:.2f}"


def shapes() -> Iterator[str]:
    """Yield what is proved of shapes of leaks in 1,000 runs, as Gaussian DP."""
    for name, play in SHAPES.items():
        trials, coins = mean(play, m=1_000, claim=lb.GaussianDP(), games=20)
        yield f"{name} | {coins:.2f} | {trials:.2f}"


def wrong() -> Iterator[str]:
    """Yield false claims about a mechanism that is 1-GDP, where coins of one run pass as trials."""
    games = 200
    for m in (400, 1_000):
        false = [0, 0]
        for seed in range(games):
            game = lb.simulate.mixture(m, 1.0, seed=seed)
            found = audited(game.scores, member=game.member, claim=lb.GaussianDP(), seed=seed)
            false = [n + (one.bound > game.truth) for n, one in zip(false, found, strict=True)]
        yield f"{m:,} | {false[1]} of {games} | {false[0]} of {games}"


TABLES = {one.__name__: one for one in (gaussian, shapes, wrong)}

if __name__ == "__main__":
    for table in sys.argv[1:] or TABLES:
        print(f"\n{table}: coins | trials")  # noqa: T201 (what the command prints)
        for row in TABLES[table]():
            print(row, flush=True)  # noqa: T201
