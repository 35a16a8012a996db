r"""Formulas as MathML, which browsers draw themselves: no script, no font and no network.

docutils translates TeX. What it does not read is rewritten first: `\frac12`, `\dots`, `\big`, `\tag`, and the
environment that Sphinx puts around several lines. A formula that still cannot be read is an error of the build.
"""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

_LOGGER = logging.getLogger(__name__)
_REWRITTEN = (
    (r"\\([td]?)frac\s*(\d)\s*(\d)", r"\\\1frac{\2}{\3}"),
    (r"\\([td]?)frac\s*(\d)\s*\{", r"\\\1frac{\2}{"),
    (r"\\dots\b", r"\\ldots"),
    (r"\\[bB]igg?(?=[^a-zA-Z])", ""),
    (r"\\tag\{([^}]*)\}", r"\\qquad (\1)"),
    (r"\\(begin|end)\{split\}", ""),
    ("\N{END OF PROOF}", r"\\blacksquare"),
)


def mathml(tex: str, *, block: bool) -> str:
    """The element `math` of a formula.

    Raises:
        MathError: docutils cannot read it.
    """
    for found, put in _REWRITTEN:
        tex = re.sub(found, put, tex)
    return str(tex2mathml(tex.strip(), as_block=block))


def _written(self: Any, node: nodes.Element, *, block: bool) -> str:
    try:
        return mathml(node.astext(), block=block)
    except (MathError, IndexError) as error:
        _LOGGER.warning("this formula cannot be drawn: %s (%s)", node.astext(), error, location=node)
        return f"<code>{self.encode(node.astext())}</code>"


def _inline(self: Any, node: nodes.Element) -> None:
    self.body.append(_written(self, node, block=False))
    raise nodes.SkipNode


def _displayed(self: Any, node: nodes.Element) -> None:
    self.body.append(self.starttag(node, "div", CLASS="formula"))
    if node["number"]:
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})</span>')
    self.body.append(_written(self, node, block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_displayed, None))
    app.connect("config-inited", lambda _app, config: setattr(config, "html_math_renderer", "mathml"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
