"""Record two fits of a federation and say what a curious server and a curious client find in the messages.

    python -m benchmarks.federation_views [--save docs/benchmarks/federation_views.json]

The two fits differ in which owner has which rows, and in nothing that the sums show: whatever tells them apart in the
messages tells owners apart. For the server: the bytes of the masked sums (chi-square against uniform bytes), their
correlation with the owner's true sums, and whether masked sums of two rounds are related. For a client: what it was
sent, by kind, and what of it depends on other owners.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from scipy import stats

import ledgerwood as lw
from ledgerwood.curator.places.owner_rows import OwnerRows
from ledgerwood.federation.codec import unpack
from ledgerwood.federation.owners.account import ClientAccount
from ledgerwood.federation.owners.own import OwnRows, identity_at
from ledgerwood.federation.owners.owner import Owner
from ledgerwood.federation.training import train
from ledgerwood.trainers import FederatedGBDTClassifier

SCHEMA = lw.Schema(
    features=tuple(lw.Numeric(name, 0, 1) for name in "abcdef"), target=lw.Categorical("two", ("no", "yes"))
)  # fmt: skip
OWNERS, TREES = 5, 100


class RecordingWire:
    """Carries messages in this process, and keeps them all."""

    def __init__(self, owners):
        self.owners = owners
        self.messages, self.silent = [], {}

    @property
    def clients(self):
        return tuple(range(len(self.owners)))

    def exchange(self, requests, *, what):
        replies = {}
        for number, request in requests.items():
            replies[number] = self.owners[number].answer(request)
            self.messages.append((number, what, request, replies[number]))
        return replies


def recorded(given, folder):
    """The messages of a fit, and each owner's true sums, which no message has."""
    truths, whole = defaultdict(list), OwnerRows.sums
    of = {}

    def kept(rows, *arguments, **named):
        found = whole(rows, *arguments, **named)
        truths[of[id(rows)] if id(rows) in of else of.setdefault(id(rows), len(of))].append(found.ravel().copy())
        return found

    owners = [
        Owner(
            lambda rows=rows: OwnRows(X=rows[0], y=rows[1]),
            account=ClientAccount(folder / f"{number}.jsonl", budget=BUDGET, unit=lw.PrivacyUnit.ROW),
            identity=identity_at(folder / f"{number}.key"),
        )
        for number, rows in enumerate(given)
    ]
    wire = RecordingWire(owners)
    OwnerRows.sums = kept
    try:
        train(FederatedGBDTClassifier(schema=SCHEMA, epsilon=1.0, delta=1e-5, n_estimators=TREES), wire)
    finally:
        OwnerRows.sums = whole
    return wire.messages, truths


BUDGET = lw.Budget(epsilon=10.0, delta=1e-3, adjacency=lw.Adjacency.ADD_REMOVE)


def servers_view(messages, truths):
    """What the masked sums of one owner tell."""
    uploads = defaultdict(list)
    for number, what, _, reply in messages:
        if what == "upload":
            uploads[number].append(unpack(reply).upload.values)
    found = []
    for number in range(OWNERS):
        words = np.concatenate(uploads[number])
        counts = np.bincount(words.view(np.uint8), minlength=256)
        true = np.concatenate(truths[number]).astype(float)
        high = (words >> np.uint64(11)).astype(float)
        first, second = uploads[number][0], uploads[number][1]
        found.append(
            {
                "owner": number,
                "words": len(words),
                "chi-square p of bytes": float(stats.chisquare(counts).pvalue),
                "correlation with its true sums, p": float(stats.spearmanr(high, true).pvalue),
                "equal words in two rounds": int((first == second).sum()),
            }
        )
    return found


def clients_view(messages, number):
    """The kinds of what one client was sent, with bytes, and the sealed shares that it cannot read but its own."""
    kinds, sizes = Counter(), Counter()
    for owner, what, request, _ in messages:
        if owner == number:
            kinds[what] += 1
            sizes[what] += len(request)
    return {what: {"messages": kinds[what], "bytes": sizes[what]} for what in sorted(kinds)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", type=Path)
    chosen = parser.parse_args()
    generator = np.random.default_rng(0)
    X = generator.random((1000, 6))
    y = np.where(X[:, 0] > 0.5, "yes", "no")
    spread = np.array_split(np.arange(1000), OWNERS)
    sorted_ = np.array_split(np.argsort(X[:, 0]), OWNERS)  # owner 0 has nobody of class "yes", owner 4 nobody else
    views = {}
    for name, parts in (("rows spread over the owners", spread), ("rows sorted by class", sorted_)):
        with tempfile.TemporaryDirectory(prefix="ledgerwood-federation-") as folder:
            messages, truths = recorded([(X[own], y[own]) for own in parts], Path(folder))
        views[name] = {"server": servers_view(messages, truths), "client 0": clients_view(messages, 0)}
        print(name)
        for line in views[name]["server"]:
            print("  ", line)
        print("   client 0 was sent", views[name]["client 0"])
    if chosen.save:
        chosen.save.write_text(json.dumps(views, indent=1) + "\n")


if __name__ == "__main__":
    main()
