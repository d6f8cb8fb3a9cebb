"""An audit in the terms of OWASP AISVS 11.2.5; the public name is that of `leakbound.results`."""

from typing import Any

import numpy as np

from leakbound._base.checks import instance
from leakbound.report.parts import LOW_RATES, Roc
from leakbound.results.one_run import AuditResult

_NOT_COVERED = (
    "retrieval-augmented generation",
    "tokenizers",
    "entities in a document",
    "repeated outputs of a generator",
)


def aisvs_fields(result: AuditResult) -> dict[str, Any]:
    """Return what notes on OWASP AISVS 11.2.5 ask of a membership-inference simulation.

    The requirement is that attack accuracy does not exceed random guessing. The project's notes
    name five points in which simulations fall short; here each is a field. They describe an audit,
    and prove nothing beside its bound.

    Parameters
    ----------
    result : AuditResult
        An audit of listed examples.

    Returns
    -------
    dict
        "ensemble": the attacks audited together, by name. "low_fpr": true positive rates at false
        positive rates of 1 % and 0.1 %, None with fewer than 100 or 1,000 others.
        "blind_baseline": how well features alone tell membership, in [0, 1], None without features.
        "subpopulations": strata of the split, 1 without. "not_covered": surfaces that no audit of
        this package tests.

    References
    ----------
    OWASP, AI Security Verification Standard 1.0, research notes on C11.2: implementation maturity
    of 11.2.5.

    Examples
    --------
    >>> import numpy as np, leakbound as lb
    >>> member = np.arange(400) % 2 == 0
    >>> result = lb.audit(member + np.arange(400) / 1e3, lb.Coins(member), seed=0)
    >>> aisvs_fields(result)["low_fpr"]
    {'0.01': 1.0, '0.001': None}
    """
    instance(result, name="result", types=AuditResult)
    attacks = result.options.get("attacks")
    named = ["the scores given"]
    if isinstance(attacks, dict):
        named = [*attacks]
    blind = None
    if result.blind_baseline is not None:
        blind = result.blind_baseline.accuracy
    return {
        "ensemble": named,
        "low_fpr": {f"{rate:g}": _true_positives(result.roc, rate) for rate in LOW_RATES},
        "blind_baseline": blind,
        "subpopulations": int(result.options.get("strata", 1)),
        "not_covered": [*_NOT_COVERED],
    }


def _true_positives(roc: Roc, rate: float) -> float | None:
    """Return the true positive rate where the false positive rate is at most so high."""
    wrong = roc.guesses - roc.members
    if not wrong.size or wrong[-1] < round(1 / rate):
        return None
    place = int(np.searchsorted(wrong, rate * wrong[-1], side="right")) - 1
    if place < 0:
        return 0.0
    return float(roc.members[place] / roc.members[-1])
