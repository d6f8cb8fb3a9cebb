"""Generators of synthetic non-members: data like the members that no model was trained on.

An audit without retraining compares members with examples that a generator made. One small protocol
holds for all of them: `Generator.fit` learns from members that are kept out of the audit, and
returns a `Sampler`, whose `Sampler.sample` draws as many new examples as are asked for.

Examples
--------
>>> import numpy as np
>>> from leakbound.generators import SequentialCART
>>> rng = np.random.default_rng(0)
>>> members, labels = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)
>>> SequentialCART().fit(members, labels).sample(100, seed=0)
Samples(n=100, shape=(4,), labels=2)
"""

from leakbound._base.imports import lazy_attributes

__getattr__, __dir__, __all__ = lazy_attributes(__name__, __file__)
