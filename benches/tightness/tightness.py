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
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import chain
from operator import itemgetter
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
_ROUNDING = 1e-6
"""Losses of a mean bound below this are rounding."""
_LEAST_ORACLE = 0.2
"""Oracles below this prove next to nothing, and their shares say nothing."""
_SLOW_PEER = "opake GDP"
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
_JUDGED_OF_GAUSSIAN_DP: tuple[Any, ...] = (_COINS, _NORMAL, _MIXTURE)
JUDGED: tuple[Any, ...] = (*_JUDGED_OF_GAUSSIAN_DP, _RESPONSE)
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
_BOUNDS_ON_MU: tuple[Any, ...] = (
    *_FAMILY,
    *(form for form in FORMS if form not in NOT_GAUSSIAN),
)
_PURE = lb.PureDP()
_APPROXIMATE = lb.ApproxDP(delta=DELTA)
_GAUSSIAN = lb.GaussianDP()


@cache
def installed() -> dict[str, peers.Audit]:
    """Return the audits of other packages that can be imported."""
    return peers.importable(peers.jax_privacy, peers.opake)


class Peer:
    """An audit of another package, of (ε, δ)-DP at the level and δ of `peers`."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return self.__name__

    def audit(self, game: Game, claim: Claim, level: float, seed: int) -> float:
        """Return what the package returns."""
        if claim != _APPROXIMATE or abs(level - peers.BETA) > _ROUNDING:
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
    options_of_rows = {name: options.get(name) for name in ("m", "seeds", "reference")}
    tables_of_games = []
    for game in games:
        # A label is without addresses of functions.
        label_of_rows = game_label((game, *what, options_of_rows))
        digest = sha256(label_of_rows.encode()).hexdigest()
        file = store / f"{digest}.parquet"
        if not file.exists():
            benchmark.run([game], *what, **options).to_parquet(file)
        tables_of_games.append(Table.read(file))
    return joined(tables_of_games)


def quick_peers() -> list[Peer]:
    """Return the audits of other packages that do not take seconds for each game."""
    return [Peer(name) for name in installed() if name != _SLOW_PEER]


def tables(
    m: Sequence[int], seeds: int, claims: Sequence[Claim], **options: Any
) -> Iterator[Table]:
    """Yield the rows of pure and approximate DP, those of other packages, and of Gaussian DP."""
    stored_scores = [Scores(file.stem) for file in sorted(CORPUS.glob("*.parquet"))]
    games = (*GAMES, *stored_scores)
    options |= {"seeds": range(seeds), "progress": True}
    yield play(games, (*OURS, *FORMS), claims, m, **options)
    audits_of_peers = quick_peers()
    if audits_of_peers:
        yield play(games, audits_of_peers, [_APPROXIMATE], [1000], **options)
    yield play(GAUSSIAN, _BOUNDS_ON_MU, [_GAUSSIAN], m, **options)


def counted(**options: Any) -> Iterator[Table]:
    """Yield rows of a few games, so many that false claims of everything can be judged."""
    options |= {"m": [1000], "seeds": range(100), "progress": True}
    bounds_on_epsilon = (*OURS, *FORMS, *quick_peers())
    yield play(JUDGED, bounds_on_epsilon, [_APPROXIMATE], **options)
    yield play(_JUDGED_OF_GAUSSIAN_DP, _BOUNDS_ON_MU, [_GAUSSIAN], **options, reference=False)


def slow(**options: Any) -> Iterator[Table]:
    """Yield rows of what takes seconds for each game, on the same ones."""
    options |= {"m": [1000], "seeds": range(20), "progress": True, "reference": False}
    if _SLOW_PEER in installed():
        yield play(JUDGED, [Peer(_SLOW_PEER)], [_APPROXIMATE], **options)


def known(**options: Any) -> Iterator[Table]:
    """Yield rows of bounds that are not valid, on the games that show it."""
    options |= {"m": [1000], "seeds": range(200), "reference": False}
    invalid_forms = (forms.uncorrected_sweep, forms.clopper_pearson_uncorrected)
    yield play(JUDGED, invalid_forms, [_APPROXIMATE], **options)
    yield play(_JUDGED_OF_GAUSSIAN_DP, [forms.product_channel], [_GAUSSIAN], **options)


def baseline(m: Sequence[int] = (10**3, 10**4)) -> Table:
    """Return the rows of ours that a commit is held to."""
    options: dict[str, Any] = {"m": m, "seeds": range(2), "reference": False}
    games = (*GAMES, *untidy.GAMES, mechanisms.OneSidedTail(share=0.2, shift=3.0))
    rows_of_dp = play(games, OURS, [_PURE, _APPROXIMATE], **options)
    gaussian_games = (*GAUSSIAN, *untidy.GAMES)
    rows_of_gaussian_dp = play(gaussian_games, _FAMILY, [_GAUSSIAN], **options)
    return joined([rows_of_dp, rows_of_gaussian_dp])


def matrix(table: Table, m: int, claim: str) -> str:
    """Return shares of the oracle as Markdown: a row for each bound, a column for each game.

    Games in which fixed cuts prove next to nothing are left out.
    """
    shares_by_bound: defaultdict[str, dict[str, str]] = defaultdict(dict)
    games: dict[str, None] = {}
    for line in table.summary().lines:
        is_asked = (line["m"], line["claim"]) == (m, claim)
        # The oracle may be NaN.
        if not (is_asked and line["oracle"] > _LEAST_ORACLE):
            continue
        share_of_oracle = f"{line['of_oracle']:.2f}"
        if is_false_too_often(line):
            share_of_oracle += "\\*"
        game = line["game"].replace("source='fashion-mnist', column=", "")
        shares_by_bound[method(line)][game] = share_of_oracle
        games[game] = None
    return markdown(shares_by_bound, list(games))


def is_false_too_often(line: Mapping[str, Any]) -> bool:
    """Return whether the lower limit of the rate of false claims is above the level."""
    return bool(line["judged"] and line["low"] > peers.BETA)


def markdown(cells_by_bound: Mapping[str, dict[str, str]], games: list[str]) -> str:
    """Return a table with a row for each bound and a column for each game."""
    rule = "|---|" + "--:|" * len(games)
    lines = [markdown_row(["bound", *games]), rule]
    for bound, cells in cells_by_bound.items():
        cells_of_games = [cells.get(game, "-") for game in games]
        lines.append(markdown_row([bound, *cells_of_games]))
    return "\n".join(lines)


def markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def false_claims(table: Table) -> str:
    """Return bounds with too many false claims at m = 1,000 as Markdown, by game."""
    games = [game_label(game) for game in JUDGED]
    counts_by_bound: defaultdict[str, dict[str, str]] = defaultdict(dict)
    too_often_false = set[str]()
    for line in table.summary().lines:
        if line["m"] != 1000 or line["game"] not in games or not line["judged"]:
            continue
        limits = f"{line['low']:.1%} to {line['high']:.1%}".replace("%", " %")
        count = f"{line['false_claims']} of {line['judged']} ({limits})"
        bound = method(line)
        if line["claim"] == "Gaussian DP":
            bound += " (Gaussian DP)"
        if is_false_too_often(line):
            too_often_false.add(bound)
            count = f"**{count}**"
        counts_by_bound[bound][line["game"]] = count
    shown_counts = {
        bound: counts for bound, counts in counts_by_bound.items() if bound in too_often_false
    }
    return markdown(shown_counts, games)


def joined(tables: Iterable[Table]) -> Table:
    """Return the rows of several tables as one, each of them once."""
    key_of_row = itemgetter(*KEY)
    rows_by_key = {}
    for table in tables:
        for row in table.to_arrow().to_pylist():
            rows_by_key[key_of_row(row)] = row
    return Table.of(rows_by_key.values())


def shown(table: Table) -> str:
    """Return the summary of a table without bounds that are not for its claim."""
    lines = (line for line in table.summary().lines if line["errors"] < line["games"])
    return str(benchmark.Summary(tuple(lines)))


def stored() -> Table:
    """Return the stored rows of other packages that are not played."""
    rows = Table.read(PAGE).to_arrow()
    is_other_package = compute.match_substring_regex(rows["method"], "^(jax-privacy|opake)")
    played_names = [name for name in installed() if name != _SLOW_PEER]
    is_played = compute.is_in(rows["method"], pa.array(played_names, "string"))
    return Table(rows.filter(compute.and_not(is_other_package, is_played)))


def lost(before: Table, after: Table) -> list[str]:
    """Return what mean bounds have lost, in words, the largest loss first."""
    key_of_line = itemgetter("game", "m", "claim", "method", "options")
    lines_after = {key_of_line(line): line for line in after.summary().lines}
    loss_by_words = {}
    for line in before.summary().lines:
        key = key_of_line(line)
        where = f"at m = {line['m']:,} on {line['game']}, {line['claim']}, by {method(line)}"
        if key not in lines_after:
            loss_by_words[f"no more rows {where}"] = math.inf
            continue
        loss = 0.0
        if line["games"] > line["errors"]:
            loss = line["bound"] - lines_after[key]["bound"]
        # A loss of NaN is one, too.
        if not loss <= _ROUNDING:
            loss_by_words[f"lost {loss:.3g} {where}"] = loss
    return sorted(loss_by_words, key=lambda words: -loss_by_words[words])


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
        write_page(given.seeds or 20, **options)
    elif given.whole:
        print_whole(given.seeds or 200, **options)
    else:
        print_quick(given.seeds or 20, **options)


def write_page(seeds: int, **options: Any) -> None:
    """Store the rows behind the page of the docs."""
    rows_of_tables = tables(
        [300, 10**3, 3000],
        seeds=seeds,
        claims=[_APPROXIMATE],
        **options,
    )
    rows_of_page = chain(counted(**options), rows_of_tables, slow(**options))
    joined(rows_of_page).to_parquet(PAGE)


def print_whole(seeds: int, **options: Any) -> None:
    """Print all tables, and which bounds are false too often."""
    sizes = [10**3, 10**4, 10**5]
    claims: list[Claim] = [_PURE, _APPROXIMATE]
    for table in tables(sizes, seeds=seeds, claims=claims, **options):
        print(shown(table), flush=True)
    judged_rows = chain(counted(**options), slow(**options))
    print(false_claims(joined(judged_rows)))


def print_quick(seeds: int, **options: Any) -> None:
    """Print tables of one size, and the stored rows of what takes longer."""
    for table in tables([10**3], seeds=seeds, claims=[_APPROXIMATE], **options):
        print(shown(table), flush=True)
    stored_rows = stored()
    print(f"Stored rows of other packages:\n\n{shown(stored_rows)}")
    print("False claims, at 95 % confidence, so 5 % at most; exact limits:\n")
    rows_of_invalid_forms = known(**options)
    print(false_claims(joined([*rows_of_invalid_forms, stored_rows])))


if __name__ == "__main__":
    main()
