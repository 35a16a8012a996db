"""The documentation's own tools: formulas without a script, cards, a page for each estimator, a site from one host."""

import dataclasses
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS))

from check_site import complaints  # noqa: E402
from extensions import estimators, mathml, outputs, parameters, versions  # noqa: E402

from ledgerwood import trainers  # noqa: E402


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        (r"\frac12", "<mfrac><mn>1</mn><mn>2</mn></mfrac>"),
        (r"\tfrac1{n}", "<mn>1</mn><mi>n</mi></mfrac>"),
        (r"1, \dots, n", "…"),
        (r"\big(x\big)", "<mi>x</mi>"),
        (r"x \tag{3}", "<mn>3</mn>"),
    ],
)
def test_formulas_that_docutils_does_not_read_are_rewritten(tex, expected):
    assert expected in re.sub(r"\s*\n\s*", "", mathml.mathml(tex, block=False))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("one sentence that is long, and  another one", False),
        ("a    1\nb    2", True),
        ("\N{BOX DRAWINGS LIGHT VERTICAL} a", True),
    ],
)
def test_columns_keep_their_lines(text, columns):
    assert outputs.has_columns(text) is columns


def test_every_estimator_has_a_page_with_all_its_parameters():
    exported = {
        each
        for name in trainers.__all__
        if isinstance(each := getattr(trainers, name), type) and issubclass(each, trainers.AbstractTrainer)
        if not inspect.isabstract(each) and not name.startswith("Abstract")
    }
    kinds = estimators.estimators()
    assert exported - set(kinds) <= {trainers.PrivateSearch}
    for kind in kinds:
        page = estimators.page(kind)
        assert page.count("\n* **`") >= len(kind.__dataclass_fields__)
        assert f"<../../explanation/{estimators.system_of(kind)}>" in page
        assert (DOCS / "explanation" / f"{estimators.system_of(kind)}.md").is_file()


def test_a_parameter_that_nobody_describes_stops_the_build():
    silent = dataclasses.make_dataclass("Silent", [("epsilon", float, 1.0)])
    with pytest.raises(ValueError, match="no docstring says what these parameters are: epsilon"):
        parameters.parameters(silent, silent)


@pytest.mark.slow  # eleven fits, .1 to 2 s each
@pytest.mark.parametrize("kind", estimators.estimators(), ids=lambda kind: kind.__name__)
def test_the_example_of_each_estimator_runs(kind, capsys):
    names = {}
    exec(compile(estimators.example(kind), kind.__name__, "exec"), names)
    assert "epsilon 1.000" in capsys.readouterr().out
    assert type(names["model"]) is kind


def test_versions_are_linked_side_by_side(tmp_path):
    kept = tmp_path / "versions.json"
    kept.write_text('["0.2", "0.1"]')
    assert [each["url"] for each in versions.versions(kept, "0.2")] == ["../0.2/", "../0.1/"]
    assert versions.versions(kept, "0.3")[0]["version"] == "0.3"


def test_what_comes_from_another_host_is_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<link rel="canonical" href="https://x.org/a"><script src="https://cdn.org/x.js"></script>'
        '<a href="https://else.org">a</a><a href="gone.html#b">b</a><style>@import "//f.org/f.css"</style>'
    )
    (tmp_path / "s.css").write_text("@font-face { src: url(https://fonts.org/f.woff2) }")
    assert list(complaints(tmp_path)) == [
        "s.css loads https://fonts.org/f.woff2",
        "a.html loads https://cdn.org/x.js",
        "a.html loads //f.org/f.css",
        "a.html links to gone.html#b, which is not there",
    ]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site of a few pages, built with the documentation's own configuration and without its executed cells."""
    folder = tmp_path_factory.mktemp("site")
    source, built = folder / "docs", folder / "html"
    shutil.copytree(DOCS, source, ignore=shutil.ignore_patterns("_build", "adr", "benchmarks", "errata*", "reference"))
    for path in (*source.glob("*/*.md"), source / "what-is-here.md"):
        if path.parent.name != "how-to" and path.name not in {"risk.md", "pld.md", "first-model.md"}:
            path.unlink()
    (source / "reference").mkdir()
    (source / "index.md").write_text(
        "# Site\n\n```{toctree}\nhow-to/index\nreference/estimators/index\n```\n\n"
        "```{cards}\nexplanation/risk | R\nexplanation/pld | P\ntutorials/first-model | F\n```\n"
    )
    program = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-D", "nb_execution_mode=off", "-D", "nitpicky=0"]
    subprocess.run([*program, source, built], check=True, capture_output=True, cwd=DOCS.parent, timeout=300)
    return built


@pytest.mark.slow  # a build of 40 pages, about 15 s
def test_a_built_site_needs_no_other_host_and_no_script_for_formulas(site):
    found = [line for line in complaints(site) if "which is not there" not in line]
    assert found == []
    page = (site / "explanation" / "pld.html").read_text()
    assert page.count("<math") > 100
    assert "/mathjax" not in page.lower()
    assert json.loads((site / "switcher.json").read_text())[0]["url"].startswith("../")


@pytest.mark.slow  # the same build
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_cut_at_the_edge(site, browser, width):
    """The page never scrolls sideways, and code is broken at its edge."""
    cut = (
        "[...document.querySelectorAll('.highlight-python pre')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    )
    inside = "[...document.querySelectorAll('.bd-article code, .bd-article .sig')]"
    apart = f"{inside}.filter(each => !each.closest('table'))"  # tables scroll
    beyond = f"{apart}.filter(each => each.getBoundingClientRect().right > innerWidth + 1).length"
    for page in sorted(site.glob("*/*.html")):
        browser.open(page, width=width)
        assert browser.value(beyond) == 0, page
        assert browser.value("document.documentElement.scrollWidth") <= width, page
        assert browser.value(cut) == 0, page
        assert [each for each in browser.requests if not each.startswith(("file:", "data:"))] == []
