"""Cut policies: which thresholds of a path are tested, and the correction for their number.

A path is the sequence of guesses in visiting order; a cut keeps its first guesses and abstains on
the rest. A policy turns scores, membership and a level into the best bound on log-odds.
"""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
