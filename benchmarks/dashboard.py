"""How fast the dashboard answers, how heavy its pages are, and what its screens look like.

    python -m benchmarks.dashboard --save docs/benchmarks/dashboard.json --pictures docs/how-to/dashboard

Eight clients ask for one page after another over a team's database, a file of 10,001 entries and saved models, while
the process that verifies goes on. Times are of whole requests on loopback, from the first byte sent to the last one
received. The calculator is asked with inputs that it has not seen (new) and with ones that it has (again).
"""

import argparse
import concurrent.futures
import contextlib
import http.client
import io
import itertools
import json
import platform
import random
import re
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from PIL import Image
from playwright.sync_api import sync_playwright

import ledgerwood as lw
from benchmarks.dashboard_polling import started
from ledgerwood.trainers import DPXGBoostRegressor, SGBDTRegressor

A = lw.Adjacency.ADD_REMOVE
CLIENTS, REQUESTS = 8, 12
SAMPLED = lw.PoissonSampled(lw.GaussianEvent(noise_multiplier=4.0, adjacency=A), sampling_rate=0.01)


def budget(epsilon):
    return lw.Budget(epsilon=epsilon, delta=1e-5, adjacency=A)


def made(folder):
    """A team's ledgers, one of 10,001 entries, one that was altered, and two models."""
    url = f"sqlite:///{folder}/team.db"
    with lw.Ledger.open(
        url, dataset="customers-2026", budget=budget(3.0), unit=lw.PrivacyUnit.USER, analysts={"ada": 0.5, "ben": 0.3},
        analyst="ada", owner="Dr. Mira Lindqvist", description="Churn and spending, spring study", opened="2026-03-02",
    ) as ledger:  # fmt: skip
        ledger.spend(lw.PureEvent(epsilon=0.4, adjacency=A), purpose="median age by region", delta=0.0)
        grant = ledger.grant(lw.Repeated(SAMPLED, count=500), purpose="train the churn model", delta=1e-6)
        for step in range(60):
            grant.draw(SAMPLED, purpose=f"step {step}")
    with lw.Ledger.open(url, dataset="customers-2026", analyst="ben") as ledger:
        ledger.spend(lw.LaplaceEvent(noise_multiplier=2.0, adjacency=A), purpose="histogram of spending", delta=0.0)
    places = Path(folder) / "ledgers"
    places.mkdir()
    long = lw.Ledger(budget(10.0), unit=lw.PrivacyUnit.ROW, filter=lw.GDPFilter())
    event = lw.GaussianEvent(noise_multiplier=100.0, adjacency=A)
    for fit in range(200):
        grant = long.grant(lw.Repeated(event, count=49), purpose=f"fit {fit}")
        for draw in range(49):
            grant.draw(event, purpose=f"round {draw}")
    long.save(places / "long.ledger.jsonl")
    lines = list(long.record().lines[:40])
    lines[30] = lines[30].replace("round", "Round")
    (places / "altered.ledger.jsonl").write_text("".join(line + "\n" for line in lines))
    rng = np.random.default_rng(0)
    features = ("age", "tenure", "visits", "basket", "returns", "distance")
    X = rng.random((4000, len(features)))
    y = 3.0 * X[:, 1] + 4.0 * X[:, 3] * (X[:, 4] < 0.5) + X[:, 0]
    schema = lw.Schema(
        features=tuple(lw.Numeric(name, 0.0, 1.0) for name in features), target=lw.Numeric("spending", 0.0, 8.0)
    )
    with lw.Ledger.open(
        places / "spending.ledger.jsonl", dataset="spending", budget=budget(6.0), unit=lw.PrivacyUnit.ROW
    ) as ledger:
        for name, kind in (("spending-gradient", SGBDTRegressor), ("spending-histograms", DPXGBoostRegressor)):
            model = kind(epsilon=2.0, delta=1e-6, schema=schema, n_estimators=20, max_depth=3)
            model.fit(X, y, ledger=ledger).save(Path(folder) / "models" / name)
    return url, str(places), str(Path(folder) / "models")


def asked(address, paths):
    """Milliseconds of each request, one after another over one connection, and the bytes of the last answer."""
    connection, times, size = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60), [], 0
    for path in paths:
        began = time.perf_counter()
        connection.request("GET", path, headers={"Accept": "text/html"})
        answer = connection.getresponse()
        size = len(answer.read())
        times.append(1e3 * (time.perf_counter() - began))
        assert answer.status in (200, 204), (path, answer.status)
    connection.close()
    return times, size


