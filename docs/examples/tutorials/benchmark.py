"""
Comparing bounds: a benchmark
=============================

Two audits of the same scores may both be valid, and yet one may prove twice as much as the other.
:doc:`/theory/benchmark` explains how to measure this, and how to add your own game, bound or score
file. These pictures are drawn from results that come with leakbound (`make tightness` computes new
ones), at 95 % confidence and, unless a caption says otherwise, at δ = 10⁻⁵.
"""

# %%
# How much is proved
# ------------------
# The picture shows five of twenty bounds, and the best fixed threshold, which can only be chosen if
# the labels are known. The dashed line is the true ε, if it fits into the picture.

import pyarrow as pa
from pyarrow import compute

from leakbound import benchmark, datasets

stored = benchmark.Table.read(datasets.path("benchmark")).to_arrow()
approximate = "approximate DP with delta = 1e-05"
shown = ["KLScan", "OutsideIn", "steinke_theorem_5_2", "panoramia_union", "uncorrected_sweep"]
some = compute.is_in(stored["method"], pa.array(shown))
plain = compute.equal(stored["options"], "")
_ = benchmark.draw_bounds(benchmark.Table(stored.filter(compute.and_(some, plain))), approximate)

# %%
# False claims
# ------------
# Scores of pure noise reveal nothing, so every bound above 0 is a false claim. At 95 % confidence,
# at most 5 % of the games may have a false claim. Confidence limits are exact, and red if they
# exclude 5 %. The uncorrected sweep has the largest bounds in the picture above, but it is not
# valid.

judged = ["Noise()", "Gaussian(mu=1.0)", "Mixture(mu=1.0, dependence=0.95)"]
games = stored.filter(compute.is_in(stored["game"], pa.array(judged)))
games = benchmark.Table(games.filter(compute.field("m") == 1000))
_ = benchmark.draw_false_claims(games, approximate)

# %%
# For Gaussian DP, methods that treat examples as independent are not valid on the mixture, whose
# examples leak together:

_ = benchmark.draw_false_claims(games, "Gaussian DP")
