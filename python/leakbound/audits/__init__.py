"""Audits: one function for each game that a membership test can be, and one that goes on."""

from leakbound.audits._least_favourable import LeastFavourable, least_favourable_bound
from leakbound.audits.one_run import audit_one_run
from leakbound.audits.panoramia import audit_panoramia
from leakbound.audits.stream import OneRunStream
from leakbound.audits.zero_run import audit_zero_run

__all__ = [
    "LeastFavourable",
    "OneRunStream",
    "audit_one_run",
    "audit_panoramia",
    "audit_zero_run",
    "least_favourable_bound",
]
