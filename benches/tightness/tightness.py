"""How much our bounds prove beside other packages' and papers', and how often each is false.

export PYTHONPATH=benches/python
python benches/tightness/tightness.py             two minutes on two cores: tables of 20 games each
python benches/tightness/tightness.py --whole     m to 10⁵, 200 games each; resumable, rows in --out
python benches/tightness/tightness.py --page      rows behind the page of the docs; resumable
python benches/tightness/tightness.py --baseline  rows of ours that a test holds the next commit to

Other packages take part where they are installed (`pip install --group peers`); of those that are
not, or take seconds for each game, the quick form shows the stored rows of the page.
"""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute

import forms
import leakbound as lb
import mechanisms
import peers
import untidy
from forms import FORMS, NOT_GAUSSIAN
from leakbound import benchmark, datasets
from leakbound.benchmark import Audit, Table
from leakbound.benchmark.running import game_label
from leakbound.benchmark.table import KEY, method
from leakbound.claims import Claim
from leakbound.cuts import SecondLook
from leakbound.errors import OptionError
from leakbound.simulate import Game

__all__ = ["BASELINE", "PAGE", "Peer", "baseline", "false_claims", "installed", "lost", "matrix"]

BASELINE = Path(__file__).with_name("baseline.parquet")
PAGE = datasets.path("benchmark")
CORPUS = Path(__file__).parents[1] / "corpus"
DELTA = peers.DELTA
_LEAST = 1e-6
"""Losses of a mean bound below this are rounding."""
_NOTHING = 0.2
"""Oracles below this prove next to nothing, and their shares say nothing."""
_SLOW = "opake GDP"
"""What takes seconds for each game; it plays few of them, at one size."""

_COINS = mechanisms.Noise()
_NORMAL = mechanisms.Gaussian(mu=1.0)
_MIXTURE = mechanisms.Mixture(mu=1.0)
_RESPONSE = mechanisms.RandomizedResponse(epsilon=1.0)
_LOSSES = mechanisms.LossesNearZero(mu=1.0)
GAMES: tuple[Any, ...] = (
    _COINS,
    _NORMAL,
    mechanisms.Gaussian(mu=3.0),
    _MIXTURE,
    _RESPONSE,
    mechanisms.Ties(epsilon=1.0),
    mechanisms.Laplace(epsilon=2.0),
    mechanisms.OneSidedTail(share=0.05, shift=4.0),
    mechanisms.TwoSidedTail(share=0.05, shift=4.0),
    mechanisms.TwoSidedTail(share=0.005, shift=8.0),
    _LOSSES,
    mechanisms.RandomizedResponse(epsilon=0.0, delta=0.01),
)
GAUSSIAN: tuple[Any, ...] = (_COINS, _NORMAL, _MIXTURE, _LOSSES)
"""Games that are Gaussian DP, but for tails and responses."""
JUDGED: tuple[Any, ...] = (_COINS, _NORMAL, _MIXTURE, _RESPONSE)
"""Where false claims are counted: noise, independent and dependent examples, no Gaussian."""
_FAMILY: tuple[Any, ...] = (
    SecondLook(),
    lb.OutsideIn(),
    Audit(lb.OutsideIn(), sides="both"),
    Audit(lb.OutsideIn(), sides="member"),
)
_LOOK, _OUTSIDE_IN, *_FROM_SIDES = _FAMILY
OURS: tuple[Any, ...] = (
    _LOOK,
    lb.KLScan(),
    _OUTSIDE_IN,
    lb.UnionBound(),
    lb.UnionBound(grid="geometric"),
    Audit(lb.KLScan(), sides="member"),
    *_FROM_SIDES,
)
_FOR_GAUSSIAN = tuple(form for form in FORMS if form not in NOT_GAUSSIAN)
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


