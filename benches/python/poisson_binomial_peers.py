"""What other packages make of the tails that `benches/rust/poisson_binomial.rs` times.

Prints a JSON line for each package that is installed and each size: seconds per tail and the tail.
"""

import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["PEERS", "law"]

Probabilities: TypeAlias = NDArray[np.float64]
Peer: TypeAlias = Callable[[int, Probabilities], float]
"""From a threshold and probabilities to the probability of at least so many successes."""
LARGEST_SIZE = {"scipy": 100_000, "fast-poibin": 1_000_000}
"""Beyond these sizes a peer takes minutes."""


def law(size: int) -> tuple[Probabilities, int]:
    """Probabilities spread over (0.05, 0.95) in a fixed order, and a v three deviations out."""
    # The fractional parts of multiples of the golden ratio are spread evenly.
    places = np.arange(size) * 0.6180339887498949 % 1.0
    probabilities = np.asarray(0.05 + 0.9 * places, dtype=np.float64)
    variances = probabilities * (1 - probabilities)
    threshold = probabilities.sum() + 3.0 * np.sqrt(variances.sum())
    return probabilities, int(threshold)


def scipy_tail(threshold: int, probabilities: Probabilities) -> float:
    from scipy.stats import poisson_binom

    return float(poisson_binom.sf(threshold - 1, probabilities))


def fast_poibin_tail(threshold: int, probabilities: Probabilities) -> float:
    package = importlib.import_module("fast_poibin")
    mass = package.PoiBin(probabilities).pmf
    return float(mass[threshold:].sum())


PEERS: dict[str, Peer] = {"scipy": scipy_tail, "fast-poibin": fast_poibin_tail}


def median_seconds(work: Callable[[], object]) -> float:
    """Return the median time of 3 to 50 rounds, of two seconds together if that is fewer."""
    seconds: list[float] = []
    while len(seconds) < 3 or (sum(seconds) < 2 and len(seconds) < 50):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]]
    for name, tail in PEERS.items():
        for size in sizes:
            if size > LARGEST_SIZE[name]:
                continue
            probabilities, threshold = law(size)
            try:
                value = tail(threshold, probabilities)
            except ImportError:
                break
            line = {
                "peer": name,
                "size": size,
                "seconds": median_seconds(partial(tail, threshold, probabilities)),
                "tail": value,
            }
            print(json.dumps(line))


if __name__ == "__main__":
    main()
