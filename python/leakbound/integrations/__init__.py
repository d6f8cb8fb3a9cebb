"""Audits inside the training loops of other libraries, which are loaded when they are used."""

from leakbound.integrations.accountants import accounted_by
from leakbound.integrations.watch import DPSGDWatch, watch_dp_sgd

__all__ = ["DPSGDWatch", "accounted_by", "watch_dp_sgd"]
