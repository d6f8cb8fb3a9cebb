"""Games with known truth: what audits are tested on, and planned with.

Each function plays one idealised game and returns its scores, its membership and the exact
guarantee of the mechanism behind them. A bound that an audit derives from the scores and membership
is false if it exceeds that truth, and may be so no more often than its confidence allows.
"""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
