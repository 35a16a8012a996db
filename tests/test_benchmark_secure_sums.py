"""The benchmark of secure sums: what it counts, and the stored figures that its page shows."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

STORED = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "secure_sums.json"
FOUND = json.loads(STORED.read_text())

secure_sums = pytest.importorskip("benchmarks.secure_sums", reason="needs flwr", exc_type=ImportError)


def test_a_small_cell_of_ours_is_exact_and_its_bytes_are_the_page_s_formula():
    terms = secure_sums.terms_of(10, 0.3)
    found = secure_sums.ours(10, 50, 3, terms)  # raises if the sum is wrong
    holders, left, length = 10, 7, 50
    assert found["up"] == 8 * length + 44 * holders + 32 * (holders - left) + 16 * left
    assert found["down"] == 44 * left
    assert found["session"] == 32 + 32 * 10


def test_flower_s_own_masks_cancel_in_the_order_in_which_they_are_driven():
    """What is timed is the protocol: a vector comes back once its self-mask and the masks of its pairs are gone."""
    import numpy as np

    client = secure_sums.Flower(secure_sums.terms_of(3, 0.0), 20, 0)
    own = np.arange(20, dtype=np.int64)
    client.share()
    view = client.unmask(client.mask([own]))
    for other in client.near:
        mask = secure_sums.pseudo_rand_gen(client.agreed(client.masking[0], other[0][1]), 1 << 32, [(20,)])
        view = secure_sums.parameters_subtraction(view, mask)
    assert (view[0] % (1 << 32)).tolist() == own.tolist()
    again = client.recover([np.zeros(20, dtype=np.int64)])
    assert ((again[0] + own - client.mask([own])[0]) % (1 << 32)).tolist() == (
        (-secure_sums.pseudo_rand_gen(client.seed, 1 << 32, [(20,)])[0]) % (1 << 32)
    ).tolist()


def test_every_cell_is_stored_or_named_as_left_out():
    run, left = secure_sums.cells(2.5e10)
    names = ("clients", "length", "dropouts", "degree", "threshold")
    for expected, stored in ((run, FOUND["cells"]), (left, FOUND["left_out"])):
        assert [[cell[name] for name in names] for cell in stored] == [
            [cell[name] for name in names] for cell in expected
        ]


def test_stored_bytes_follow_from_the_formula():
    for cell in FOUND["cells"]:
        if cell["degree"] != cell["clients"] - 1:
            continue
        holders = cell["clients"]
        left = holders - secure_sums.gone_of(holders, cell["dropouts"])
        assert cell["ours"]["up"] == 8 * cell["length"] + 44 * holders + 32 * (holders - left) + 16 * left
        assert cell["plain"]["up"] == 8 * cell["length"]


def test_the_table_shows_every_cell():
    out = io.StringIO()
    secure_sums.print_sums(FOUND, Console(file=out, width=200))
    assert out.getvalue().count("left out:") == len(FOUND["left_out"])
    assert len([line for line in out.getvalue().splitlines() if line.startswith("│")]) == len(FOUND["cells"])
