"""Docstrings and signatures as people read them.

Docstrings are written to be read as text, where |x| is an absolute value and no substitution;
results are made by audits, and nobody needs the forty arguments of their constructors; overloads
are for type checkers, and people want every option by its name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sphinx.pycode import ModuleAnalyzer

if TYPE_CHECKING:
    from collections.abc import Callable

    from sphinx.application import Sphinx

CODE = re.compile(r"(:\w+:`[^`]*`|``[^`]*``|`[^`]*`)")
ARRAY = re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[(\w+)\]\]")


def escape_bars(
    _app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]
) -> None:
    """Take bars for what they are, outside of code and formulas."""
    for number, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = CODE.split(line)
            parts[::2] = (part.replace("|", "\\|") for part in parts[::2])
            lines[number] = "".join(parts)


def shorten(
    _app: Sphinx,
    what: str,
    name: str,
    _object: object,
    _options: object,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    """Name arrays by their type, and leave out how results are constructed."""
    if what == "class" and (name.startswith("leakbound.results") or name.endswith("Result")):
        return None, None
    short = [ARRAY.sub(r"NDArray[\1]", text) if text else text for text in (signature, returned)]
    return short[0], short[1]


def without_overloads(analyze: Callable[[ModuleAnalyzer], None]) -> Callable[..., None]:
    """Make an analysis of a module forget the overloads it found."""

    def analyzed(self: ModuleAnalyzer) -> None:
        analyze(self)
        self.overloads = {}

    return analyzed


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx of it."""
    ModuleAnalyzer.analyze = without_overloads(ModuleAnalyzer.analyze)  # type: ignore[method-assign]
    app.connect("autodoc-process-docstring", escape_bars, priority=400)
    app.connect("autodoc-process-signature", shorten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
