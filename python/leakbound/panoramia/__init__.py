"""PANORAMIA: audits of trained models without retraining, from their members to bounds.

`run` goes through both phases: it fits a generator to some of the members, trains a helper on what
it generates, asks the target of members and generated examples, trains a baseline and an attack,
tosses the coins, and audits. With real non-members it adds the two comparisons of the paper's
Table 3. The audit of given scores alone is `leakbound.audit`.

References
----------
M. Kazmi, H. Lautraite, A. Akbari, Q. Tang, M. Soroco, T. Wang, S. Gambs, M. Lécuyer, "PANORAMIA:
Privacy Auditing of Machine Learning Models without Retraining", 2024, arXiv:2402.09477.
"""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
