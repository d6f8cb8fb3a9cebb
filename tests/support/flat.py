"""Audits from one set of options, as tests vary them: those of the design are sorted out here."""

from typing import Any

import leakbound as lb
from leakbound.audits.designs import audit_of


def coins(scores: Any, member: Any = None, **options: Any) -> lb.AuditResult:
    result = audit_of(options.pop("design", "coins"), scores, member=member, **options)
    assert isinstance(result, lb.AuditResult)
    return result


def split(scores: Any, member: Any, **options: Any) -> lb.AuditResult:
    result = audit_of("random_split", scores, member=member, **options)
    assert isinstance(result, lb.AuditResult)
    return result


def zero_run(scores: Any, member: Any, propensity: Any, **options: Any) -> lb.ZeroRunResult:
    result = audit_of("zero_run", scores, member=member, propensity=propensity, **options)
    assert isinstance(result, lb.ZeroRunResult)
    return result


def panoramia(baseline: Any, scores: Any, member: Any, **options: Any) -> lb.PanoramiaResult:
    delta = options.pop("delta", 0.0)
    claim = lb.ApproxDP(delta=delta) if delta else lb.PureDP()
    options = {"claim": claim} | options
    result = audit_of("panoramia", scores, member=member, baseline=baseline, **options)
    assert isinstance(result, lb.PanoramiaResult)
    return result
