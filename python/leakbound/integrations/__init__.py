"""Audits inside the training loops of other libraries, which are loaded when they are used."""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
