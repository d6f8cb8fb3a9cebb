"""
One game, three claims
======================

The same scores audited as pure DP, as (ε, δ)-DP and within Gaussian DP, which is true of this game.
All three bounds hold together, because each claim is audited at a third of the error probability.
The bars show ε at δ = 10⁻⁵; the bar of pure DP is about a different guarantee, for comparison.
"""

import matplotlib.pyplot as plt

import leakbound as lb

game = lb.simulate.gaussian(5_000, mu=1.0, seed=0)
claims = [lb.PureDP(), lb.ApproxDP(delta=1e-5), lb.GaussianDP()]
confidence = 1 - 0.05 / len(claims)
coins = lb.Coins(game.member)
results = [lb.audit(game.scores, coins, claim=claim, confidence=confidence) for claim in claims]

names = ["pure DP", "(ε, δ)-DP", "Gaussian DP"]
bounds = [results[0].bound, results[1].bound, results[2].epsilon(1e-5)]
_, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
bars = ax.barh(names, bounds, color="#4a6fa5")
ax.bar_label(bars, fmt="%.2f", padding=4)
ax.invert_yaxis()
ax.set_xlabel("lower bound on ε, 95 % together")
_ = ax.spines[["top", "right"]].set_visible(False)
