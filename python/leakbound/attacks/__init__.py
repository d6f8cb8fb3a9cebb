"""Membership attacks: from what models say about examples to one score for each of them.

They need no torch: losses and margins come from anywhere, such as `leakbound.torch`. In all results
a higher score means a likelier member. What an audit proves with them holds whichever
attack is chosen, as long as it is chosen before membership is looked at.

Examples
--------
>>> import numpy as np
>>> from leakbound.attacks import offline_lira
>>> margins = np.array([3.0, 1.0, 2.0])
>>> without = np.array([[0.5, 0.4, 1.9], [1.5, 0.8, 2.1]])  # two models not trained on them
>>> offline_lira(margins, without)
Scores(offline_lira, m=3, from 0 to 4.472)
"""

from leakbound._base.scores import Scores
from leakbound.attacks.scores import margin_threshold, offline_lira, rmia, score

__all__ = [
    "Scores",
    "margin_threshold",
    "offline_lira",
    "rmia",
    "score",
]
