"""Games whose outermost scores are noise, and what the default proves of them.

export PYTHONPATH=benches/python
python benches/tightness/untidy.py    12 games of each row, 6 under Gaussian DP
python benches/tightness/untidy.py --tables noisy --claims pure --sizes 1000 --seeds 60
python benches/tightness/untidy.py --tables shifted --ways learnt --games Cauchy

Five tables. `noisy`: untidy games, beside `OutsideIn` and the best in hindsight, the largest mean
of `OutsideIn`, `KLScan`, a union bound, and numbers of guesses fixed in advance. `sides`: fixed
sides, beside a union bound. `learnt`: learnt ratios, beside `KLScan`. `standard`: games without
noise, beside `OutsideIn`. `shifted`: Zero-Run audits of untidy games whose members differ from the
others, beside numbers of guesses fixed in advance; three games of each row.
"""

import argparse
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, TypeAlias, get_args

import numpy as np

import leakbound as lb
import peers
from leakbound.claims import Claim
from mechanisms import Gaussian, OfCoins, OneSidedTail, TwoSidedTail
from untidy_games import (
    GAMES,
    Cauchy,
    LearntRatios,
    RoundedLaplace,
    Saturated,
    Shifted,
    Way,
)

__all__ = ["GAMES", "Cauchy", "LearntRatios", "RoundedLaplace", "Saturated", "Shifted"]

Rows: TypeAlias = Iterable[tuple[str, dict[str, float]]]
"""Rows of a table: its name, and mean bounds by kind of policy."""
Policies: TypeAlias = Iterable[tuple[str, dict[str, Any]]]
"""What is compared: a kind, such as "default", and options of an audit."""

_CLAIMS: dict[str, Claim] = {
    "pure": lb.PureDP(),
    "approximate": lb.ApproxDP(delta=peers.DELTA),
    "gaussian": lb.GaussianDP(),
}
_FEWEST_GUESSES = 16


def _fixed_guesses(m: int) -> list[int]:
    """Return numbers of guesses to fix in advance: 16, doubled again and again, and all."""
    doublings = int(math.log2(m / _FEWEST_GUESSES))
    numbers = [_FEWEST_GUESSES * 2**doubling for doubling in range(doublings + 1)]
    return [*numbers, m]


def _policies(claim: Claim, m: int) -> Policies:
    """Yield what is compared: its kind, and options of an audit."""
    yield "default", {}
    yield "outside-in", {"cuts": lb.OutsideIn()}
    yield "best", {"cuts": lb.OutsideIn(), "sides": "both"}
    yield "best", {"cuts": lb.UnionBound(grid="geometric"), "sides": "both"}
    if isinstance(claim, lb.PureDP):
        yield "best", {"cuts": lb.KLScan()}
    for guesses, sides in product(_fixed_guesses(m), ("both", "member")):
        yield "best", {"cuts": lb.Fixed(guesses), "sides": sides}


def means(game: Any, m: int, claim: Claim, seeds: int, policies: Policies) -> dict[str, float]:
    """Return the largest mean bound of each kind of policy on the same games."""
    largest_means: dict[str, float] = {}
    games_played = [game(m, seed=seed) for seed in range(seeds)]
    for kind, options in policies:
        options_of_audit = dict(options)
        default_design = options_of_audit.pop("design", lb.Coins)
        bounds = []
        for seed, played in enumerate(games_played):
            design = played.design or partial(default_design, played.member)
            result = lb.audit(played.scores, design(), claim=claim, seed=seed, **options_of_audit)
            bounds.append(result.bound)
        mean_bound = float(np.mean(bounds))
        largest_means[kind] = max(largest_means.get(kind, 0.0), mean_bound)
    return largest_means


def row(game: Any, m: int, claim: Claim, seeds: int) -> dict[str, float]:
    """Return mean bounds of the default, of outside-in, and of the best in hindsight."""
    policies = _policies(claim, m)
    mean_bounds = means(game, m=m, claim=claim, seeds=seeds, policies=policies)
    mean_bounds["best"] = max(mean_bounds["best"], mean_bounds["outside-in"])
    return mean_bounds


def beside_fixed(game: Any, m: int, claim: Claim, seeds: int) -> dict[str, float]:
    """Return mean bounds of the default, and of the best number of guesses fixed in advance."""
    fixed = [("best", {"cuts": lb.Fixed(guesses)}) for guesses in _fixed_guesses(m)]
    return means(game, m=m, claim=claim, seeds=seeds, policies=[("default", {}), *fixed])


def _print_table(header: str, rows: Rows) -> None:
    """Print a table: mean bounds of two kinds or three, and the default's share of the best."""
    columns = header.count("|") + 1
    print(f"\n| {header} |\n|{'---|' * columns}")
    for name, mean_bounds in rows:
        best = mean_bounds["best"]
        share_of_best = math.nan
        if best:
            share_of_best = mean_bounds["default"] / best
        numbers = [*mean_bounds.values(), share_of_best]
        cells = " | ".join(f"{number:.2f}" for number in numbers)
        print(f"| {name} | {cells} |")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which rows are played: games by name (all if None), claims, what is known, and how often."""

    games: list[str] | None
    claims: tuple[Claim, ...]
    ways: list[Way]
    seeds: int | None

    @property
    def untidy(self) -> list[OfCoins]:
        """The untidy games that are asked for."""
        if self.games is None:
            return list(GAMES)
        return [game for game in GAMES if type(game).__name__ in self.games]

    def of(self, claim: Claim) -> int:
        """Return the games of a row: few of a family's, whose audits are slow."""
        if self.seeds is not None:
            return self.seeds
        if isinstance(claim, lb.GaussianDP):
            return 6
        return 12


