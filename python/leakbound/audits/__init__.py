"""Audits: one verb, a design for each way that members are chosen, and a stream."""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
