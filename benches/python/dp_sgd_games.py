"""Canaries of DP-SGD at the setting of a paper, without a network, by score and by claim.

One training run releases, of every canary, its clipped gradient plus noise. The setting is that of
Mahloujifar, Melis and Chaudhuri (2025, arXiv 2410.22235) on CIFAR-10: batches of 4,096 of 50,000
examples, 2,500 steps, 5,000 canaries.

Usage: python benches/python/dp_sgd_games.py [--games 4] [--epsilon 8 4 2] [--steps 2500]
[--canaries 5000]
"""

import argparse
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

import leakbound as lb
from leakbound.audits.dp_sgd.audit import audit_dp_sgd
from leakbound.audits.dp_sgd.canaries import CanaryDesign, Recorder

if TYPE_CHECKING:
    from leakbound.claims import Claim

EXAMPLES = 50_000
BATCH_SIZE = 4_096
DELTA = 1e-5


def noise_for(family: lb.SubsampledGaussianDP, epsilon: float) -> float:
    """Return the noise multiplier of which tests attain an ε."""
    too_little_noise = 0.5
    enough_noise = 20.0
    while enough_noise / too_little_noise > 1 + 1e-5:
        middle = (too_little_noise * enough_noise) ** 0.5
        attained = family.attained(1 / middle, "both")
        if attained.epsilon(DELTA) > epsilon:
            too_little_noise = middle
        else:
            enough_noise = middle
    return enough_noise


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
    dot_products = np.zeros(canaries)
    for _ in range(family.steps):
        released = noise * rng.normal(size=design.size)
        is_included = recorder.included()
        released[is_included] += 1
        dot_products += released[:canaries]
        batch_size = int(rng.binomial(n=EXAMPLES, p=family.sampling_rate))
        recorder.record(released, noise, batch_size)
    observed = recorder.observed()
    member = design.member()
    scores_by_name = {"dot products": dot_products, "likelihood ratios": observed.log_odds}
    claims: dict[str, Claim] = {
        "no family": lb.ApproxDP(delta=DELTA),
        "Gaussian DP": lb.GaussianDP(),
    }
    epsilons = {}
    coins = lb.Coins(member)
    for score_name, scores in scores_by_name.items():
        for claim_name, claim in claims.items():
            result = lb.audit(scores, coins, claim=claim)
            name = f"{score_name}, {claim_name}"
            epsilons[name] = result.epsilon(DELTA)
    audit = audit_dp_sgd(observed, examples=(EXAMPLES, EXAMPLES))
    epsilons["likelihood ratios, DP-SGD"] = audit.membership.epsilon(DELTA)
    epsilons["steps"] = audit.steps.epsilon(DELTA)
    return epsilons


def main() -> None:
    """Print the mean over games, the least and the most."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=4)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[8.0, 4.0, 2.0])
    parser.add_argument("--steps", type=int, default=2_500)
    parser.add_argument("--canaries", type=int, default=5_000)
    options = parser.parse_args()
    family = lb.SubsampledGaussianDP(sampling_rate=BATCH_SIZE / EXAMPLES, steps=options.steps)
    for epsilon in options.epsilon:
        noise = noise_for(family, epsilon)
        games = [
            play(family, noise=noise, canaries=options.canaries, seed=seed)
            for seed in range(options.games)
        ]
        print(f"true ε {epsilon:g}, noise multiplier {noise:.4g}")
        for name, epsilons in pd.DataFrame(games).items():
            mean = epsilons.mean()
            print(f"  {name}: {mean:.2f} ({epsilons.min():.2f}, {epsilons.max():.2f})")


if __name__ == "__main__":
    main()
