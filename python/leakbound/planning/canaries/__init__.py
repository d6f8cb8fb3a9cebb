"""Canaries for black-box audits: examples made of the user's data, and a fair coin for each.

A canary is an example of its own. Train on `Canaries.included`, score all of them, audit the scores
against `Canaries.plan`: the bound is on adding or removing one example, whichever kind they are
of. What kinds differ in is how much a score tells. docs/canaries.md has it measured.

Examples
--------
>>> import numpy as np
>>> from leakbound import canaries
>>> x, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 4
>>> made = canaries.mislabelled(x, y, 6, seed=0)
>>> made
Canaries(mislabelled, n=6, members=4)
>>> bool((made.y != y[made.taken[:, 0]]).all())
True
"""

from leakbound.planning.canaries.base import Canaries
from leakbound.planning.canaries.labelled import mislabelled, random_pixels
from leakbound.planning.canaries.tokens import new_tokens, random_tokens

__all__ = [
    "Canaries",
    "mislabelled",
    "new_tokens",
    "random_pixels",
    "random_tokens",
]
