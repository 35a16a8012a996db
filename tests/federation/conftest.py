"""Federations in this process: owners, transports that lose messages, and the central model over who survived."""

from pathlib import Path

import numpy as np
import pytest

import ledgerwood as lw
from ledgerwood.federation.owners.account import ClientAccount
from ledgerwood.federation.owners.own import OwnRows, identity_at
from ledgerwood.federation.owners.owner import Owner
from ledgerwood.federation.owners.policy import OwnerPolicy

SCHEMA = lw.Schema(
    features=tuple(lw.Numeric(name, 0, 1) for name in "abc"), target=lw.Categorical("t", ("no", "yes"))
)  # fmt: skip
BUDGET = lw.Budget(epsilon=100.0, delta=1e-3, adjacency=lw.Adjacency.ADD_REMOVE)


def rows(n, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.random((n, 3))
    return X, np.where(X[:, 0] + 0.2 * generator.random(n) > 0.6, "yes", "no")


def parts(X, y, sizes):
    ends = np.cumsum(sizes)[:-1]
    return list(zip(np.split(X, ends), np.split(y, ends), strict=True))


class Owners:
    """Some owners, with their files in a folder; `restarted` is an owner's process after a crash."""

    def __init__(self, folder, given, *, unit=lw.PrivacyUnit.ROW, budget=BUDGET, **options):
        self.folder, self.given, self.options = Path(folder), given, options
        self.accounts = [
            ClientAccount(self.folder / f"{number}.jsonl", dataset=f"client {number}", budget=budget, unit=unit)
            for number in range(len(given))
        ]
        self.all = [self.made(number) for number in range(len(given))]

    def made(self, number):
        X, y = self.given[number]
        return Owner(
            lambda: OwnRows(X=X, y=y), account=self.accounts[number],
            identity=identity_at(self.folder / f"{number}.key"),
            policy=OwnerPolicy(**{"allow_seed": True, **self.options}),
        )  # fmt: skip

    def restarted(self, number):
        self.all[number] = self.made(number)


class Wire:
    """A transport in this process. `lost(number, what, count)` says whether a message gets lost, and on which way."""

    def __init__(self, owners, lost=lambda number, what, count: None):
        self.owners, self.lost = owners, lost
        self.count, self.seen, self.silent = 0, [], {}

    @property
    def clients(self):
        return tuple(range(len(self.owners.all)))

    def exchange(self, requests, *, what):
        found = {}
        for number, request in requests.items():
            self.count += 1
            way = self.lost(number, what, self.count)
            if way == "there":
                continue
            reply = self.owners.all[number].answer(request)
            self.seen.append((number, what, request, reply))
            if way != "back":
                found[number] = reply
        return found


@pytest.fixture
def owners(tmp_path):
    return lambda given, **options: Owners(tmp_path, given, **options)
