"""Claims: the families of privacy guarantees that an audit can refute.

A claim turns a value of its parameter into the most that a correct guess may be worth.
"""

from leakbound.claims.families import (
    CLAIMS,
    FAMILIES,
    AnyFamily,
    Claim,
    FamilyClaim,
    GaussianDP,
    LaplaceDP,
    SubsampledGaussianDP,
    TradeOffFamily,
)
from leakbound.claims.pure_and_approximate import ApproxDP, PureDP, replacing

__all__ = [
    "CLAIMS",
    "FAMILIES",
    "AnyFamily",
    "ApproxDP",
    "Claim",
    "FamilyClaim",
    "GaussianDP",
    "LaplaceDP",
    "PureDP",
    "SubsampledGaussianDP",
    "TradeOffFamily",
    "replacing",
]
