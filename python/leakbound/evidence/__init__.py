"""Evidence that others can check: bundles with everything needed to recompute a result."""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
