"""Membership attacks: one score for each example, computed from what models answer.

They need no torch: losses and margins come from anywhere, such as `leakbound.torch`. In all results
a higher score means a likelier member. What an audit proves with them holds whichever
attack is chosen, as long as it is chosen before membership is looked at.
"""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
