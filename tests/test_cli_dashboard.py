"""`ledgerwood dashboard`, as a process that is asked and ended; and what it refuses."""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from typer.testing import CliRunner

import ledgerwood as lw
from ledgerwood.cli.commands import app

A = lw.Adjacency.ADD_REMOVE


@pytest.fixture
def url(tmp_path):
    url = f"sqlite:///{tmp_path}/team.db"
    budget = lw.Budget(epsilon=1.0, delta=1e-5, adjacency=A)
    lw.Ledger.open(url, dataset="adult", budget=budget, unit=lw.PrivacyUnit.ROW).close()
    return url


def test_it_serves_until_it_is_interrupted(url):
    command = [
        sys.executable,
        "-c",
        "from ledgerwood.cli.commands import main; main()",
        "dashboard",
        url,
        "--port",
        "0",
        "--json",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        said = [process.stderr.readline() for _ in range(2)]
        address = re.search(r"http://127\.0\.0\.1:\d+/", said[0])[0]
        token = re.search(r"log in with this token: (\S{32})$", said[1])[1]
        told = "".join(process.stdout.readline() for _ in range(4))
        assert json.loads(told) == {"address": address, "token": token}
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert b"adult" in answer.read()
            assert "server" not in {name.lower() for name in answer.headers}
        with pytest.raises(urllib.error.HTTPError, match="421"):
            urllib.request.urlopen(urllib.request.Request(address, headers={"Host": "evil.example"}), timeout=30)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130, -signal.SIGINT)
        assert "Traceback" not in process.stderr.read()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
        process.stdout.close()


def refused(*arguments, **environment):
    result = CliRunner(env=environment).invoke(app, ["dashboard", *arguments])
    assert result.exit_code == 1, result.output
    return result.stderr


def test_what_cannot_be_served_is_refused(url, tmp_path):
    assert "there is no file or folder" in refused(str(tmp_path / "none"))
    assert "it needs at least 16" in refused(url, LEDGERWOOD_DASHBOARD_TOKEN="short")
    assert "must be a folder with saved models" in refused(url, "--models", str(tmp_path / "none"))
    assert "listens at every address: name the server" in refused(url, "--host", "0.0.0.0")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"port {port} of 127.0.0.1 cannot be used" in refused(url, "--port", port)
