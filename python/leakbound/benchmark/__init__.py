"""How much bounds prove, and how often they are false: every bound on every game, row by row.

`run` plays games of known truth, or stored scores of trained models, lets each bound audit each of
them, and keeps a row: the bound beside the truth and beside the best fixed cut with the labels at
hand. A game is one of the mechanisms here or anything that is called as ``game(m, seed=seed)``, and
a bound is a cut policy or a function of your own, ``bound(scores, member, claim, level)``.

Examples
--------
>>> import leakbound as lb
>>> def uncorrected(scores, member, claim, level):  # the best of ten cuts at the level of one
...     return max(
...         lb.audit(scores, lb.Coins(member), claim=claim, cuts=lb.Fixed(10 * r)).bound
...         for r in range(1, 11)
...     )
>>> table = run([Gaussian(mu=1), Noise()], [lb.KLScan(), uncorrected], m=[200], seeds=range(9))
>>> [line["method"] for line in table.summary().lines]
['KLScan', 'uncorrected', 'KLScan', 'uncorrected']
"""

from leakbound.benchmark.bounds import Audit
from leakbound.benchmark.games import (
    DPSGD,
    Attack,
    Gaussian,
    Laplace,
    LossesNearZero,
    Mixture,
    Noise,
    OneSidedTail,
    RandomizedResponse,
    Rankings,
    Scores,
    Shifted,
    Ties,
    TwoSidedTail,
)
from leakbound.benchmark.running import run
from leakbound.benchmark.table import Summary, Table

__all__ = [
    "DPSGD",
    "Attack",
    "Audit",
    "Gaussian",
    "Laplace",
    "LossesNearZero",
    "Mixture",
    "Noise",
    "OneSidedTail",
    "RandomizedResponse",
    "Rankings",
    "Scores",
    "Shifted",
    "Summary",
    "Table",
    "Ties",
    "TwoSidedTail",
    "run",
]
