"""The former place of :class:`leakbound.planning.InclusionPlan`."""

from leakbound.planning.inclusion import InclusionPlan

__all__ = ["InclusionPlan"]
