"""Docstrings and signatures as people read them.

Docstrings are plain text, where |x| is an absolute value, not a substitution. Users do not
construct results, so the arguments of their constructors are hidden. Overloads are for type
checkers, so one signature with all options is shown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sphinx.pycode import ModuleAnalyzer

if TYPE_CHECKING:
    from collections.abc import Callable

    from sphinx.application import Sphinx

CODE_OR_BAR = re.compile(r"(:\w+:`[^`]*`|``[^`]*``|`[^`]*`)|\|")
ARRAY = re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[(\w+)\]\]")


def escape_bars(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Escape bars outside of code and formulas."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[number] = CODE_OR_BAR.sub(lambda match: match[1] or r"\|", line)


def shorten(
    _app: Sphinx,
    what: str,
    name: str,
    _object: object,
    _options: object,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    """Shorten array types, and hide the constructors of results."""
    if what == "class" and (name.startswith("leakbound.results") or name.endswith("Result")):
        return None, None
    return shortened(signature), shortened(returned)


def shortened(annotations: str | None) -> str | None:
    """Return annotations with the short name of array types."""
    if annotations is None:
        return None
    return ARRAY.sub(r"NDArray[\1]", annotations)


def without_overloads(analyze: Callable[[ModuleAnalyzer], None]) -> Callable[..., None]:
    """Remove overloads from the analysis of a module."""

    def analyzed(self: ModuleAnalyzer) -> None:
        analyze(self)
        self.overloads = {}

    return analyzed


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the handlers."""
    ModuleAnalyzer.analyze = without_overloads(ModuleAnalyzer.analyze)  # type: ignore[method-assign]
    app.connect("autodoc-process-docstring", escape_bars, priority=400)
    app.connect("autodoc-process-signature", shorten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
