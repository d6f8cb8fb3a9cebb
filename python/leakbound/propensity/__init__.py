"""Propensities: how likely examples with given features are to be members.

Where members and non-members were not drawn by coin tosses, the propensity π(x) = P(member | x)
says how many correct guesses the features explain. It is learnt, its error is covered by a
confidence set of a logistic model, and its form is tested; other classifiers are for exploring.

Examples
--------
>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> member = rng.random(3000) < 0.5
>>> features = rng.normal(size=(3000, 4)) + 0.3 * member[:, None]
>>> learn, audit = hold_out(np.arange(3000), size=1500, seed=0)
>>> fit = LogisticPropensity().fit(features[learn], member[learn], ids=learn, seed=0)
>>> fit.check_disjoint(audit)
>>> fit.overlap(features[audit], member[audit])
Overlap(m=1500, m_eff=1170, effective members 717 of 777, non-members 662 of 723)
>>> falsify(fit.log_odds(features[audit]), features[audit], member[audit]).refuted
False
"""

from leakbound.propensity.confidence import ConfidenceSet
from leakbound.propensity.falsification import (
    Falsification,
    FormTest,
    bet_against_set,
    falsify,
    link_bent,
    products_missing,
)
from leakbound.propensity.fit import PropensityFit
from leakbound.propensity.models import (
    CrossFit,
    LogisticPropensity,
    SklearnPropensity,
    cross_fit,
    hold_out,
)
from leakbound.propensity.overlap import Overlap

__all__ = [
    "ConfidenceSet",
    "CrossFit",
    "Falsification",
    "FormTest",
    "LogisticPropensity",
    "Overlap",
    "PropensityFit",
    "SklearnPropensity",
    "bet_against_set",
    "cross_fit",
    "falsify",
    "hold_out",
    "link_bent",
    "products_missing",
]
