"""Every kind of page in a real browser: no request, no complaint, figures to be seen, the numbers as they were."""

import json

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.pages.html import write
from ledgerwood.pages.values import finite
from ledgerwood.report.audits.pages import ledger_page, mechanism_page, model_page
from ledgerwood.report.audits.running import run_mechanism_audit
from ledgerwood.report.audits.shown import ModelReport, curves_of
from ledgerwood.report.ledgers.audits import audit_ledger
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.verification import audit_model

A = lw.Adjacency.ADD_REMOVE
HOSTILE = "<script>alert(1)</script><img src=x>"
LIGHT_PAPER, DARK_PAPER = "rgb(250, 249, 246)", "rgb(20, 24, 26)"


def half_laplace(dataset, n, rng):
    return dataset.sum() + rng.laplace(scale=0.5, size=n)


def mechanism():
    report = run_mechanism_audit(
        "mechanisms.py:half_laplace", half_laplace, (np.zeros(1), np.ones(1)),
        lw.Budget(epsilon=1.0, delta=0.0, adjacency=A), n=3000, alpha=0.05, numeric="ideal", delta=None, seed=1,
    )  # fmt: skip
    return mechanism_page(report), report.to_record()


def model():
    schema = lw.Schema.uniform(0, 1, n_features=2, target=lw.Numeric("price", 0, 1))
    X = np.random.default_rng(2).uniform(size=(40, 2))
    estimator = SGBDTRegressor(epsilon=4.0, delta=1e-5, schema=schema, n_estimators=2, max_depth=2)
    found = audit_model(estimator, X, X[:, 0], canaries=64, alpha=0.05, rng=np.random.default_rng(3))
    curves = curves_of(found.claim, epsilon=found.epsilon_lower, delta=found.delta, alpha=0.05, scores=found.scores)
    report = ModelReport(claim="a plan", seed=3, audit=found, curves=curves)
    return model_page(report), report.to_record()


def ledger(folder):
    budget = lw.Budget(epsilon=2.0, delta=1e-5, adjacency=A)
    noise = lw.GaussianEvent(noise_multiplier=8.0, adjacency=A)
    with lw.Ledger.open(folder / "l.jsonl", dataset=HOSTILE, budget=budget, unit=lw.PrivacyUnit.ROW) as open_:
        grant = open_.grant(lw.Repeated(noise, count=6), purpose=HOSTILE, delta=1e-6)
        for _ in range(4):
            grant.draw(noise, purpose="a count")
    found = audit_ledger(str(folder / "l.jsonl"), dataset=None, model=None, vault=None, public_data=False)
    return ledger_page(found), found.to_record()


@pytest.fixture(scope="module")
def pages(browser, tmp_path_factory):
    """For each kind: a file, and the record that its page was made of. Not made where there is no browser."""
    folder = tmp_path_factory.mktemp("pages")
    made = {"mechanism": mechanism(), "model": model(), "ledger": ledger(folder)}
    for kind, (page, _) in made.items():
        write(page, folder / f"{kind}.html")
    return {kind: (folder / f"{kind}.html", record) for kind, (_, record) in made.items()}


FIGURES = {
    "mechanism": ["figure-bounds", "figure-trade-off", "figure-roc", "figure-scores"],
    "model": ["figure-bounds", "figure-trade-off", "figure-roc", "figure-scores"],
    "ledger": ["figure-rounds"],
}


@pytest.mark.slow_after(1)  # renders whole pages
@pytest.mark.parametrize("kind", FIGURES)
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_page_stands_alone(browser, pages, kind, width, dark):
    path, record = pages[kind]
    browser.open(path, width=width, dark=dark)
    assert browser.requests == [path.resolve().as_uri()]
    assert browser.complaints == []
    carried = json.loads(browser.value("document.getElementById('audit').textContent"))
    assert carried == json.loads(json.dumps(finite(record)))
    assert browser.value("getComputedStyle(document.body).backgroundColor") == (DARK_PAPER if dark else LIGHT_PAPER)
    assert browser.value("document.querySelectorAll('script').length") == 1
    assert browser.value("document.querySelectorAll('img').length") == 0


