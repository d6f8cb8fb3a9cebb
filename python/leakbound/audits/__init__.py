"""Audits: one function for each game that a membership test can be."""

from leakbound.audits.one_run import audit_one_run
from leakbound.audits.panoramia import audit_panoramia

__all__ = ["audit_one_run", "audit_panoramia"]
