"""Audit one release of many public keys, with a fair coin for the record of each key."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import leakbound as lb
from leakbound._base.types import BoolArray, FloatArray
from leakbound.mechanisms import Case

__all__ = ["audit_release"]

KEYS = 100_000
SEED_OF_KNOWN = 0
SEED_OF_AUDITED = 1
"""Seeds of the coins behind d0 and d1 of the case."""


def audit_release(case: Case, confidence: float, seed: int) -> lb.AuditResult:
    """Score the release of d1 by what the release of d0, whose coins are known, shows of values."""
    rng = np.random.default_rng(seed)
    known_counts = released(case, case.d0, rng)
    audited_counts = released(case, case.d1, rng)
    scores = learnt_log_ratios(known_counts, coins(SEED_OF_KNOWN), audited_counts)
    design = lb.Coins(coins(SEED_OF_AUDITED))
    return lb.audit(scores, design, claim=case.claim, confidence=confidence, seed=seed)


def released(case: Case, counts: Any, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the counts of one release."""
    return np.asarray(case.run(counts, rng), dtype=np.int64)


def coins(seed: int) -> BoolArray:
    """Return for each key whether its one record is in the data, as the case draws it."""
    return np.random.default_rng(seed).random(KEYS) < 0.5


def learnt_log_ratios(
    known_counts: NDArray[np.int64], is_heads: BoolArray, audited_counts: NDArray[np.int64]
) -> FloatArray:
    """Look counts up in the log-ratios of frequencies under heads and under tails."""
    smallest = min(known_counts.min(), audited_counts.min())
    largest = max(known_counts.max(), audited_counts.max())
    values = largest - smallest + 1
    heads_frequencies = np.bincount(known_counts[is_heads] - smallest, minlength=values) + 0.5
    tails_frequencies = np.bincount(known_counts[~is_heads] - smallest, minlength=values) + 0.5
    log_ratios: FloatArray = np.log(heads_frequencies / tails_frequencies)
    ratios_of_audited: FloatArray = log_ratios[audited_counts - smallest]
    return ratios_of_audited
