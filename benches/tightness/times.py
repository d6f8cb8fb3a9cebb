"""Processor time of audits by default and of `OutsideIn` alone, beside sorting the same scores.

export PYTHONPATH=benches/python
python benches/tightness/times.py                        from 10³ to 10⁷ examples, one thread
python benches/tightness/times.py --sizes 1000 --seeds 9
"""

import argparse
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np

import leakbound as lb
import leakbound._core as _core
import peers
from leakbound.claims import Claim
from mechanisms import Gaussian, TwoSidedTail
from untidy import Saturated

_CLAIMS: dict[str, Claim] = {
    "pure": lb.PureDP(),
    "(ε, δ)": lb.ApproxDP(delta=peers.DELTA),
    "GDP": lb.GaussianDP(),
}
_GAMES: dict[str, Any] = {
    "N(1)": Gaussian(mu=1.0),
    "5 % tail": TwoSidedTail(share=0.05, shift=20.0),
    "saturated": Saturated(),
}
# From so many examples on, one game of each
_LARGE = 10**6


def processor_milliseconds(work: Callable[[], object]) -> float:
    """Return milliseconds of processor time that work takes."""
    start = time.process_time()
    work()
    return 1e3 * (time.process_time() - start)


def median_times(game: Any, m: int, seeds: int) -> list[float]:
    """Return medians of sorting, and for each claim of the default and of `OutsideIn` alone.

    Games of other seeds have new counts; the first, which is not counted, makes the plan for their
    number.
    """
    times_of_games = []
    for seed in range(seeds + 1):
        played = game(m, seed=seed)
        design = lb.Coins(played.member)
        works: list[Callable[[], object]] = [partial(np.argsort, played.scores)]
        for claim in _CLAIMS.values():
            default_audit = partial(lb.audit, played.scores, design, claim=claim, seed=0)
            works += [default_audit, partial(default_audit, cuts=lb.OutsideIn())]
        times_of_games.append([processor_milliseconds(work) for work in works])
    medians: list[float] = np.median(times_of_games[1:], axis=0).tolist()
    return medians


def main() -> None:
    """Print a table: sorting, then the default and in brackets `OutsideIn` alone."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=[10**k for k in range(3, 8)])
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    _core.set_threads(1)
    print(f"| game | examples | argsort | {' | '.join(_CLAIMS)} |")
    print(f"|---|--:|--:|{'--:|' * len(_CLAIMS)}")
    for name, game in _GAMES.items():
        for m in given.sizes:
            seeds = given.seeds
            if m >= _LARGE:
                seeds = 1
            sorting, *times_of_audits = median_times(game, m, seeds)
            cells = [name, f"{m:,}", f"{sorting:,.1f}"]
            for default, outside_in in zip(
                times_of_audits[::2], times_of_audits[1::2], strict=True
            ):
                cells.append(f"{default:,.1f} ({outside_in:,.1f})")
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
