"""Signatures of a ledger's head: what they vouch for, and every way in which they do not."""

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from typer.testing import CliRunner

import ledgerwood as lw
from ledgerwood.cli.commands import app
from ledgerwood.errors import InvalidParameter, LedgerCorrupted, LedgerError
from ledgerwood.verification import sign_ledger, verify_ledger

A = lw.Adjacency.ADD_REMOVE
BUDGET = lw.Budget(epsilon=1.0, delta=0.0, adjacency=A)


def pure(epsilon):
    return lw.PureEvent(epsilon=epsilon, adjacency=A)


def write_keys(folder, name, key):
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.pem").write_bytes(private)
    (folder / f"{name}.pub.pem").write_bytes(public)


@pytest.fixture
def folder(tmp_path):
    """Keys of an owner and a stranger, a ledger, and the owner's signature of it."""
    for name in ("owner", "stranger"):
        write_keys(tmp_path, name, Ed25519PrivateKey.generate())
    write_keys(tmp_path, "curve", generate_private_key(SECP256R1()))
    spend(tmp_path / "run.jsonl", 0.25)
    spend(tmp_path / "run.jsonl", 0.125)
    (tmp_path / "run.sig").write_text(sign_ledger(tmp_path / "run.jsonl", private_key=tmp_path / "owner.pem") + "\n")
    return tmp_path


def spend(path, *epsilons):
    with lw.Ledger.open(path, dataset="adult", budget=BUDGET, unit=lw.PrivacyUnit.ROW) as ledger:
        for epsilon in epsilons:
            ledger.grant(pure(epsilon), purpose="p")


def verify(folder, ledger="run.jsonl", signature="run.sig", key="owner"):
    return verify_ledger(folder / ledger, signature=folder / signature, public_key=folder / f"{key}.pub.pem")


def test_the_owners_signature_holds_also_when_the_ledger_grew(folder):
    assert verify(folder).grants == 2
    spend(folder / "run.jsonl", 0.5)
    assert verify(folder).grants == 3


def test_a_rebuilt_chain_and_a_cut_tail_are_found(folder):
    spend(folder / "rebuilt.jsonl", 0.125, 0.125)
    assert verify_ledger(folder / "rebuilt.jsonl").grants == 2  # a chain like any other
    with pytest.raises(LedgerCorrupted, match="entry 2: not the one that was signed"):
        verify(folder, "rebuilt.jsonl")
    lines = (folder / "run.jsonl").read_text().splitlines(keepends=True)
    (folder / "cut.jsonl").write_text("".join(lines[:2]))
    with pytest.raises(LedgerCorrupted, match="entry 2: missing; the signature is of a ledger of 3 entries"):
        verify(folder, "cut.jsonl")


def test_a_strangers_key_is_not_the_owners(folder):
    with pytest.raises(LedgerCorrupted, match="not made by the owner of this key"):
        verify(folder, key="stranger")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found | {"entries": 2}, "altered"),
        (lambda found: found | {"head": "0" * 64}, "altered"),
        (lambda found: found | {"dataset": "census"}, "altered"),
        (
            lambda found: (
                found | {"signature": found["signature"][:-2] + ("00" if found["signature"][-2:] != "00" else "01")}
            ),
            "altered",
        ),
        (lambda found: found | {"signature": "xyz"}, "cannot be read"),
        (lambda found: found | {"signature": 3}, "cannot be read"),
        (lambda found: found | {"format": "another"}, "not of the form"),
        (lambda found: found | {"more": 1}, "not of the form"),
        (lambda found: [found], "cannot be read"),
        (lambda found: None, "cannot be read"),
    ],
)
def test_an_altered_signature_vouches_for_nothing(folder, change, message):
    found = json.loads((folder / "run.sig").read_text())
    (folder / "run.sig").write_text(json.dumps(change(found)))
    with pytest.raises(LedgerCorrupted, match=message):
        verify(folder)


def test_keys_and_files_that_will_not_do(folder):
    for key in ("run.sig", "curve.pem", "nowhere.pem", "owner.pub.pem"):
        with pytest.raises(InvalidParameter, match="private_key="):
            sign_ledger(folder / "run.jsonl", private_key=folder / key)
    for key in ("run.sig", "curve.pub.pem", "nowhere.pem"):
        with pytest.raises(InvalidParameter, match="public_key="):
            verify_ledger(folder / "run.jsonl", signature=folder / "run.sig", public_key=folder / key)
    with pytest.raises(LedgerError, match="signature .* cannot be read"):
        verify(folder, signature="nowhere.sig")
    with pytest.raises(InvalidParameter, match="together"):
        verify_ledger(folder / "run.jsonl", signature=folder / "run.sig")


def test_a_ledger_that_does_not_hold_is_not_signed(folder):
    path = folder / "run.jsonl"
    path.write_text(path.read_text().replace("0.25", "0.125"))
    with pytest.raises(LedgerCorrupted, match="entry 1"):
        sign_ledger(path, private_key=folder / "owner.pem")


def test_the_command_line_signs_and_verifies(folder):
    def run(*arguments):
        return CliRunner().invoke(app, ["ledger", *(str(argument) for argument in arguments)])

    signed = run("sign", folder / "run.jsonl", folder / "new.sig", "--private-key", folder / "owner.pem", "--json")
    assert signed.exit_code == 0
    assert json.loads(signed.stdout)["entries"] == 3
    assert (folder / "new.sig").read_bytes() == (folder / "run.sig").read_bytes()  # Ed25519 draws no randomness
    for key, code in (("owner", 0), ("stranger", 1)):
        key_file = folder / f"{key}.pub.pem"
        assert (
            run("verify", folder / "run.jsonl", "--signature", folder / "run.sig", "--public-key", key_file).exit_code
            == code
        )
    again = run("sign", folder / "run.jsonl", folder / "new.sig", "--private-key", folder / "owner.pem")
    assert again.exit_code == 1  # a signature is never overwritten
