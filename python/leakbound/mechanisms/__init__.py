"""Mechanisms that can be run again: audits of them, known faults, and local randomisers."""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
