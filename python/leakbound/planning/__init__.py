"""Before an audit: who is drawn, how many canaries it needs, and what it can prove."""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
