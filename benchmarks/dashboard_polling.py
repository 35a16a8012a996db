"""Pages of the dashboard left open while a ledger is spent from: does the server or the browser grow?

    python -m benchmarks.dashboard_polling --minutes 20 --tabs 6 --out docs/benchmarks/dashboard_polling.json

Six tabs for twenty minutes ask the server as often as one tab does in two hours. Memory of the server with its verifier
(resident) and of each page (heap after a collection, nodes of the document) is sampled; growth is the slope over the
second half, when everything has been loaded once.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

import ledgerwood as lw

A = lw.Adjacency.ADD_REMOVE


def opened(url):
    """A ledger with some grants."""
    budget = lw.Budget(epsilon=1e6, delta=1e-5, adjacency=A)
    return lw.Ledger.open(url, dataset="adult", budget=budget, unit=lw.PrivacyUnit.ROW)


def started(*places):
    """The dashboard as a process, and its address."""
    program = "from ledgerwood.cli.commands import main; main()"
    command = [sys.executable, "-c", program, "dashboard", *places, "--port", "0", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    told = json.loads("".join(process.stdout.readline() for _ in range(4)))
    return process, told["address"]


def resident(pid):
    """MB of a process and of those that it started, by Linux."""
    total = 0
    for each in [pid, *children(pid)]:
        try:
            total += int(Path(f"/proc/{each}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except FileNotFoundError:
            continue
    return total / 1e6


def children(pid):
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *children(int(child))]
    return found


def spend(url, every, over):
    """Spend a little now and then until it is over; how often."""
    count = 0
    with opened(url) as ledger:
        while not over.wait(every):
            ledger.spend(lw.PureEvent(epsilon=0.01, adjacency=A), purpose=f"count {count}", delta=0.0)
            count += 1
    return count


def measured(minutes, tabs, every, pause):
    """Samples over time."""
    samples, over = [], threading.Event()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        url = f"sqlite:///{folder}/team.db"
        opened(url).close()
        spender = threading.Thread(target=spend, args=(url, every, over))
        process, address = started(url)
        spender.start()
        try:
            with sync_playwright() as driver:
                browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
                pages = [browser.new_context().new_page() for _ in range(tabs)]  # windows: a hidden tab asks nothing
                asked = [0]
                for page in pages:
                    page.on("request", lambda _: asked.__setitem__(0, asked[0] + 1))
                    page.goto(address)
                    page.get_by_role("link", name="adult").click()
                began = time.monotonic()
                while time.monotonic() - began < 60.0 * minutes:
                    pages[0].wait_for_timeout(1000.0 * pause)
                    samples.append(sample(pages, process.pid, time.monotonic() - began, asked[0]))
                    print(json.dumps(samples[-1]), flush=True)
                browser.close()
        finally:
            over.set()
            spender.join()
            process.terminate()
            process.wait()
            process.stdout.close()
    return samples


def sample(pages, pid, seconds, requests):
    heaps, nodes = [], []
    for page in pages:
        session = page.context.new_cdp_session(page)
        session.send("HeapProfiler.collectGarbage")
        session.send("Performance.enable")
        values = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
        session.detach()
        heaps.append(values["JSHeapUsedSize"] / 1e6)
        nodes.append(page.evaluate("document.getElementsByTagName('*').length"))
    return {
        "seconds": round(seconds),
        "requests": requests,
        "server_mb": round(resident(pid), 1),
        "page_heap_mb": round(max(heaps), 2),
        "page_nodes": max(nodes),
    }


def slope(samples, name):
    """Growth an hour over the second half."""
    half = samples[len(samples) // 2 :]
    return float(np.polyfit([one["seconds"] / 3600.0 for one in half], [one[name] for one in half], 1)[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--tabs", type=int, default=6)
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two spends")
    parser.add_argument("--pause", type=float, default=20.0, help="seconds between two samples")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    samples = measured(arguments.minutes, arguments.tabs, arguments.every, arguments.pause)
    growth = {name: slope(samples, name) for name in ("server_mb", "page_heap_mb", "page_nodes")}
    record = {"minutes": arguments.minutes, "tabs": arguments.tabs, "growth_an_hour": growth, "samples": samples}
    print(json.dumps(growth))
    if arguments.out:
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
