"""
A bound that holds at every moment
==================================

Canaries arrive in batches, and the audit may stop as soon as the bound is large enough.
"""

import matplotlib.pyplot as plt
import numpy as np

import leakbound as lb

game = lb.simulate.randomized_response(3_000, epsilon=3.0, seed=0)
stream = lb.Stream()
bounds = [
    stream.update(game.scores[rows], game.member[rows]).bound
    for rows in np.split(np.arange(3_000), 30)
]

_, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.step(np.arange(100, 3_001, 100), bounds, where="post", color="#4a6fa5")
ax.axhline(3.0, color="#444", linestyle="--")
ax.annotate("truth", (100, 3.0), xytext=(0, 4), textcoords="offset points", color="#444")
ax.set(xlabel="canaries seen", ylabel="ε proved so far")
ax.set_ylim(bottom=0)
_ = ax.spines[["top", "right"]].set_visible(False)
