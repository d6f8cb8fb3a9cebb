"""Propensities: the probability that an example with given features is a member.

Where members and non-members were not drawn by coin tosses, the propensity π(x) = P(member | x)
says how many correct guesses the features explain. It is learnt, its error is covered by a
confidence set of a logistic model, and its form is tested; other classifiers are for exploring.
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