def _noisy(asked: Asked, sizes: list[int]) -> Rows:
    """Yield rows of all untidy games, of fair coins from either end."""
    for claim, game, m in product(asked.claims, asked.untidy, sizes):
        name = f"{type(game).__name__} | {m:,} | {claim.name}"
        yield name, row(game, m=m, claim=claim, seeds=asked.of(claim))


def _fixed_sides(asked: Asked, sizes: list[int]) -> Rows:
    """Yield rows of random splits and of fixed sides, beside a union bound of the same design."""
    options_by_name: dict[str, dict[str, Any]] = {
        "random split": {"design": lb.RandomSplit},
        "both": {"sides": "both"},
        "member": {"sides": "member"},
    }
    union_bound = {"cuts": lb.UnionBound(grid="geometric")}
    for claim, name, m in product(asked.claims, options_by_name, sizes):
        options = options_by_name[name]
        policies = [("default", options), ("best", {**options, **union_bound})]
        mean_bounds = means(
            Saturated(), m=m, claim=claim, seeds=asked.seeds or 6, policies=policies
        )
        yield f"{name} | {m:,} | {claim.name}", mean_bounds


def _learnt(asked: Asked, sizes: list[int]) -> Rows:
    """Yield rows of rounded Laplace noise, beside the scan of all thresholds."""
    claim = lb.PureDP()
    for m in sizes:
        mean_bounds = means(
            RoundedLaplace(),
            m=m,
            claim=claim,
            seeds=asked.of(claim),
            policies=[("default", {}), ("best", {"cuts": lb.KLScan()})],
        )
        yield f"{m:,}", mean_bounds


def _shifted(asked: Asked, sizes: list[int]) -> Rows:
    """Yield rows of Zero-Run audits, beside numbers of guesses fixed in advance."""
    for way, claim, game, m in product(asked.ways, asked.claims, asked.untidy, sizes):
        shifted_game = Shifted(game=game, way=way)
        mean_bounds = beside_fixed(shifted_game, m=m, claim=claim, seeds=asked.seeds or 3)
        yield f"{way} | {type(game).__name__} | {m:,} | {claim.name}", mean_bounds


def _standard(asked: Asked, sizes: list[int]) -> Rows:
    """Yield rows of games whose surest scores are outermost, beside `OutsideIn`."""
    games = (
        Gaussian(mu=0.5),
        Gaussian(mu=1.0),
        Gaussian(mu=2.0),
        Gaussian(mu=4.0),
        TwoSidedTail(share=0.05, shift=20.0),
        OneSidedTail(share=0.2, shift=3.0),
        OneSidedTail(share=0.05, shift=4.0),
        TwoSidedTail(share=0.05, shift=4.0),
    )
    for claim, game, m in product(asked.claims, games, sizes):
        mean_bounds = means(
            game,
            m=m,
            claim=claim,
            seeds=asked.seeds or 12,
            policies=[("default", {}), ("best", {"cuts": lb.OutsideIn()})],
        )
        yield f"{game!r} | {m:,} | {claim.name}", mean_bounds


_GAME_COLUMNS = "game | m | claim"
_TABLES: dict[str, tuple[str, Callable[[Asked, list[int]], Rows], list[int]]] = {
    "noisy": (
        f"{_GAME_COLUMNS} | default | `OutsideIn` | best in hindsight | default / best",
        _noisy,
        [10**3, 10**4],
    ),
    "sides": (
        "Saturated | m | claim | default | union bound | share",
        _fixed_sides,
        [10**4],
    ),
    "learnt": (
        "RoundedLaplace, m | default | `KLScan` | share",
        _learnt,
        [10**4, 4 * 10**4, 10**5, 2 * 10**5],
    ),
    "shifted": (
        f"known | {_GAME_COLUMNS} | default | best fixed number | share",
        _shifted,
        [10**4],
    ),
    "standard": (
        f"{_GAME_COLUMNS} | default | `OutsideIn` | share",
        _standard,
        [10**3, 10**4],
    ),
}
"""Tables by name: their header, their rows, and the numbers of examples of these."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", choices=_TABLES, default=list(_TABLES))
    parser.add_argument("--games", nargs="+", choices=[type(game).__name__ for game in GAMES])
    parser.add_argument("--claims", nargs="+", choices=_CLAIMS, default=list(_CLAIMS))
    parser.add_argument("--ways", nargs="+", choices=get_args(Way), default=list(get_args(Way)))
    parser.add_argument("--sizes", nargs="+", type=int, help="examples, in place of each table's")
    parser.add_argument("--seeds", type=int, help="games of each row, in place of each table's")
    given = parser.parse_args()
    asked = Asked(
        games=given.games,
        claims=tuple(_CLAIMS[name] for name in given.claims),
        ways=given.ways,
        seeds=given.seeds,
    )
    for name in given.tables:
        header, rows_of_table, sizes = _TABLES[name]
        _print_table(header, rows_of_table(asked, given.sizes or sizes))


if __name__ == "__main__":
    main()
