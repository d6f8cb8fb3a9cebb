"""Poisson-binomial tails and inverses through Python, beside scipy and fast-poibin."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest

from leakbound import stats
from poisson_binomial_peers import LARGEST_SIZE, PEERS, law
from ratios import Ratio, measure

Record: TypeAlias = Callable[[Ratio, Callable[[], object]], None]

MODULES = {"scipy": "scipy.stats", "fast-poibin": "fast_poibin"}
ROUNDS = {1_000: 51, 10_000: 21, 100_000: 3, 1_000_000: 3}
# Beyond its largest size a peer takes minutes.
CASES = [(peer, size) for peer in PEERS for size in ROUNDS if size <= LARGEST_SIZE[peer]]


@pytest.mark.parametrize(("peer", "size"), CASES)
def test_tail(record: Record, peer: str, size: int) -> None:
    pytest.importorskip(MODULES[peer])
    p, v = law(size)
    tail = PEERS[peer]
    # Right to what the peer is good for: its rounding error, absolute, grows with n.
    assert stats.poisson_binomial_tail(v, p) == pytest.approx(tail(v, p), rel=1e-8)
    ratio = measure(
        "Poisson-binomial tail",
        lambda: stats.poisson_binomial_tail(v, p),
        peer=peer,
        run_peer=lambda: tail(v, p),
        size=size,
        rounds=ROUNDS[size],
    )
    record(ratio, lambda: stats.poisson_binomial_tail(v, p))


@pytest.mark.parametrize("size", ROUNDS)
def test_inverse(record: Record, size: int) -> None:
    p, v = law(size)
    offsets = np.log(p / (1 - p))
    epsilon = stats.poisson_binomial_epsilon(v, offsets, beta=0.05)
    tail = stats.poisson_binomial_tail_offsets(v, offsets=offsets, epsilon=epsilon)
    assert tail == pytest.approx(0.05, rel=1e-9)
    assert tail <= 0.05 * (1 + 1e-13)
    ratio = measure(
        "Poisson-binomial inverse",
        lambda: stats.poisson_binomial_epsilon(v, offsets, beta=0.05),
        peer="one tail",
        run_peer=lambda: stats.poisson_binomial_tail_offsets(v, offsets=offsets, epsilon=0.0),
        size=size,
        rounds=3 * ROUNDS[size],
    )
    record(ratio, lambda: stats.poisson_binomial_epsilon(v, offsets, beta=0.05))
