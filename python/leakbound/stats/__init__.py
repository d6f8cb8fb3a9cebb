"""The numbers behind the audits, one by one: tails, limits and bounds over all cuts of a path.

Functions of numbers broadcast their arguments; scalars give a Python float. Lower limits are
rounded down and upper tails up, by less than 1e-12 relative.
"""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
