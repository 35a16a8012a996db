"""A section's pages as cards: `page | one line`, each page's title as the link, and all of them in the navigation."""

from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective


class Cards(SphinxDirective):
    """The directive `cards`: links with one line each, and a hidden table of contents of the same pages.

    A line of its content is `page | what the page is for`. The option `caption` heads them in the navigation, too.
    """

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"caption": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        pairs = [[part.strip() for part in line.split("|", 1)] for line in self.content if line.strip()]
        if wrong := [pair[0] for pair in pairs if len(pair) != 2]:
            raise self.error(f"each line must be 'page | one line'; these have no line of words: {', '.join(wrong)}")
        caption = self.options.get("caption")
        contents = ["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), ""]
        contents += [*(page for page, _ in pairs), "```", ""]
        contents += [f"- {{doc}}`{page}`\n\n  {words}\n" for page, words in pairs]
        made = nodes.container(classes=["cards"])
        made += self.parse_text_to_nodes("\n".join(contents))
        return [made]


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_directive("cards", Cards)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