class Peer:
    """An audit of another package, of (ε, δ)-DP at the level and δ of `peers`."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return self.__name__

    def audit(self, game: Game, claim: Claim, level: float, seed: int) -> float:
        """Return what the package returns."""
        if claim != _CLAIMS[1] or abs(level - peers.BETA) > _LEAST:
            raise OptionError(f"of approximate DP at δ = {DELTA:g} and level {peers.BETA:g} alone")
        return installed()[self.__name__](game, seed)


@dataclass(frozen=True)
class Scores:
    """Scores of the corpus, by the names of their file and column."""

    source: str
    column: str = "score"

    def __call__(self, m: int, *, seed: int) -> Game:
        """Play the game of a seed."""
        file = CORPUS / f"{self.source}.parquet"
        return benchmark.Scores(source=file, column=self.column)(m, seed=seed)


def play(games: Sequence[Any], *what: Any, store: Path | None = None, **options: Any) -> Table:
    """Return the rows of games, which a folder keeps: those that it has are not played again.

    Delete the folder if the package has changed.
    """
    if store is None:
        return benchmark.run(games, *what, **options)
    tables = []
    for game in games:
        asked = {name: options.get(name) for name in ("m", "seeds", "reference")}
        played = game_label((game, *what, asked)).encode()  # without addresses of functions
        file = store / f"{sha256(played).hexdigest()}.parquet"
        if not file.exists():
            benchmark.run([game], *what, **options).to_parquet(file)
        tables.append(Table.read(file))
    return joined(tables)


def tables(
    m: Sequence[int], seeds: int, claims: Sequence[Claim], **options: Any
) -> Iterator[Table]:
    """Yield the rows of pure and approximate DP, those of other packages, and of Gaussian DP."""
    corpus = [Scores(file.stem) for file in sorted(CORPUS.glob("*.parquet"))]
    options |= {"seeds": range(seeds), "progress": True}
    yield play((*GAMES, *corpus), (*OURS, *FORMS), claims, m, **options)
    quick = [Peer(name) for name in installed() if name != _SLOW]
    if quick:
        yield play((*GAMES, *corpus), quick, _CLAIMS[1:], [1000], **options)
    yield play(GAUSSIAN, (*_FAMILY, *_FOR_GAUSSIAN), [lb.GaussianDP()], m, **options)


def counted(**options: Any) -> Iterator[Table]:
    """Yield rows of a few games, so many that false claims of everything can be judged."""
    options |= {"m": [1000], "seeds": range(100), "progress": True}
    quick = [Peer(name) for name in installed() if name != _SLOW]
    yield play(JUDGED, (*OURS, *FORMS, *quick), _CLAIMS[1:], **options)
    options["reference"] = False
    yield play(JUDGED[:3], (*_FAMILY, *_FOR_GAUSSIAN), [lb.GaussianDP()], **options)


def slow(**options: Any) -> Iterator[Table]:
    """Yield rows of what takes seconds for each game, on the same ones."""
    options |= {"m": [1000], "seeds": range(20), "progress": True, "reference": False}
    if _SLOW in installed():
        yield play(JUDGED, [Peer(_SLOW)], _CLAIMS[1:], **options)


def known(**options: Any) -> Iterator[Table]:
    """Yield rows of bounds that are not valid, on the games that show it."""
    options |= {"m": [1000], "seeds": range(200), "reference": False}
    sweeps = (forms.uncorrected_sweep, forms.clopper_pearson_uncorrected)
    yield play(JUDGED, sweeps, _CLAIMS[1:], **options)
    yield play(JUDGED[:3], [forms.product_channel], [lb.GaussianDP()], **options)


def baseline(m: Sequence[int] = (10**3, 10**4)) -> Table:
    """Return the rows of ours that a commit is held to."""
    options: dict[str, Any] = {"m": m, "seeds": range(2), "reference": False}
    held = (*GAMES, *untidy.GAMES, mechanisms.OneSidedTail(share=0.2, shift=3.0))
    first = play(held, OURS, _CLAIMS, **options)
    family = (*GAUSSIAN, *untidy.GAMES)
    return joined([first, play(family, _FAMILY, [lb.GaussianDP()], **options)])


def matrix(table: Table, m: int, claim: str) -> str:
    """Return shares of the oracle as Markdown: a row for each bound, a column for each game.

    Games in which fixed cuts prove next to nothing are left out.
    """
    shares: dict[str, dict[str, str]] = {}
    games: dict[str, str] = {}
    for line in table.summary().lines:
        if (line["m"], line["claim"]) == (m, claim) and line["oracle"] > _NOTHING:
            star = ""
            if line["judged"] and line["low"] > peers.BETA:
                star = "\\*"
            shares.setdefault(method(line), {})[line["game"]] = f"{line['of_oracle']:.2f}{star}"
            games[line["game"]] = line["game"].replace("source='fashion-mnist', column=", "")
    rows = [f"| bound | {' | '.join(games.values())} |", f"|---|{'--:|' * len(games)}"]
    for name, row in shares.items():
        rows.append(f"| {name} | {' | '.join(row.get(game, '-') for game in games)} |")
    return "\n".join(rows)


def false_claims(table: Table) -> str:
    """Return bounds with too many false claims at m = 1,000 as Markdown, by game."""
    games = [game_label(game) for game in JUDGED]
    told: dict[str, dict[str, str]] = {}
    for line in table.summary().lines:
        if line["m"] == 1000 and line["game"] in games and line["judged"]:
            share = f"{line['low']:.1%} to {line['high']:.1%}".replace("%", " %")
            count = f"{line['false_claims']} of {line['judged']} ({share})"
            name = method(line)
            if line["claim"] == "Gaussian DP":
                name += " (Gaussian DP)"
            wrong = count
            if line["low"] > peers.BETA:
                wrong = f"**{count}**"
            told.setdefault(name, {})[line["game"]] = wrong
    rows = [f"| bound | {' | '.join(games)} |", f"|---|{'--:|' * len(games)}"]
    for name, row in told.items():
        if any(count.startswith("**") for count in row.values()):
            rows.append(f"| {name} | {' | '.join(row.get(game, '-') for game in games)} |")
    return "\n".join(rows)


def joined(tables: Iterable[Table]) -> Table:
    """Return the rows of several tables as one, each of them once."""
    rows = (row for table in tables for row in table.to_arrow().to_pylist())
    return Table.of({tuple(row[name] for name in KEY): row for row in rows}.values())


def shown(table: Table) -> str:
    """Return the summary of a table without bounds that are not for its claim."""
    lines = (one for one in table.summary().lines if one["errors"] < one["games"])
    return str(benchmark.Summary(tuple(lines)))


def stored() -> Table:
    """Return the stored rows of other packages that are not played."""
    rows = Table.read(PAGE).to_arrow()
    others = compute.match_substring_regex(rows["method"], "^(jax-privacy|opake)")
    played = pa.array([name for name in installed() if name != _SLOW], "string")
    return Table(rows.filter(compute.and_not(others, compute.is_in(rows["method"], played))))


def lost(before: Table, after: Table) -> list[str]:
    """Return what mean bounds have lost, in words, the largest loss first."""
    names = ("game", "m", "claim", "method", "options")
    now = {tuple(line[name] for name in names): line for line in after.summary().lines}
    losses = []
    for line in before.summary().lines:
        game, m, claim, _, _ = key = tuple(line[name] for name in names)
        words = f"at m = {m:,} on {game}, {claim}, by {method(line)}"
        if key not in now:
            losses.append((float("inf"), f"no more rows {words}"))
            continue
        loss = 0.0
        if line["games"] > line["errors"]:
            loss = line["bound"] - now[key]["bound"]
        if not loss <= _LEAST:
            losses.append((loss, f"lost {loss:.3g} {words}"))
    return [words for _, words in sorted(losses, key=lambda one: -one[0])]


def main() -> None:
    """Measure, and print or write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    form = parser.add_mutually_exclusive_group()
    for name in ("--whole", "--page", "--baseline"):
        form.add_argument(name, action="store_true")
    parser.add_argument("--seeds", type=int, help="games of each kind and size: 20, or 200")
    parser.add_argument("--out", type=Path, default=Path("leakbound-out/tightness"))
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    options: dict[str, Any] = {"processes": given.workers}
    if given.baseline:
        baseline().to_parquet(BASELINE)
        return
    if given.whole or given.page:
        given.out.mkdir(parents=True, exist_ok=True)
        options["store"] = given.out
    if given.page:
        every = tables([300, 10**3, 3000], seeds=given.seeds or 20, claims=_CLAIMS[1:], **options)
        joined(chain(counted(**options), every, slow(**options))).to_parquet(PAGE)
        return
    sizes = [10**3]
    seeds = 20
    if given.whole:
        sizes = [10**3, 10**4, 10**5]
        seeds = 200
    for table in tables(
        sizes, seeds=given.seeds or seeds, claims=_CLAIMS[not given.whole :], **options
    ):
        peers.say(shown(table))
    if given.whole:
        peers.say(false_claims(joined(chain(counted(**options), slow(**options)))))
        return
    rest = stored()
    peers.say(f"Stored rows of other packages:\n\n{shown(rest)}")
    peers.say("False claims, at 95 % confidence, so 5 % at most; exact limits:\n")
    peers.say(false_claims(joined([*known(**options), rest])))


if __name__ == "__main__":
    main()
