"""Reports: one HTML page for a result, and the figures on it.

This package does not depend on types of results: each provides its `Description`.
"""

from leakbound.report.page import render, write

__all__ = ["render", "write"]
