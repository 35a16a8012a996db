"""What the command line reads for an audit, functions in files, pairs and claims, and what it refuses."""

import json
import math
import sys

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.accounting.events.serial import to_json
from ledgerwood.errors import InvalidParameter
from ledgerwood.report.audits.inputs import claim_words, load_claim, load_named, load_pair, load_sampler

A = lw.Adjacency.ADD_REMOVE


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A file with a sampler that imports its neighbour in the same folder."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "noise_of_mine.py").write_text("SCALE = 2.0\n")
    place = tmp_path / "my_mechanism.py"
    place.write_text(
        "import dataclasses\nfrom noise_of_mine import SCALE\n\n"
        "@dataclasses.dataclass\nclass Held:\n    value: float\n\n"
        "def sampler(dataset, n, rng):\n    return dataset.sum() + rng.laplace(scale=SCALE, size=n)\n\n"
        "PAIR = ([0.0], [1.0])\nNUMBER = 3\n"
    )
    yield place
    for name in ("noise_of_mine", "ledgerwood_audited_my_mechanism"):
        sys.modules.pop(name, None)


def test_a_function_is_found_in_a_file_and_in_a_module(module):
    found = load_sampler(f"{module}:sampler")
    assert found(np.ones(2), 5, np.random.default_rng(1)).shape == (5,)
    assert load_named("math:exp") is math.exp


@pytest.mark.parametrize("spec", ["", "module", "module:", ":name", "file.py:a b", "a:b:"])
def test_names_of_another_form_are_refused(spec):
    with pytest.raises(InvalidParameter, match=r"must be FILE\.py:NAME or MODULE:NAME"):
        load_named(spec)


def test_what_is_not_there_is_named(module, tmp_path):
    for spec, words in (
        (f"{module}:other", "has no 'other'"),
        (f"{tmp_path}/no.py:sampler", "there is no file"),
        ("no_such_module_anywhere:sampler", "cannot be imported: ModuleNotFoundError"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            load_named(spec)
    with pytest.raises(InvalidParameter, match="must be a function"):
        load_sampler(f"{module}:NUMBER")


@pytest.mark.parametrize(
    "body", ["raise RuntimeError('broken')", "raise SystemExit(0)", "import no_such_module_anywhere", "def f(:"]
)
def test_a_module_that_fails_is_named(tmp_path, monkeypatch, body):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "broken_here.py").write_text(body)
    with pytest.raises(InvalidParameter, match=r"broken_here\.py cannot be imported"):
        load_named(f"{tmp_path}/broken_here.py:f")
    assert not [name for name in sys.modules if "broken_here" in name]


def test_pairs_are_read_from_json_a_file_and_a_module(module, tmp_path):
    (tmp_path / "pair.json").write_text("[[[1, 2]], [[1, 2], [NaN, 3]]]")
    assert [rows.tolist() for rows in load_pair("[[1], [1, 0]]")] == [[1.0], [1.0, 0.0]]
    first, second = load_pair(str(tmp_path / "pair.json"))
    assert (first.shape, second.shape) == ((1, 2), (2, 2))
    assert np.isnan(second[1, 0])
    assert load_pair(f"{module}:PAIR") == ([0.0], [1.0])
    assert load_pair(None) is None
    assert load_pair('[["a"], ["b"]]')[0].tolist() == ["a"]
    assert load_pair("[[], [1]]")[0].size == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[1]]", "must be two data sets"),
        ("[1, 2]", "must be a list"),
        ("[[1], [[1], [2, 3]]]", "rows of one length"),
        ("[[1], [{}]]", "of one kind"),
        ("[[1], [null]]", "of one kind"),
        ("[[1], ", "is not JSON"),
        ("math:pi", "must be two data sets"),
        ("nowhere", "must be FILE"),
    ],
)
def test_pairs_of_another_form_are_refused(text, words):
    with pytest.raises(InvalidParameter, match=words):
        load_pair(text)


def claim(**given):
    return load_claim(
        **{"epsilon": None, "delta": None, "gaussian": None, "laplace": None, "event": None, "adjacency": A} | given
    )


def test_claims_are_what_they_say(tmp_path):
    event = lw.Repeated(
        lw.PoissonSampled(lw.GaussianEvent(noise_multiplier=2.0, adjacency=A), sampling_rate=0.1), count=3
    )
    (tmp_path / "event.json").write_text(json.dumps(to_json(event)))
    assert claim(epsilon=1.0) == lw.Budget(epsilon=1.0, delta=0.0, adjacency=A)
    assert claim(epsilon=1.0, delta=1e-5) == lw.Budget(epsilon=1.0, delta=1e-5, adjacency=A)
    assert claim(gaussian=2.0) == lw.GaussianEvent(noise_multiplier=2.0, adjacency=A)
    assert claim(laplace=2.0) == lw.LaplaceEvent(noise_multiplier=2.0, adjacency=A)
    assert claim(event=tmp_path / "event.json") == event
    assert json.loads(claim_words(event)) == to_json(event)


@pytest.mark.parametrize(
    "text", ["no", "{}", '{"type": "NoEvent"}', '{"type": "PureEvent", "epsilon": -1}', "[]", "\xff"]
)
def test_files_that_hold_no_event_are_refused(tmp_path, text):
    (tmp_path / "event.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InvalidParameter, match="event.json|must be"):
        claim(event=tmp_path / "event.json")


def test_claims_are_put_in_words():
    assert claim_words(lw.Budget(epsilon=1.0, delta=1e-5, adjacency=A)) == "epsilon 1.0, delta 1e-05, add-remove"
    assert claim_words(None) == "none"
    assert "function" in claim_words(lambda epsilon: 0.0)