def under_load(address, path_of):
    """p50 and p95 with eight clients, and kB."""
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        found = list(pool.map(lambda _: asked(address, [path_of() for _ in range(REQUESTS)]), range(CLIENTS)))
    times = sorted(itertools.chain.from_iterable(own for own, _ in found))
    return row(times, found[-1][1])


def alone(address, path_of, count=20):
    """The same of one client."""
    return row(*asked(address, [path_of() for _ in range(count)]))


def row(times, size):
    return {
        "p50_ms": round(statistics.median(times), 1),
        "p95_ms": round(float(np.percentile(times, 95)), 1),
        "kb": round(size / 1e3, 1),
    }


def measured(address):
    """Every kind of page."""
    home = page(address, "/")
    links = dict(reversed(pair) for pair in re.findall(r'<a href="(/ledger/\w+)">([^<]+)</a></h2>', home))
    models = re.findall(r'href="(/model/\w+)"', page(address, "/models"))
    rng = random.Random(7)
    long = links["long.ledger.jsonl"]
    stamp = re.search(r'data-stamp="(\w+)"', page(address, f"{long}/live?page=1"))[1]

    def new(kind, given):
        noise, epsilon = rng.uniform(0.8, 4.0), rng.uniform(0.5, 8.0)
        return (
            f"/calculator/{kind}?given={given}&noise={noise:.6f}&epsilon={epsilon:.6f}&rows=60000&batch=256&epochs=20"
        )

    paths = {
        "all ledgers": lambda: "/",
        "one ledger": lambda: links["customers-2026"],
        "ledger of 10,001 entries": lambda: long,
        "the same, nothing new": lambda: f"{long}/live?page=1&stamp={stamp}",
        "one grant of it": lambda: f"{long}/grant/1",
        "all models": lambda: "/models",
        "one model": lambda: models[0],
        "style sheet": lambda: "/static/dashboard.css",
        "script": lambda: "/static/dashboard.js",
        "calculator: again": lambda: "/calculator/answer?noise=1.3",
    }
    loaded = {}
    for name, path in paths.items():
        loaded[name] = under_load(address, path)
        print(name, loaded[name], flush=True)
    single = {
        "calculator: epsilon, new": alone(address, lambda: new("answer", "noise")),
        "calculator: least noise, new": alone(address, lambda: new("answer", "epsilon")),
        "calculator: curves, new": alone(address, lambda: new("curves", "noise")),
    }
    return {"clients": CLIENTS, "requests": CLIENTS * REQUESTS, "loaded": loaded, "alone": single}


def page(address, path):
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60)
    connection.request("GET", path)
    with contextlib.closing(connection):
        return connection.getresponse().read().decode()


def pictures(address, folder):
    """Screens of the pages in light, dark and on a phone."""
    folder.mkdir(parents=True, exist_ok=True)
    screens = {
        "light": {"viewport": {"width": 960, "height": 900}},
        "dark": {"viewport": {"width": 960, "height": 900}, "color_scheme": "dark"},
        "phone": {"viewport": {"width": 360, "height": 760}},
    }
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, options in screens.items():
            tab = browser.new_context(**options).new_page()
            for kind in ("ledger", "model", "calculator"):
                tab.goto(address)
                if kind == "ledger":
                    tab.get_by_role("link", name="customers-2026").click()
                if kind == "model":
                    tab.get_by_role("link", name="Models").click()
                    tab.get_by_role("link", name="spending-gradient").click()
                if kind == "calculator":
                    tab.get_by_role("link", name="Calculator").click()
                tab.wait_for_load_state("networkidle")
                shot = Image.open(io.BytesIO(tab.screenshot()))
                shot.convert("RGB").quantize(64).save(folder / f"{kind}-{name}.png", optimize=True)
        browser.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", type=Path)
    parser.add_argument("--pictures", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        url, places, models = made(folder)
        process, address = started(url, places, "--models", models)
        try:
            deadline = time.monotonic() + 120.0
            while "running" in (shown := page(address, "/")) or "being read" in shown + page(address, "/models"):
                assert time.monotonic() < deadline, "the ledgers are not verified after two minutes"
                time.sleep(0.5)
            if arguments.pictures:
                pictures(address.rstrip("/"), arguments.pictures)
            found = measured(address) | {"machine": f"{platform.machine()}, Python {platform.python_version()}"}
        finally:
            process.terminate()
            process.wait()
            process.stdout.close()
    print(json.dumps(found, indent=1))
    if arguments.save:
        arguments.save.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
