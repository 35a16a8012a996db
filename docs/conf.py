"""The documentation's build. Nothing here needs a network; notebooks run as part of it."""

import os
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))
# For the kernels that execute pages: opacus installs a folder `benchmarks`, too, and ours comes first.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (sys.path[1], os.environ.get("PYTHONPATH"))))

import ledgerwood

project = "ledgerwood"
author = "The ledgerwood maintainers"
copyright = author
version = release = ledgerwood.__version__

extensions = [
    "myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode",
    "extensions.cards", "extensions.estimators", "extensions.mathml", "extensions.outputs", "extensions.stored",
    "extensions.versions",
]  # fmt: skip
exclude_patterns = ["_build", "_templates", "extensions", "jupyter_execute", "errata/*.md"]  # errata.md has their text
templates_path = ["_templates"]
root_doc = "index"

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
suppress_warnings = ["myst-nb.lexer"]  # cells that are not executed have no language
nb_ipywidgets_js = {}  # scripts from elsewhere for widgets, of which there are none
viewcode_follow_imported_members = False  # a name is documented where it is written
viewcode_line_numbers = True

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "mixed"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False

nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!ledgerwood\.).*"),  # other projects' names: their pages are not here to link to
    ("py:.*", r"ledgerwood\..*\.(\w+_(co|contra)|[A-Z])"),  # type variables have no page
    ("py:.*", r"ledgerwood\.curator\.kernels\..*"),  # the loops over rows, which only evaluators call
    ("py:.*", r"ledgerwood\..*\.(registry\.(Shape|View)|values\.Keys)"),  # nor do these, or an alias of types
    ("py:.*", r"ledgerwood\.trainers\.choosing\.validation_results\.(Index|Parameters)"),  # type variables, too
    ("py:class", r"ledgerwood\.pages\.shown\.\w+"),  # how a value shows itself: its text is the value's
    ("py:class", r"ledgerwood\.verification\.auditing\.curves\.\w+"),  # what a figure of an audit is drawn from
    ("py:class", r"ledgerwood\._uncopied\.Uncopied"),  # a base without a word of its own
]

html_theme = "pydata_sphinx_theme"
html_title = "ledgerwood"
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "navbar_center": ["navbar-nav"],
    "navbar_end": ["version-switcher", "theme-switcher"],
    "navbar_persistent": ["search-button"],
    "navigation_depth": 3,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 1,
    "show_prev_next": True,
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}
html_sidebars = {"index": []}
html_show_sourcelink = False


COLON = "\0"


def plain_docstrings(_app: Any, what: str, _name: str, _obj: object, _options: object, lines: list[str]) -> None:
    """Docstrings are plain text with `code` between backticks: keep |x|, 2**k and plan_ from being read as markup."""
    for number, line in enumerate(lines):
        # A bullet stays one, and the names before a first colon are escaped by the reader of the docstring itself.
        head, rest = re.fullmatch(r"(\s*[*-] |[\w\s,]+:)?(.*)", line, flags=re.DOTALL).groups(default="")
        pieces = re.split(r"(`[^`]+`)", rest)
        pieces[::2] = [re.sub(r"([|*]|(?<=\w)_(?!\w))", r"\\\1", text) for text in pieces[::2]]
        pieces[1::2] = [f"`{code}`" for code in pieces[1::2]]
        joined = head + "".join(pieces)
        lines[number] = re.sub(r"(``[^`]+``)(?=\w)", r"\1\\ ", joined)  # a plural: `name`s
    if what in {"attribute", "data", "property"}:  # napoleon would take what stands before a colon for a type
        lines[:1] = [line.replace(":", COLON) for line in lines[:1]]


def colons_again(_app: Any, _what: str, _name: str, _obj: object, _options: object, lines: list[str]) -> None:
    lines[:] = [line.replace(COLON, ":") for line in lines]


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", plain_docstrings, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", colons_again, priority=600)  # after it
