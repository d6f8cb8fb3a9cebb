"""
Bounds against the number of canaries
=====================================

What an audit proves as the number of examples grows, at the same leakage. The line is the mean of
200 simulated audits, and the band contains the middle 90 % of them.
"""

import matplotlib.pyplot as plt

from leakbound import planning

sizes = [100, 200, 400, 800, 1_600, 3_200]
found = [planning.power(m, truth=2.0) for m in sizes]

_, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(sizes, [one.mean for one in found], marker="o", color="#4a6fa5", label="bound, mean")
low, high = [one.low for one in found], [one.high for one in found]
ax.fill_between(sizes, low, high, color="#4a6fa5", alpha=0.2)
ax.axhline(2.0, color="#444", linestyle="--", label="truth")
ax.set(xscale="log", xlabel="canaries", ylabel="ε", xticks=sizes, xticklabels=sizes)
ax.set_ylim(bottom=0)
ax.minorticks_off()
ax.spines[["top", "right"]].set_visible(False)
_ = ax.legend(frameon=False, loc="lower right")

# %%
# At 95 % confidence, one audit in twenty may prove more than the true ε. The upper end of the band
# is close to it, because one audit in twenty is above the band.
[f"{m:,}: {one.low:.2f} to {one.high:.2f}" for m, one in zip(sizes, found, strict=True)]
