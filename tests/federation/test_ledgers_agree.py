"""The ledgers of real fits, compared: who dropped out missed draws, and what a server changes is told."""

import dataclasses

import numpy as np
import pytest

from ledgerwood.errors import LedgerCorrupted
from ledgerwood.federation.options import FederationOptions
from ledgerwood.federation.training import train
from ledgerwood.trainers import DPXGBoostClassifier, SGBDTClassifier
from ledgerwood.verification import verify_federation

from .conftest import SCHEMA, Wire, parts, rows

COMMON = {"schema": SCHEMA, "epsilon": 1.0, "delta": 1e-5, "n_estimators": 4, "max_depth": 2}


@pytest.mark.parametrize("trainer", [SGBDTClassifier, DPXGBoostClassifier])
def test_owners_that_drop_out_miss_draws_and_agree_in_all_others(trainer, owners):
    X, y = rows(240)
    generator = np.random.default_rng(3)

    def lost(number, of, count):
        return "there" if of == "upload" and generator.random() < 0.25 else None

    group = owners(parts(X, y, (40, 40, 40, 40, 40, 40)))
    found = train(trainer(**COMMON), Wire(group, lost), FederationOptions(dropouts=0.45))
    report = verify_federation(found.ledger_, [account.path for account in group.accounts])
    assert report.verdict == "confirmed"
    for number, client in enumerate(report.clients):
        (session,) = client.sessions
        assert session.session == found.federation_.session
        assert session.draws + len(session.missed) == report.server.draws
        took_part = sum(number in each.survivors for each in found.federation_.rounds)
        assert session.answers >= 2 * took_part  # an upload and an unmasking
    assert any(client.sessions[0].missed for client in report.clients)


def test_a_server_that_leaves_a_draw_out_of_its_ledger_is_found(owners):
    X, y = rows(90)
    group = owners(parts(X, y, (30, 30, 30)))
    found = train(SGBDTClassifier(**COMMON), Wire(group))
    places = [account.path for account in group.accounts]
    shorter = dataclasses.replace(found.ledger_, entries=found.ledger_.entries[:-1])
    with pytest.raises(LedgerCorrupted, match="drew number 4; the server's ledger has 3 draws") as refused:
        verify_federation(shorter, places)
    assert all(str(place) in str(refused.value) for place in places)
