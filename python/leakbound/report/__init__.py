"""Reports: one HTML page for a result, and the figures on it.

This package does not depend on types of results: each provides its `Description`.
"""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
