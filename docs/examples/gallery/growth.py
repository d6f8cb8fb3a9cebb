"""
Bounds against the number of canaries
=====================================

What an audit proves of the same leakage as the number of examples grows, beside its ceiling:
twenty games each, the line their mean and the band from the least to the greatest.
"""

import matplotlib.pyplot as plt
import numpy as np

import leakbound as lb

sizes = [100, 200, 400, 800, 1_600, 3_200]
bounds = np.array(
    [
        [
            lb.audit_one_run(game.scores, game.member).bound
            for game in (
                lb.simulate.randomized_response(m, epsilon=2.0, seed=seed) for seed in range(20)
            )
        ]
        for m in sizes
    ]
)

_, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(sizes, bounds.mean(axis=1), marker="o", color="#4a6fa5", label="bound, mean")
ax.fill_between(sizes, bounds.min(axis=1), bounds.max(axis=1), color="#4a6fa5", alpha=0.2)
ax.axhline(2.0, color="#444", linestyle="--", label="truth")
ax.set(xscale="log", xlabel="canaries", ylabel="ε", xticks=sizes, xticklabels=sizes, ylim=(0, 2.2))
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
_ = ax.legend(frameon=False, loc="lower right")
