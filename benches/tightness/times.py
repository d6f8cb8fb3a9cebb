"""Processor time of audits by default and of `OutsideIn` alone, beside sorting the same scores.

export PYTHONPATH=benches/python
python benches/tightness/times.py                        from 10³ to 10⁷ examples, one thread
python benches/tightness/times.py --sizes 1000 --seeds 9
"""

import argparse
import os
import time
from collections.abc import Callable
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


def spent(work: Callable[[], object]) -> float:
    """Return milliseconds of processor time that work takes."""
    start = time.process_time()
    work()
    return 1e3 * (time.process_time() - start)


def row(game: Any, m: int, seeds: int) -> list[float]:
    """Return medians of sorting, and for each claim of the default and of `OutsideIn` alone.

    Games of other seeds have new counts; the plan for their number is made before, once.
    """
    times: dict[str, list[float]] = {}
    for seed in range(-1, seeds):
        played = game(m, seed=seed + 1)
        scores, design = played.scores, lb.Coins(played.member)
        works: dict[str, Callable[[], object]] = {"sort": lambda s=scores: np.argsort(s)}  # type: ignore[misc]
        for name, claim in _CLAIMS.items():
            for cuts in (None, lb.OutsideIn()):
                options = {"claim": claim, "cuts": cuts, "seed": 0}
                works[f"{name} {cuts}"] = lambda o=options, s=scores, d=design: lb.audit(s, d, **o)  # type: ignore[misc]
        for name, work in works.items():
            needed = spent(work)
            if seed >= 0:
                times.setdefault(name, []).append(needed)
    return [float(np.median(each)) for each in times.values()]


def main() -> None:
    """Print a table: sorting, then the default and in brackets `OutsideIn` alone."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", type=int, default=[10**k for k in range(3, 8)])
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    _core.set_threads(1)
    peers.say(f"| game | examples | argsort | {' | '.join(_CLAIMS)} |")
    peers.say(f"|---|--:|--:|{'--:|' * len(_CLAIMS)}")
    for name, game in _GAMES.items():
        for m in given.sizes:
            seeds = given.seeds
            if m >= _LARGE:
                seeds = 1
            sort, *each = row(game, m, seeds)
            pairs = zip(each[::2], each[1::2], strict=True)
            said = " | ".join(f"{one:,.1f} ({alone:,.1f})" for one, alone in pairs)
            peers.say(f"| {name} | {m:,} | {sort:,.1f} | {said} |")


if __name__ == "__main__":
    main()
