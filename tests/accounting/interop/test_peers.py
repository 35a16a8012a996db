"""Peers are imported late: with neither the package nor its conversions; where one is missing, the error says so."""

import subprocess
import sys
from pathlib import Path

import pytest

from ledgerwood.accounting.interop import dp_accounting

ROOT = Path(__file__).resolve().parents[3]
PEERS = ("autodp", "dp_accounting", "prv_accountant", "opendp")


def loaded_by(statement):
    program = f"import sys; {statement}; print(*sys.modules)"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(finished.stdout.split())


@pytest.mark.slow  # any event that can be written, there and back
def test_the_package_does_not_import_its_conversions():
    assert not {name for name in loaded_by("import ledgerwood") if name.startswith("ledgerwood.accounting.interop")}


@pytest.mark.slow  # any event that can be written, there and back
def test_the_conversions_do_not_import_a_peer():
    loaded = loaded_by("import ledgerwood.accounting.interop")
    assert "ledgerwood.accounting.interop.autodp" in loaded
    assert not loaded & set(PEERS)


def test_a_missing_peer_is_named_with_its_extra():
    with pytest.raises(ImportError, match=r"needs no_such_peer: pip install 'ledgerwood\[oracle\]'") as failed:
        dp_accounting.load("no_such_peer.part", extra="oracle")
    assert failed.value.name == "no_such_peer"
