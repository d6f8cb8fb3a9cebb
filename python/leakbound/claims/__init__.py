"""Claims: the families of privacy guarantees that an audit can refute.

A claim turns a value of its parameter into the most that a correct guess may be worth.
"""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
