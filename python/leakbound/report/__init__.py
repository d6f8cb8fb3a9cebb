"""Reports: one HTML page for a result, and the figures on it.

Nothing here knows a type of result: results hand over their `Description`.
"""

from leakbound.report.page import render, write

__all__ = ["render", "write"]
