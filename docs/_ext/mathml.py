"""Formulas as MathML, which browsers draw without scripts or downloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.math import get_node_equation_number

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def inline(translator: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    formula = tex2mathml(node.astext(), as_block=False)
    translator.body.append(formula)
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """Write a displayed formula."""
    if node.get("number"):
        equation_number = get_node_equation_number(translator, node)
        translator.body.append(f"<p>({equation_number})</p>")
    formula = tex2mathml(node.astext(), as_block=True)
    translator.body.append(formula)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer(
        "mathml", inline_renderers=(inline, None), block_renderers=(block, None)
    )
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
