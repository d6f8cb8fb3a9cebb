"""PANORAMIA: audits of trained models without retraining, from their members to bounds.

`run` goes through both phases: it fits a generator to some of the members, trains a helper on what
it generates, asks the target of members and generated examples, trains a baseline and an attack,
tosses the coins, and audits. With real non-members it adds the two comparisons of the paper's
Table 3. The audit of given scores alone is `leakbound.audit`.

References
----------
M. Kazmi, H. Lautraite, A. Akbari, Q. Tang, M. Soroco, T. Wang, S. Gambs, M. Lécuyer, "PANORAMIA:
Privacy Auditing of Machine Learning Models without Retraining", 2024, arXiv:2402.09477.
"""

from leakbound.panoramia.losses import Losses
from leakbound.panoramia.models.attack import StackedAttack
from leakbound.panoramia.options import Helper, Options
from leakbound.panoramia.report import PanoramiaReport
from leakbound.panoramia.scores import GameScores
from leakbound.panoramia.study import run
from leakbound.panoramia.table import HEADINGS, NOTE, PanoramiaRow, Saturation, Spread

__all__ = [
    "HEADINGS",
    "NOTE",
    "GameScores",
    "Helper",
    "Losses",
    "Options",
    "PanoramiaReport",
    "PanoramiaRow",
    "Saturation",
    "Spread",
    "StackedAttack",
    "run",
]