@pytest.mark.parametrize("kind", FIGURES)
@pytest.mark.parametrize("width", [1280, 390])
def test_figures_can_be_seen_and_nothing_hangs_over(browser, pages, kind, width):
    browser.open(pages[kind][0], width=width)
    sizes = browser.value(
        "[...document.querySelectorAll('figure svg.plot')].map(s => [s.id, s.getBoundingClientRect().width, "
        "s.getBoundingClientRect().height, s.querySelectorAll('path, circle').length])"
    )
    assert [size[0] for size in sizes] == FIGURES[kind]
    assert all(across > 250 and down > 60 and marks > 0 for _, across, down, marks in sizes)
    assert browser.value("document.documentElement.scrollWidth") <= width
    smallest = browser.value(
        "Math.min(...[...document.querySelectorAll('svg.plot text')].map(t => t.getBoundingClientRect().height))"
    )
    assert smallest >= 8.0


@pytest.mark.parametrize("kind", FIGURES)
@pytest.mark.parametrize("width", [1280, 390])
def test_texts_of_a_figure_lie_within_it(browser, pages, kind, width):
    browser.open(pages[kind][0], width=width)
    outside = browser.value(
        "[...document.querySelectorAll('svg.plot text')].filter(t => { const a = t.getBoundingClientRect(), "
        "b = t.ownerSVGElement.getBoundingClientRect(); return a.left < b.left - 1 || a.right > b.right + 1 || "
        "a.top < b.top - 1 || a.bottom > b.bottom + 1; }).map(t => t.textContent)"
    )
    assert outside == []


@pytest.mark.parametrize("kind", FIGURES)
def test_who_does_not_see_a_figure_is_told(browser, pages, kind):
    browser.open(pages[kind][0])
    nodes = browser.ask("Accessibility.getFullAXTree")["nodes"]
    images = [node for node in nodes if node.get("role", {}).get("value") in {"image", "img"} and not node["ignored"]]
    assert len(images) == len(FIGURES[kind])
    assert all(len(node["name"]["value"]) > 30 for node in images)
    tables = browser.value("[...document.querySelectorAll('figure')].map(f => f.querySelectorAll('td').length)")
    assert all(cells > 0 for cells in tables)


@pytest.mark.parametrize("kind", FIGURES)
@pytest.mark.parametrize("dark", [False, True])
def test_texts_stand_out_from_their_ground(browser, pages, kind, dark):
    """WCAG 2.1, 1.4.3: a contrast of 4.5 at least."""
    browser.open(pages[kind][0], dark=dark)
    pairs = browser.value(
        "[...document.querySelectorAll('p, dt, dd, th, td, h1, h2, li, summary, figcaption, strong, span, .plot text')]"
        ".map(e => { let g = e; while (getComputedStyle(g).backgroundColor == 'rgba(0, 0, 0, 0)') g = g.parentElement; "
        "const s = getComputedStyle(e); return [e.tagName == 'text' ? s.fill : s.color, "
        "getComputedStyle(g).backgroundColor]; })"
    )
    assert len(pairs) > 20
    assert all(contrast(*pair) >= 4.5 for pair in set(map(tuple, pairs)))


def contrast(first, second):
    def light(colour):
        parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return np.dot([0.2126, 0.7152, 0.0722], linear) + 0.05

    high, low = sorted((light(first), light(second)), reverse=True)
    return high / low


def test_a_page_may_not_fetch_or_run_anything(browser, pages, tmp_path):
    """What the policy is for: markup that got in would do nothing."""
    path = tmp_path / "altered.html"
    text = pages["ledger"][0].read_text(encoding="utf-8")
    extra = "<script>window.ran = true</script><img src='https://example.org/x.png' onerror='window.ran = true'>"
    path.write_text(text.replace("<main>", f"<main>{extra}"), encoding="utf-8")
    browser.open(path)
    assert browser.value("window.ran === undefined") is True
    assert len(browser.requests) == 2  # the page, and what was stopped before it was sent
    assert browser.blocked == ["csp"]
    assert len(browser.complaints) == 3  # the script, the image, its handler


def test_the_driver_sees_a_request_and_a_complaint(browser, tmp_path):
    """Else the tests above would pass for a browser that tells nothing."""
    (tmp_path / "data.txt").write_text("x")
    page = tmp_path / "noisy.html"
    page.write_text("<title>noisy</title><img src='data.txt'><script>console.error('oh'); throw Error('no')</script>")
    browser.open(page)
    assert (tmp_path / "data.txt").resolve().as_uri() in browser.requests
    assert len(browser.complaints) >= 2
    assert browser.blocked == []
