"""Poisson-binomial tails and inverses through Python, beside scipy and fast-poibin."""

from functools import partial

import pytest
from scipy.special import logit

from leakbound import stats
from poisson_binomial_peers import LARGEST_SIZE, PEERS, law
from ratios import Compare

MODULES = {"scipy": "scipy.stats", "fast-poibin": "fast_poibin"}
ROUNDS = {1_000: 51, 10_000: 21, 100_000: 3, 1_000_000: 3}
# Beyond its largest size a peer takes minutes.
CASES = [(peer, size) for peer in PEERS for size in ROUNDS if size <= LARGEST_SIZE[peer]]


@pytest.mark.parametrize(("peer", "size"), CASES)
def test_tail(compare: Compare, peer: str, size: int) -> None:
    pytest.importorskip(MODULES[peer])
    probabilities, threshold = law(size)
    tail = partial(stats.poisson_binomial_tail, threshold, probabilities)
    tail_of_peer = partial(PEERS[peer], threshold, probabilities)
    # Right to what the peer is good for: its rounding error, absolute, grows with n.
    assert tail() == pytest.approx(tail_of_peer(), rel=1e-8)
    compare(
        "Poisson-binomial tail",
        tail,
        peer=peer,
        run_peer=tail_of_peer,
        size=size,
        rounds=ROUNDS[size],
    )


@pytest.mark.parametrize("size", ROUNDS)
def test_inverse(compare: Compare, size: int) -> None:
    probabilities, threshold = law(size)
    log_odds = logit(probabilities)
    epsilon_of_tail = partial(stats.poisson_binomial_epsilon, threshold, log_odds, beta=0.05)
    tail_at = partial(stats.poisson_binomial_tail_offsets, threshold, log_odds)
    tail = tail_at(epsilon=epsilon_of_tail())
    assert tail == pytest.approx(0.05, rel=1e-9)
    assert tail <= 0.05 * (1 + 1e-13)
    compare(
        "Poisson-binomial inverse",
        epsilon_of_tail,
        peer="one tail",
        run_peer=partial(tail_at, epsilon=0.0),
        size=size,
        rounds=3 * ROUNDS[size],
    )
