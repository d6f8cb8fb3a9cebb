"""Commands are tested here, and the words of pages: figures are drawn in tests of reports."""

from pages import undrawn

__all__ = ["undrawn"]
