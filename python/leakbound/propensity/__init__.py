"""Propensities: the probability that an example with given features is a member.

Where members and non-members were not drawn by coin tosses, the propensity π(x) = P(member | x)
says how many correct guesses the features explain. It is learnt, its error is covered by a
confidence set of a logistic model, and its form is tested; other classifiers are for exploring.
"""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
