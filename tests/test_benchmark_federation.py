"""The benchmark of rounds over Flower: how runs are put together, and the page that shows what is stored."""

import json
import re
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

pytest.importorskip("flwr", reason="needs the extra: federation")
from benchmarks import federation, federation_kills

mpl.use("agg")
ROOT = Path(__file__).resolve().parents[1]


def rounds(clients, seconds, *kinds):
    return [
        {
            "what": what, "clients": clients, "words": 1000, "dropouts": 0.0, "seconds": seconds,
            "bytes_a_client": 9000.0, "load": 1.0, "rounds": 3,
        }
        for what in kinds
    ]  # fmt: skip


def run(rounds=(), fits=(), left_out=(), sent=()):
    missing = [list(each) for each in left_out]
    return {"rounds": list(rounds), "fits": list(fits), "sent": list(sent), "cores": 2, "left_out": missing}


def test_figures_of_two_runs_are_put_together_by_case():
    before = run([*rounds(3, 1.0, "plain", "masked", "SecAgg+"), *rounds(100, 9.0, "plain")], left_out=[(10, 1000)])
    own = run([*rounds(3, 2.0, "masked"), *rounds(10, 3.0, "plain")], left_out=[(1000, 10**6)])
    both = federation.added(own, before)
    assert [(each["clients"], each["what"], each["seconds"]) for each in both["rounds"]] == [
        (3, "plain", 1.0), (3, "masked", 2.0), (3, "SecAgg+", 1.0), (10, "plain", 3.0), (100, "plain", 9.0),
    ]  # fmt: skip
    assert both["left_out"] == [(1000, 10**6)]  # the other one has been measured since
    sent = [{"preset": "paper", "rounds": each} for each in (1, 2)]
    assert federation.added(run(), run(sent=sent[:1]))["sent"] == sent[:1]
    assert federation.added(run(sent=sent[1:]), run(sent=sent[:1]))["sent"] == sent[1:]
    fits = [{"clients": 20, "trees": 200, "seconds": each} for each in (100.0, 50.0)]
    assert federation.added(run(fits=fits[1:]), run(fits=fits[:1]))["fits"] == fits[1:]


def test_a_peer_that_did_not_finish_is_shown_as_such(capsys):
    slow = {
        "what": "SecAgg+", "clients": 100, "words": 1000, "dropouts": 0.0, "rounds": 0, "finished": False,
        "load": 2.0, "seconds": None, "bytes_a_client": None, "more_than_seconds": 900.0,
    }  # fmt: skip
    half = {**rounds(10, 40.0, "SecAgg+")[0], "rounds": 1, "finished": False}
    found = run([*rounds(10, 1.0, "plain"), half, *rounds(100, 1.0, "plain"), slow])
    federation.print_rounds(found)
    told = capsys.readouterr().out
    assert "no round within 900 s" in told
    assert "after 1 rounds: no more within the limit" in told
    own = [line for line in federation.drawn_rounds(found).axes[0].lines if list(line.get_ydata()) == [40.0]]
    assert len(own) == 1  # and no point for the one without figures


@pytest.mark.slow  # Flower's simulation: 30 to 100 s
def test_a_peer_is_ended_after_its_time(only_ray):
    found = federation.peer(3, 100, 1, 2.0)
    assert (found["finished"], found["seconds"], found["more_than_seconds"]) == (False, None, 2.0)


def test_the_campaign_of_kills_compares_with_the_central_model_over_the_survivors():
    rows = [federation_kills.rows_of(number) for number in range(federation_kills.CLIENTS)]
    X, y = (np.concatenate(each) for each in zip(*rows, strict=True))
    everybody = list(range(federation_kills.CLIENTS))
    whole = federation_kills.central(3, [everybody, everybody])
    assert federation_kills.model_in(whole) == federation_kills.model_in(federation_kills.model_of(3).fit(X, y))
    without = federation_kills.central(3, [everybody, [0, 2, 4]])
    assert federation_kills.model_in(without) != federation_kills.model_in(whole)


def test_the_page_shows_the_stored_figures(monkeypatch, capsys):
    monkeypatch.chdir(ROOT / "docs" / "benchmarks")
    monkeypatch.setattr(sys, "path", list(sys.path))
    stored = json.loads(Path("federation.json").read_text())
    assert all(each["right"] for each in stored["rounds"] if each["what"] != "SecAgg+")
    assert all(each["as_in_one_table"] for each in stored["fits"])
    assert [each["preset"] for each in stored["sent"]] == list(federation.PRESETS)
    for each in stored["sent"]:
        assert each["words_up"] == each["planned_words_up"]
        assert each["rounds"] >= each["planned_rounds"]
        assert each["bytes_up_a_client"] > each["planned_bytes_up"]
    kills = json.loads(Path("federation_kills.json").read_text())
    assert kills["models_that_differ"] == kills["double_spends"] == kills["hangs"] == 0
    text, names = Path("federation.md").read_text(), {}
    for cell in re.findall(r"```\{code-cell\} python\n(?::tags:[^\n]*\n)?(.*?)```", text, flags=re.DOTALL):
        exec(compile(cell, "federation.md", "exec"), names)
    told = capsys.readouterr().out
    assert len(re.findall(r"^ +\d+ +\d+ +\d+% ", told, flags=re.MULTILINE)) == len(stored["rounds"])
    assert told.count(" clients, ") == len(stored["fits"])
    assert all(f"{each['preset']:>18} {each['rounds']:7d} " in told for each in stored["sent"])
    mpl.pyplot.close("all")
