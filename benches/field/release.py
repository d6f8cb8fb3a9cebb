"""Audit one release of many public keys, with a fair coin for the record of each key."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import leakbound as lb
from leakbound._base.types import BoolArray, FloatArray
from leakbound.mechanisms import Case

__all__ = ["audit_release"]

KEYS = 100_000
KNOWN, AUDITED = 0, 1
"""Seeds of the coins behind d0 and d1 of the case."""


def audit_release(case: Case, confidence: float, seed: int) -> lb.AuditResult:
    """Score the release of d1 by what the release of d0, whose coins are known, shows of values."""
    rng = np.random.default_rng(seed)
    known = released(case, case.d0, rng)
    audited = released(case, case.d1, rng)
    scores = log_ratios(known, coins(KNOWN), audited)
    design = lb.Coins(coins(AUDITED))
    return lb.audit(scores, design, claim=case.claim, confidence=confidence, seed=seed)


def released(case: Case, counts: Any, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the counts of one release."""
    return np.asarray(case.run(counts, rng), dtype=np.int64)


def coins(seed: int) -> BoolArray:
    """Return for each key whether its one record is in the data, as the case draws it."""
    return np.random.default_rng(seed).random(KEYS) < 0.5


def log_ratios(
    known: NDArray[np.int64], heads: BoolArray, audited: NDArray[np.int64]
) -> FloatArray:
    """Look counts up in the log-ratios of frequencies under heads and under tails."""
    least = min(known.min(), audited.min())
    size = max(known.max(), audited.max()) - least + 1
    under_heads = np.bincount(known[heads] - least, minlength=size) + 0.5
    under_tails = np.bincount(known[~heads] - least, minlength=size) + 0.5
    scores: FloatArray = np.log(under_heads / under_tails)[audited - least]
    return scores
