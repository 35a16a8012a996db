"""The dashboard in a real browser: Debian's chromium, driven by Playwright, which downloads none of its own."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

import ledgerwood as lw
from ledgerwood.dashboard.app import create_app
from ledgerwood.dashboard.models import Models
from ledgerwood.dashboard.security import TokenGate, allowed_hosts
from ledgerwood.dashboard.shelf import Shelf
from ledgerwood.dashboard.sources import sources_at
from ledgerwood.dashboard.verifying import ImmediateVerifier

from .conftest import TOKEN, A, budget, pure

SCREENS = {
    "light": {"viewport": {"width": 1100, "height": 900}},
    "dark": {"viewport": {"width": 1100, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 360, "height": 740}, "has_touch": True},
}
NASTY = "<script>hacked=1</script>\"'><img src=x onerror=hacked=1> \u0634\u0631 {{7*7}} ${hacked=1}"


@pytest.fixture(scope="module")
def chromium():
    """The browser; without it the tests skip, or fail where LEDGERWOOD_REQUIRE_DATA=1."""
    program = shutil.which("chromium")
    if program is None:
        missing = "there is no chromium (Debian: apt-get install chromium)"
        if os.environ.get("LEDGERWOOD_REQUIRE_DATA") == "1":
            pytest.fail(f"LEDGERWOOD_REQUIRE_DATA=1, and {missing}")
        pytest.skip(missing)
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def places(made_team, tmp_path_factory):
    """Ledgers of every kind, one of them hostile and one altered."""
    folder = shutil.copytree(made_team, tmp_path_factory.mktemp("shown") / "team")
    lines = (folder / "ledgers" / "run.ledger.jsonl").read_text().splitlines(keepends=True)
    (folder / "ledgers" / "altered.ledger.jsonl").write_text(lines[0] + lines[1].replace("histogram", "histogran"))
    with lw.Ledger.open(
        f"sqlite:///{folder}/team.db", dataset=NASTY, budget=budget(), unit=lw.PrivacyUnit.ROW,
        analysts={NASTY: 1.0}, analyst=NASTY,
    ) as ledger:  # fmt: skip
        ledger.spend(pure(0.1), purpose=NASTY, delta=0.0)
    return folder


@pytest.fixture(scope="module")
def address(places):
    """A server over them, in a thread."""
    with served(f"sqlite:///{places}/team.db", str(places / "ledgers")) as url:
        yield url


@contextlib.contextmanager
def served(*sources):
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    shelf = Shelf(sources_at(sources), ImmediateVerifier())
    app = create_app(shelf, Models(None), TokenGate(TOKEN), hosts=allowed_hosts(["127.0.0.1"], port), port=port)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none", lifespan="on"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@contextlib.contextmanager
def tab(chromium, address, **options):
    """A page whose complaints and requests are looked at in the end."""
    context = chromium.new_context(**{**SCREENS["light"], **options})
    page = context.new_page()
    page.set_default_timeout(15_000)
    wrong = []
    page.on("console", lambda said: wrong.append(said.text) if is_complaint(said) else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.on("request", lambda asked: None if asked.url.startswith(address) else wrong.append(asked.url))
    try:
        yield page
        assert wrong == []
    finally:
        context.close()


def is_complaint(said):
    """Errors and warnings of the console; but for a refused form, which is a page like others."""
    return said.type in ("error", "warning") and "status of 422" not in said.text


def login(page, address):
    page.goto(f"{address}/login")
    page.get_by_label("token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("button", name="Log out")).to_be_visible()


def test_from_all_ledgers_to_a_draw(chromium, address):
    with tab(chromium, address) as page:
        page.goto(address)
        page.get_by_role("link", name="adult", exact=True).click()
        expect(page.get_by_role("heading", name="adult")).to_be_visible()
        expect(page.locator("main")).to_contain_text("The ledger is confirmed")
        page.get_by_role("link", name="grant at entry 3").click()
        expect(page.get_by_role("heading", name="churn model")).to_be_visible()
        page.get_by_role("link", name="Earlier").click()
        expect(page.locator("main")).to_contain_text("step 4")
        page.go_back()
        expect(page.locator("main")).to_contain_text("step 54")


def test_the_keyboard_reaches_everything(chromium, address):
    with tab(chromium, address) as page:
        page.goto(address)
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "content"
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile("/ledger/"))


def test_sliders_ask_for_the_price(chromium, address):
    with tab(chromium, address) as page:
        page.goto(f"{address}/calculator?rows=10000&batch=500&epochs=5&noise=2&delta=1e-5")
        slider = page.get_by_role("slider", name="noise multiplier, slider")
        before = page.locator("#answer strong").inner_text()
        slider.focus()
        for _ in range(20):
            page.keyboard.press("ArrowRight")
        noise = float(page.get_by_label("noise multiplier", exact=True).input_value())
        assert noise > 2.0
        assert slider.get_attribute("aria-valuetext") == f"{noise:g}"
        expect(page.locator("#answer strong")).not_to_have_text(before)
        expect(page.locator("#answer")).to_contain_text(f"noise multiplier of {noise:g}")
        step = lw.PoissonSampled(lw.GaussianEvent(noise_multiplier=noise, adjacency=A), sampling_rate=0.05)
        epsilon = lw.price(lw.Repeated(step, count=100)).epsilon(1e-5)
        shown = float(re.search(r"Epsilon ([\d.]+)", page.locator("#answer strong").inner_text())[1])
        assert epsilon <= shown <= epsilon * 1.00001
        expect(page.locator("#figure-profile")).to_be_visible()
        assert f"noise={noise:g}" in page.url
        page.get_by_label("epsilon: find the least noise").check()
        expect(page.locator("#answer strong")).to_contain_text("Noise multiplier")
        expect(page.get_by_label("noise multiplier", exact=True)).to_be_hidden()
        page.get_by_label("delta", exact=True).fill("7")
        expect(page.locator("#answer")).to_contain_text("Not computed")


def test_the_calculator_works_without_a_script(chromium, address):
    with tab(chromium, address, java_script_enabled=False) as page:
        page.goto(f"{address}/calculator")
        page.get_by_label("epochs", exact=True).fill("3")
        page.get_by_role("button", name="Compute").click()
        expect(page.locator("#answer")).to_contain_text("over 704 steps")
        assert page.locator("svg.plot").count() == 2


def test_who_logs_in_can_verify_again_and_open_a_ledger(chromium, places):
    folder = places.parent / "opened"
    folder.mkdir()
    with served(str(folder)) as address, tab(chromium, address) as page:
        page.goto(f"{address}/open")
        login(page, address)
        page.get_by_role("link", name="Open a ledger").click()
        page.get_by_label("label of the data set").fill(NASTY)
        page.get_by_label("budget: epsilon (nats)").fill("2")
        page.get_by_role("button", name="Open the ledger").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(NASTY)
        page.get_by_role("button", name="Verify again").click()
        expect(page.locator("main")).to_contain_text("The ledger is confirmed")
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("link", name="Log in", exact=True)).to_be_visible()
        page.goto(f"{address}/open")
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    assert len(list(folder.iterdir())) == 1


def test_hostile_texts_do_nothing(chromium, address):
    with tab(chromium, address) as page:
        page.goto(address)
        page.get_by_role("link", name=NASTY).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(NASTY)
        page.get_by_role("link", name="grant at entry 1").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(NASTY)
        page.goto(f"{address}/calculator?noise={NASTY}")
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main script").count() == 0


def test_a_page_follows_its_ledger_and_keeps_the_focus(chromium, places):
    url = f"sqlite:///{places.parent}/live.db"
    with (
        lw.Ledger.open(url, dataset="live", budget=budget(), unit=lw.PrivacyUnit.ROW) as ledger,
        served(url) as address,
    ):
        ledger.spend(pure(0.1), purpose="first", delta=0.0)
        with tab(chromium, address) as page:
            page.goto(address)
            page.get_by_role("link", name="live").click()
            page.get_by_role("link", name="grant at entry 1").focus()
            page.get_by_text("The numbers").click()
            page.get_by_role("link", name="grant at entry 1").focus()
            ledger.spend(pure(0.1), purpose="second", delta=0.0)
            expect(page.locator("main")).to_contain_text("second")
            assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "grant at entry 1"
            assert page.evaluate("document.querySelector('details').open")
            expect(page.get_by_role("status")).to_contain_text("5 entries")


SPEND = """
import os
import sys
import ledgerwood as lw
event = lw.PureEvent(epsilon=0.001, adjacency=lw.Adjacency.ADD_REMOVE)
for _ in range(4):
    os.fork()  # sixteen processes, each with a ledger of its own
