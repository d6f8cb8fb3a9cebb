"""Canaries of DP-SGD at the setting of a paper, without a network, by score and by claim.

One training run releases, of every canary, its clipped gradient plus noise. The setting is that of
Mahloujifar, Melis and Chaudhuri (2025, arXiv 2410.22235) on CIFAR-10: batches of 4,096 of 50,000
examples, 2,500 steps, 5,000 canaries.

Usage: python benches/python/dp_sgd_games.py [--games 4] [--epsilon 8 4 2] [--steps 2500]
[--canaries 5000]
"""

import argparse
import sys
from typing import TYPE_CHECKING

import numpy as np

import leakbound as lb
from leakbound.audits.dp_sgd.audit import audit_dp_sgd
from leakbound.audits.dp_sgd.canaries import CanaryDesign, Recorder

if TYPE_CHECKING:
    from leakbound.claims import Claim

EXAMPLES = 50_000
BATCH = 4_096
DELTA = 1e-5


def noise_for(family: lb.SubsampledGaussianDP, epsilon: float) -> float:
    """Return the noise multiplier of which tests attain an ε."""
    low = 0.5
    high = 20.0
    while high / low > 1 + 1e-5:
        middle = (low * high) ** 0.5
        if family.attained(1 / middle, "both").epsilon(DELTA) > epsilon:
            low = middle
        else:
            high = middle
    return high


def play(
    family: lb.SubsampledGaussianDP, noise: float, canaries: int, seed: int
) -> dict[str, float]:
    """Return the ε that one run proves, by score and claim."""
    design = CanaryDesign.create(
        canaries=canaries,
        step_canaries=None,
        sampling_rate=family.sampling_rate,
        max_steps=family.steps,
        seed=seed,
    )
    recorder = Recorder(design=design, planned_noise=noise)
    rng = np.random.default_rng([seed, 77])
    dots = np.zeros(canaries)
    for _ in range(family.steps):
        values = noise * rng.normal(size=design.size)
        values[recorder.included()] += 1
        dots += values[:canaries]
        recorder.record(values, noise, int(rng.binomial(EXAMPLES, family.sampling_rate)))
    seen = recorder.observed()
    member = design.member()
    watched = audit_dp_sgd(seen, examples=(EXAMPLES, EXAMPLES))
    scores = {"dot products": dots, "likelihood ratios": seen.log_odds}
    claims: dict[str, Claim] = {
        "no family": lb.ApproxDP(delta=DELTA),
        "Gaussian DP": lb.GaussianDP(),
    }
    found = {
        f"{score}, {name}": lb.audit(scores[score], lb.Coins(member), claim=claim).epsilon(DELTA)
        for score in scores
        for name, claim in claims.items()
    }
    found["likelihood ratios, DP-SGD"] = watched.membership.epsilon(DELTA)
    return found | {"steps": watched.steps.epsilon(DELTA)}


def main() -> None:
    """Print the mean over games, the least and the most."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=4)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[8.0, 4.0, 2.0])
    parser.add_argument("--steps", type=int, default=2_500)
    parser.add_argument("--canaries", type=int, default=5_000)
    options = parser.parse_args()
    family = lb.SubsampledGaussianDP(sampling_rate=BATCH / EXAMPLES, steps=options.steps)
    for epsilon in options.epsilon:
        noise = noise_for(family, epsilon)
        games = [
            play(family, noise=noise, canaries=options.canaries, seed=seed)
            for seed in range(options.games)
        ]
        sys.stdout.write(f"true ε {epsilon:g}, noise multiplier {noise:.4g}\n")
        for name in games[0]:
            proved = [game[name] for game in games]
            spread = f"{np.mean(proved):.2f} ({min(proved):.2f}, {max(proved):.2f})"
            sys.stdout.write(f"  {name}: {spread}\n")


if __name__ == "__main__":
    main()
