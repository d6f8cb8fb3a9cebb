"""Reports: one HTML page for one result or many, and the figures on it.

Nothing here knows a type of result: results hand over what they say, in the parts of `contents`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leakbound.report.page import cited, environment, render, write
    from leakbound.report.several import headline_of_many, joint_confidence, subject_of
else:
    from leakbound._base.attributes import lazy_attributes

    __getattr__, __dir__ = lazy_attributes(
        __name__,
        {
            "leakbound.report.page": "cited environment render write",
            "leakbound.report.several": "headline_of_many joint_confidence subject_of",
        },
    )

__all__ = [
    "cited",
    "environment",
    "headline_of_many",
    "joint_confidence",
    "render",
    "subject_of",
    "write",
]