with lw.Ledger.open(sys.argv[1], dataset="shared") as ledger:
    for k in range(6):
        ledger.spend(event, purpose=f"process {os.getpid()}, {k}", delta=0.0)
while True:
    try:
        _, status = os.wait()
    except ChildProcessError:
        break
    if status:
        sys.exit(1)
"""


@pytest.mark.slow  # sixteen processes
def test_pages_follow_while_sixteen_processes_spend(chromium, places):
    url = f"sqlite:///{places.parent}/shared.db"
    lw.Ledger.open(url, dataset="shared", budget=budget(), unit=lw.PrivacyUnit.ROW).close()
    with served(url) as address, tab(chromium, address) as page:
        page.goto(address)
        page.get_by_role("link", name="shared").click()
        spenders = subprocess.Popen([sys.executable, "-c", SPEND, url])
        seen = []
        while spenders.poll() is None:
            page.reload()
            status = page.locator("[data-said]").get_attribute("data-said")
            seen.append(int(re.search(r"(\d+) entries", status)[1]))
            assert "Fails" not in status
            page.wait_for_timeout(200)
        assert spenders.wait() == 0, "nobody was kept from spending"
        assert seen == sorted(seen)
        assert len(set(seen)) > 2
        expect(page.locator("main")).to_contain_text("Grants, the latest first (96 in all)")
        expect(page.locator("main .verdict strong")).to_have_text("The ledger is confirmed", timeout=30_000)


@pytest.mark.slow  # a quarter of a minute of polling
def test_an_open_page_does_not_grow(chromium, places):
    url = f"sqlite:///{places.parent}/open.db"
    with (
        lw.Ledger.open(url, dataset="open", budget=budget(), unit=lw.PrivacyUnit.ROW) as ledger,
        served(url) as address,
    ):
        for k in range(80):  # far from 64, where a figure begins to leave numbers out
            ledger.spend(pure(0.001), purpose=f"count {k}", delta=0.0)
        with tab(chromium, address) as page:
            asked = []
            page.on("request", lambda request: asked.append(request.url))
            page.goto(address)
            page.get_by_role("link", name="open").click()
            session = page.context.new_cdp_session(page)
            heaps, nodes, until = [], [], time.monotonic() + 15.0
            while time.monotonic() < until:
                ledger.spend(pure(0.001), purpose="one more", delta=0.0)
                page.wait_for_timeout(2_200)
                session.send("HeapProfiler.collectGarbage")
                heaps.append(page.evaluate("performance.memory.usedJSHeapSize"))
                nodes.append(page.evaluate("document.getElementsByTagName('*').length"))
            assert sum("/live" in address for address in asked) >= 6
            assert max(nodes[3:]) - min(nodes[3:]) <= 60, "a figure's numbers have one row more a grant"
            assert max(heaps[3:]) < 1.5 * min(heaps[3:])


@pytest.mark.slow  # every page on every screen
@pytest.mark.parametrize("screen", SCREENS)
def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_screen(chromium, address, screen):
    axe = Axe()
    with tab(chromium, address, **SCREENS[screen]) as page:
        login(page, address)
        page.goto(address)
        links = page.locator("h2 a").all()
        ledgers = {link.inner_text(): link.get_attribute("href") for link in links}
        assert len(links) == 5
        others = ["/", "/calculator", "/calculator?noise=x&given=epsilon", "/models", "/open", "/login"]
        every = [link.get_attribute("href") for link in links]
        for path in [*others, *every, f"{ledgers['adult']}/grant/3", f"{ledgers[NASTY]}/grant/1"]:
            page.goto(f"{address}{path}")
            found = axe.run(page).response["violations"]
            serious = [
                f"{each['id']}: {each['nodes'][0]['html'][:200]}"
                for each in found
                if each["impact"] in ("serious", "critical")
            ]
            assert serious == [], path
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
