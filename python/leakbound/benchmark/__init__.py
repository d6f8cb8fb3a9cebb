"""Compare bounds: how much they prove, and how often they are false.

`run` plays games with a known truth, or stored scores of trained models. Every bound audits every
game, and each audit gives a row with the bound, the truth, and the bound of the best fixed
threshold with labels known. A game is one of the mechanisms here or any callable
``game(m, seed=seed)``. A bound is a cut policy or your own function,
``bound(scores, member, claim, level)``.

Examples
--------
>>> import leakbound as lb
>>> def half(scores, member, claim, level):
...     right = int(((scores > 0) == member).sum())
...     return claim.lower_bound(right, member.size, member.size, level)
>>> table = run([Gaussian(mu=1), Noise()], [lb.KLScan(), half], m=[200], seeds=range(9))
>>> [(line["method"], line["false_claims"]) for line in table.summary().lines]
[('KLScan', 0), ('half', 0), ('KLScan', 0), ('half', 0)]
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
