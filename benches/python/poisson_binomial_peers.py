"""What other packages make of the tails that `benches/rust/poisson_binomial.rs` times.

Prints a JSON line for each package that is installed and each size: seconds per tail and the tail.
"""

import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

__all__ = ["PEERS", "law"]

Peer = Callable[[int, NDArray[np.float64]], float]
SLOWEST = {"scipy": 100_000, "fast-poibin": 1_000_000}
"""Beyond these sizes a peer takes minutes."""


def law(size: int) -> tuple[NDArray[np.float64], int]:
    """Probabilities spread over (0.05, 0.95) in a fixed order, and a v three deviations out."""
    steps = np.arange(size) * 0.6180339887498949 % 1.0
    p = np.asarray(0.05 + 0.9 * steps, dtype=np.float64)
    return p, int(p.sum() + 3.0 * np.sqrt((p * (1 - p)).sum()))


def scipy_tail(v: int, p: NDArray[np.float64]) -> float:
    from scipy.stats import poisson_binom

    return float(poisson_binom.sf(v - 1, p))


def fast_poibin_tail(v: int, p: NDArray[np.float64]) -> float:
    package = importlib.import_module("fast_poibin")
    return float(package.PoiBin(p).pmf[v:].sum())


PEERS: dict[str, Peer] = {"scipy": scipy_tail, "fast-poibin": fast_poibin_tail}


def main() -> None:
    for name, tail in PEERS.items():
        for size in map(int, sys.argv[1:]):
            if size > SLOWEST[name]:
                continue
            p, v = law(size)
            try:
                value = tail(v, p)
            except ImportError:
                break
            seconds: list[float] = []
            while len(seconds) < 3 or (sum(seconds) < 2 and len(seconds) < 50):
                start = time.perf_counter()
                tail(v, p)
                seconds.append(time.perf_counter() - start)
            line = {
                "peer": name,
                "size": size,
                "seconds": statistics.median(seconds),
                "tail": value,
            }
            sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
