"""Reports: one HTML page for one result or many, and the figures on it.

Nothing here knows a type of result: results hand over their `Description`.
"""

from leakbound.report.page import render, write
from leakbound.report.several import headline_of_many, joint_confidence, subject_of

__all__ = ["headline_of_many", "joint_confidence", "render", "subject_of", "write"]
