"""Reports: one HTML page for one result or many, and the figures on it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leakbound.report.page import environment, render, write

__all__ = ["environment", "render", "write"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from leakbound.report import page

        return getattr(page, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
