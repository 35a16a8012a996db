"""A page in a real browser: Debian's chromium without a window, spoken to over two pipes (its DevTools protocol)."""

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

# Its ends of the pipes must be the file descriptors 3 and 4; they are moved out of each other's way first.
_ON_3_AND_4 = (
    "import os, sys; r, w = (os.dup(int(fd)) for fd in sys.argv[1:3]); "
    "r, w = (fd if fd > 4 else os.dup(os.dup(os.dup(fd))) for fd in (r, w)); "
    "os.dup2(r, 3); os.dup2(w, 4); os.execv(sys.argv[3], sys.argv[3:])"
)
_SECONDS = 60.0


@pytest.fixture(scope="session")
def browser():
    """Chromium with one empty page; without it the test skips, or fails where LEDGERWOOD_REQUIRE_DATA=1."""
    program = shutil.which("chromium")
    if program is None:
        missing = "there is no chromium (Debian: apt-get install chromium)"
        if os.environ.get("LEDGERWOOD_REQUIRE_DATA") == "1":
            pytest.fail(f"LEDGERWOOD_REQUIRE_DATA=1, and {missing}")
        pytest.skip(missing)
    # Its profile is not in pytest's folder: a name that is too long for a socket stops it.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, Browser(program, folder) as opened:
        yield opened


class Browser:
    """One browser with one page; what it asks of the network and says on its console is kept."""

    def __init__(self, program, folder):
        here, there = os.pipe(), os.pipe()  # to the browser, from it
        options = (
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
            "--no-first-run", "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
            f"--user-data-dir={folder}",
        )  # fmt: skip
        log = Path(folder) / "stderr"
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _ON_3_AND_4, str(here[0]), str(there[1]), program, *options, "about:blank"],
                pass_fds=(here[0], there[1]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                env={**os.environ, "HOME": str(folder)},
            )  # fmt: skip
        os.close(here[0])
        os.close(there[1])
        self._to, self._from = here[1], there[0]
        self._log = log
        self._buffer = b""
        self._asked = 0
        self._session = None
        self.requests, self.blocked, self.complaints, self._loaded = [], [], [], False
        try:
            self._attach()
        except BaseException:  # nobody else would end it
            self.__exit__()
            raise

    def _attach(self):
        pages = self.ask("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in pages if target["type"] == "page")
        self._session = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log", "Accessibility"):
            self.ask(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError, AssertionError):
            self._session = None
            self.ask("Browser.close")
        os.close(self._to)
        os.close(self._from)
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def open(self, path, *, width=1280, height=900, dark=False):
        """Load a file, and wait until it is there."""
        self.requests, self.blocked, self.complaints, self._loaded = [], [], [], False
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=Path(path).resolve().as_uri())
        while not self._loaded:
            self._take(self._read())

    def value(self, expression):
        """What an expression of JavaScript gives in the page."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def ask(self, method, **arguments):
        """One command, and its answer."""
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": arguments}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._asked:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self._take(answer)

    def _take(self, event):
        told = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])
            case "Network.loadingFailed":
                self.blocked.append(told.get("blockedReason"))
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                self.complaints.append(told)
            case "Log.entryAdded":
                self.complaints.append(told["entry"])
            case "Page.loadEventFired":
                self._loaded = True

    def _read(self):
        until = time.monotonic() + _SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(0.0, until - time.monotonic()))
            piece = os.read(self._from, 1 << 16) if ready else b""
            assert piece, (
                f"the browser says nothing; its standard error: {self._log.read_text(errors='replace')[-2000:]}"
            )
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(line)
