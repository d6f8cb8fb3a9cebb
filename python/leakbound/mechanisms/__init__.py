"""Mechanisms that can be run again: local randomisers, and what audits of them need."""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
