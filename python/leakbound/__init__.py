"""Statistically valid lower bounds on the privacy leakage of a trained model.

Three ideas compose: a *claim* is a family of guarantees, such as pure ε-differential privacy; an
*audit* is a game that says how membership was assigned, and so what a correct guess proves; a *cut
policy* chooses which thresholds of a ranking are tested, and corrects for their number.

Examples
--------
>>> import numpy as np
>>> import leakbound as lb
>>> rng = np.random.default_rng(0)
>>> member = rng.random(1000) < 0.5            # a fair coin for each example
>>> scores = rng.normal(size=1000) + member    # from the model trained on the members
>>> result = lb.audit(scores, lb.Coins(member))
>>> result.kind
'lower_bound'
"""

from leakbound._base.imports import lazy_attributes, provide

# What lower rooms ask for by its name alone, as only the package knows who gives it.
provide("write_bundle", "leakbound.evidence")
provide("write_synthetic_bundle", "leakbound.evidence")

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
