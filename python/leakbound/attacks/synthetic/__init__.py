"""Membership attacks on synthetic data: from a synthetic table to a score for each record.

The records of a random split, those that the generator was trained on and others, go in together
and without a label: `Tables` encodes them with the synthetic table, and attacks score them. They
compare with all audited records, each left out of its own reference, or with a third table; never
with the non-members, which would put their labels into the scores.
"""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
