"""How much our bounds prove beside other packages' and papers', and how often each is false.

export PYTHONPATH=benches/python
python benches/tightness/tightness.py             two minutes on two cores: a table
python benches/tightness/tightness.py --whole     resumable: rows in --out
python benches/tightness/tightness.py --page      rows behind the page of the docs
python benches/tightness/tightness.py --baseline  rows of ours that a test holds the next commit to
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import leakbound as lb
import peers
from forms import FORMS, NOT_GAUSSIAN
from leakbound import benchmark
from leakbound.benchmark import Audit
from leakbound.benchmark.table import method
from leakbound.claims import Claim
from leakbound.errors import OptionError
from leakbound.simulate import Game

__all__ = ["BASELINE", "CORPUS", "GAMES", "OURS", "PAGE", "baseline", "lost", "matrix", "others"]

BASELINE = Path(__file__).with_name("baseline.parquet")
PAGE = Path(__file__).with_name("page.parquet")
CORPUS = Path(__file__).parents[1] / "corpus"
DELTA = peers.DELTA
_LEAST = 1e-6
"""Losses of a mean bound below this are rounding."""
_NOTHING = 0.2
"""Oracles below this prove next to nothing, and their shares say nothing."""

GAMES: tuple[Any, ...] = (
    benchmark.Noise(),
    benchmark.Gaussian(mu=1.0),
    benchmark.Gaussian(mu=3.0),
    benchmark.Mixture(mu=1.0),
    benchmark.RandomizedResponse(epsilon=1.0),
    benchmark.Ties(epsilon=1.0),
    benchmark.Laplace(epsilon=2.0),
    benchmark.OneSidedTail(share=0.05, shift=4.0),
    benchmark.TwoSidedTail(share=0.05, shift=4.0),
    benchmark.SparseTails(),
    benchmark.LossesNearZero(mu=1.0),
    benchmark.Failures(),
)
GAUSSIAN: tuple[Any, ...] = (GAMES[0], GAMES[1], GAMES[3], GAMES[10])
"""Games that are Gaussian DP, but for tails and responses."""
OURS: tuple[Any, ...] = (
    lb.KLScan(),
    lb.OutsideIn(),
    lb.UnionBound(),
    lb.UnionBound(grid="geometric"),
    Audit(lb.KLScan(), sides="member"),
    Audit(lb.OutsideIn(), sides="member"),
)
_FAMILY: tuple[Any, ...] = (lb.OutsideIn(), Audit(lb.OutsideIn(), sides="member"))
_CLAIMS: tuple[Claim, ...] = (lb.PureDP(), lb.ApproxDP(delta=DELTA))


@cache
def installed() -> dict[str, peers.Audit]:
    """Return the audits of other packages that can be imported."""
    found: dict[str, peers.Audit] = {}
    for load in (peers.jax_privacy, peers.opake):
        try:
            found |= load()
        except ImportError as error:
            peers.say(f"({load.__name__} does not take part: {error})")
    return found


@dataclass(frozen=True)
class Peer:
    """An audit of another package, of (ε, δ)-DP at the level and δ of `peers`."""

    name: str

    def audit(self, game: Game, claim: Claim, level: float, seed: int) -> float:
        """Return what the package returns."""
        if claim != lb.ApproxDP(delta=DELTA) or abs(level - peers.BETA) > _LEAST:
            message = f"of approximate DP at δ = {DELTA:g} and level {peers.BETA:g} alone"
            raise OptionError(message)
        return installed()[self.name](game, seed)


def others() -> tuple[Any, ...]:
    """Return published forms, and other packages that are installed."""
    return (*FORMS, *map(Peer, installed()))


def tables(
    m: Sequence[int], seeds: int, *, claims: Sequence[Claim] = _CLAIMS, **options: Any
) -> Iterator[benchmark.Table]:
    """Yield the rows of pure and approximate DP, and those of Gaussian DP."""
    corpus = [benchmark.Scores(file.stem) for file in sorted(CORPUS.glob("*.parquet"))]
    options |= {"m": m, "seeds": range(seeds), "progress": True}
    yield benchmark.run((*GAMES, *corpus), (*OURS, *others()), claims, **options)
    bounds = (*_FAMILY, *(one for one in FORMS if one not in NOT_GAUSSIAN))
    yield benchmark.run(GAUSSIAN, bounds, [lb.GaussianDP()], **options)


def baseline(m: Sequence[int] = (10**3, 10**4)) -> benchmark.Table:
    """Return the rows of ours that a commit is held to."""
    options: dict[str, Any] = {"m": m, "seeds": range(2), "reference": False}
    first = benchmark.run(GAMES, OURS, _CLAIMS, **options)
    return joined(first, benchmark.run(GAUSSIAN, _FAMILY, [lb.GaussianDP()], **options))


def matrix(table: benchmark.Table, m: int, claim: str) -> str:
    """Return shares of the oracle as Markdown: a row for each bound, a column for each game.

    Games in which fixed cuts prove next to nothing are left out.
    """
    lines = [
        line
        for line in table.summary().lines
        if (line["m"], line["claim"]) == (m, claim) and line["oracle"] > _NOTHING
    ]
    shares: dict[str, dict[str, str]] = {}
    for line in lines:
        star = "\\*" if line["judged"] and line["low"] > peers.BETA else ""
        shares.setdefault(method(line), {})[line["game"]] = f"{line['of_oracle']:.2f}{star}"
    games = list(dict.fromkeys(line["game"] for line in lines))
    heads = (game.replace("source='fashion-mnist', column=", "") for game in games)
    rows = [f"| bound | {' | '.join(heads)} |", f"|---|{'--:|' * len(games)}"]
    for name, row in shares.items():
        rows.append(f"| {name} | {' | '.join(row.get(game, '-') for game in games)} |")
    return "\n".join(rows)


def joined(*parts: benchmark.Table) -> benchmark.Table:
    """Return the rows of several tables as one."""
    return benchmark.Table.of(row for one in parts for row in one.to_arrow().to_pylist())


def written(path: Path, *parts: benchmark.Table) -> None:
    """Write tables as one parquet file."""
    from pyarrow import parquet

    parquet.write_table(joined(*parts).to_arrow(), path, compression="zstd")


def lost(before: benchmark.Table, after: benchmark.Table) -> list[str]:
    """Return what mean bounds have lost, in words, the largest loss first."""
    names = ("game", "m", "claim", "bound", "options")
    now = {tuple(line[name] for name in names): line for line in after.summary().lines}
    losses = []
    for line in before.summary().lines:
        game, m, claim, _, _ = key = tuple(line[name] for name in names)
        words = f"at m = {m:,} on {game}, {claim}, by {method(line)}"
        if key not in now:
            losses.append((float("inf"), f"no more rows {words}"))
            continue
        loss = line["mean"] - now[key]["mean"] if line["games"] > line["errors"] else 0.0
        if not loss <= _LEAST:
            losses.append((loss, f"lost {loss:.3g} {words}"))
    return [words for _, words in sorted(losses, key=lambda one: -one[0])]


def main() -> None:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--whole", action="store_true", help="m to 10⁵, 200 games; resumable")
    parser.add_argument("--baseline", action="store_true", help=f"write {BASELINE.name}")
    parser.add_argument("--page", action="store_true", help=f"write {PAGE.name}, behind the docs")
    parser.add_argument("--seeds", type=int, help="games of each kind and size: 20, or 200")
    parser.add_argument("--out", type=Path, default=Path("leakbound-out/tightness"))
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    options: dict[str, Any] = {"processes": given.workers}
    if given.baseline:
        written(BASELINE, baseline())
        return
    if given.whole or given.page:
        options["store"] = given.out / "rows"
    if not given.whole:
        options["claims"] = _CLAIMS[1:]
    if given.page:
        written(PAGE, *tables([300, 10**3, 3000, 10**4], given.seeds or 30, **options))
        return
    sizes = [10**3, 10**4, 10**5] if given.whole else [10**3]
    for table in tables(sizes, given.seeds or (200 if given.whole else 20), **options):
        lines = (one for one in table.summary().lines if one["errors"] < one["games"])
        sys.stdout.write(f"{benchmark.Summary(tuple(lines)).to_markdown()}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
