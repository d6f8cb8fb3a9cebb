"""Reports: one HTML page for one result or many, and the figures on it.

Nothing here knows a type of result: results hand over their `Description`.
"""

from leakbound.report.page import (
    headline_of_many,
    joint_confidence,
    render,
    subject_of,
    write,
)

__all__ = ["headline_of_many", "joint_confidence", "render", "subject_of", "write"]
