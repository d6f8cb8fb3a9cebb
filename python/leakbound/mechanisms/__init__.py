"""Audits of mechanisms that can be run again, and mechanisms with known faults to try them on."""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
