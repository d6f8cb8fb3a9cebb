"""What audits return: frozen results that say what their number means, and go to JSON and back."""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
