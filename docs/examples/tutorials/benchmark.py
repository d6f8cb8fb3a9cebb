"""
A benchmark: a game, a bound and a score file of your own
=========================================================

Two audits of the same scores may both be valid, and one may prove twice as much as the other.
:doc:`/benchmark` measures how much; here is what a stranger adds to it, ten lines each.
"""

# %%
# A game
# ------
# A game takes a number of examples and a seed. It returns scores, membership, and what is true of
# the mechanism: here the ε that no bound may exceed.

from dataclasses import dataclass

import numpy as np

import leakbound as lb
from leakbound import benchmark, simulate


@dataclass(frozen=True)
class Response:
    """Half of the reports are right with odds e^ε; the others are noise, and seen to be."""

    epsilon: float

    def __call__(self, m, *, seed):
        rng = np.random.default_rng(seed)
        member = rng.random(m) < 0.5
        reported = rng.random(m) < 0.5
        right = rng.random(m) < np.where(reported, 1 / (1 + np.exp(-self.epsilon)), 0.5)
        scores = np.where(member == right, 1, -1) * (rng.random(m) + reported)
        return simulate.Game(scores=scores, member=member, truth=self.epsilon, parameter="epsilon")


# %%
# A bound
# -------
# A bound takes scores, membership, a claim and the probability of error. The first one guesses
# about all examples. The second one takes the best of twenty numbers of guesses, each at the level
# of one: it is not valid.


def everything(scores, member, claim, level):
    right = int(((scores > np.median(scores)) == member).sum())
    return claim.lower_bound(right, member.size, member.size, level)


def best_of_twenty(scores, member, claim, level):
    order = np.argsort(-scores)
    tops = range(10, 210, 10)
    return max(claim.lower_bound(int(member[order[:r]].sum()), r, member.size, level) for r in tops)


table = benchmark.run(
    games=[Response(epsilon=2.0), benchmark.Gaussian(mu=1.0), benchmark.Noise()],
    bounds=[lb.KLScan(), lb.OutsideIn(), everything, best_of_twenty],
    m=[300, 1000],
    seeds=range(60),
)
print(table.summary())

# %%
# A row is one bound on one game, for whatever you want to do with it:

table.to_arrow().slice(0, 2).to_pylist()[0]

# %%
table.plot("bound against m")

# %%
# Noise leaks nothing, so every bound above 0 is false there. At 95 % confidence 5 % of the games
# may have one. The limits are exact, and red where they exclude that:

table.plot("false claims")

# %%
# A score file
# ------------
# Scores of a model of yours stand in a parquet file with a column `member` and columns of scores.
# The truth is not known then, but the best fixed cut with the labels at hand is.

import tempfile
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

rng = np.random.default_rng(0)
member = rng.random(5000) < 0.5
loss = rng.gamma(2.0, np.where(member, 0.5, 1.0))
file = Path(tempfile.mkdtemp()) / "scores.parquet"
parquet.write_table(pa.table({"score": -loss, "member": member}), file)

mine = benchmark.Scores(file)
print(benchmark.run([mine], [lb.KLScan(), lb.OutsideIn()], m=[5000], seeds=[0]).summary())

# %%
# Ours beside others
# ------------------
# `make tightness` plays these games with published forms and other packages. The figure is made of
# rows that are stored in the repository, at δ = 10⁻⁵ and 95 % confidence, and shows six of the
# fifteen bounds.

repository = Path(benchmark.__file__).parents[3]
stored = benchmark.Table.read(repository / "benches/tightness/page.parquet")
shown = [
    "KLScan",
    "OutsideIn",
    "UnionBound",
    "steinke_theorem_5_2",
    "panoramia_union",
    "uncorrected_sweep",
]
rows = [row for row in stored.to_arrow().to_pylist() if row["method"] in shown]
rows = [row for row in rows if row["options"] == "" or row["options"].startswith("code ")]
some = benchmark.Table.of(rows)
some.plot("bound against m", claim="approximate DP with delta = 1e-05")

# %%
# False claims of all fifteen at m = 1,000. The uncorrected sweep proves most, and is not valid:

largest = [row for row in stored.to_arrow().to_pylist() if row["m"] == 1000]
benchmark.Table.of(largest).plot("false claims", claim="approximate DP with delta = 1e-05")

# %%
# Of Gaussian DP, what takes examples for independent is false on the mixture, whose examples leak
# together:

benchmark.Table.of(largest).plot("false claims", claim="Gaussian DP")
