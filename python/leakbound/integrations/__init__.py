"""Audits inside the training loops of other libraries, which are loaded when they are used."""

from leakbound.integrations.watch import DPSGDWatch, accounted_by, watch_dp_sgd

__all__ = ["DPSGDWatch", "accounted_by", "watch_dp_sgd"]
