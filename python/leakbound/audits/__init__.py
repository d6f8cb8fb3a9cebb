"""Audits: one function for each game that a membership test can be, and one that goes on."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakbound.audits.one_run.audit import audit_one_run
    from leakbound.audits.one_run.stream import OneRunStream
    from leakbound.audits.panoramia.audit import audit_panoramia
    from leakbound.audits.synthetic import audit_synthetic
    from leakbound.audits.zero_run.audit import audit_zero_run
else:
    from leakbound._base.attributes import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "leakbound.audits.one_run.audit": "audit_one_run",
            "leakbound.audits.one_run.stream": "OneRunStream",
            "leakbound.audits.panoramia.audit": "audit_panoramia",
            "leakbound.audits.synthetic": "audit_synthetic",
            "leakbound.audits.zero_run.audit": "audit_zero_run",
        },
    )

__all__ = [
    "OneRunStream",
    "audit_one_run",
    "audit_panoramia",
    "audit_synthetic",
    "audit_zero_run",
]
