"""Seconds and bytes of one secure sum, beside a plain sum and the primitives of Flower's SecAgg+, in one run.

A cell is a number of clients, a length of vectors and a fraction of dropouts (before their upload). Seconds are of the
process's cores, so that they depend little on what else the machine does: the median client's, and the server's.
Nothing is sent or serialised; bytes are those of keys, vectors, shares and signatures in the messages.

* Plain: a client sends its integers, and the server adds them up.
* Ours: all clients are driven, and the sum is compared with the plain one. Each message is answered by a fresh client,
  which agrees on its keys anew, as in Flower's processes.
* SecAgg+: `flwr.common.secure_aggregation`, driven in the order of Flower's own client mod and workflow with the same
  graph and threshold: fresh keys each round, shares of two secrets, numpy's masks modulo 2**32 in 64-bit words.
  Integers are not quantised. Three clients are timed, or one where there are more than ten. The server's work is
  timed for as many of each kind, survivors and dropped clients, and multiplied by their numbers: a full run would
  take hours.

    python -m benchmarks.secure_sums [--most 2.5e10] --save docs/benchmarks/secure_sums.json
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from flwr.common.secure_aggregation.crypto import shamir, symmetric_encryption
from flwr.common.secure_aggregation.ndarrays_arithmetic import (
    parameters_addition,
    parameters_mod,
    parameters_subtraction,
)
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen, share_keys_plaintext_concat
from flwr.supercore.primitives import asymmetric
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ledgerwood.secure_aggregation import RANDOM_BYTES, ClientSums, Roster, ServerSum, SessionKeys, SumContext, SumTerms

CLIENTS = (3, 10, 100, 1000)
LENGTHS = (1_000, 100_000, 1_000_000)
DROPOUTS = (0.0, 0.1, 0.3)
COLLUDING = 0.1
WORD = 8
SAMPLED = 3
"""Clients of SecAgg+ that are timed, of up to ten."""
MOD_RANGE = 1 << 32
"""Flower's default modulus."""
SESSION, PLAN = b"benchmark", bytes(32)


class Stopwatch:
    """Adds up seconds of the process's cores."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        found = work()
        self.seconds += time.process_time() - start
        return found


def values(client: int, length: int) -> NDArray[np.uint64]:
    """A client's integers."""
    return np.random.default_rng(client).integers(0, 1 << 63, length, dtype=np.uint64)


def terms_of(n: int, dropouts: float) -> SumTerms:
    """The terms where a tenth may collude."""
    return SumTerms.for_clients(n, colluding=COLLUDING, dropouts=dropouts)


def plain(n: int, length: int, gone: int) -> dict[str, float]:
    server, total = Stopwatch(), np.zeros(length, dtype=np.uint64)
    for client in range(gone, n):
        found = values(client, length)
        server(lambda found=found: np.add(total, found, out=total))
    return {"client": 0.0, "server": server.seconds, "up": WORD * length, "down": 0}


def ours(n: int, length: int, gone: int, terms: SumTerms) -> dict[str, float]:
    """One attempt with all clients; raises if the sum is not the plain one."""
    identities = [os.urandom(32) for _ in range(n)]
    keys = tuple(SessionKeys.derived(identity, SESSION).public for identity in identities)
    roster, context = Roster(session=SESSION, keys=keys), SumContext(session=SESSION, plan=PLAN, round=1)
    roster.neighbours(0, terms)  # the ring is laid once a session
    live = frozenset(range(n))
    server, watches = Stopwatch(), [Stopwatch() for _ in range(n)]
    up, down = [0] * n, [0] * n

    def fresh(client: int) -> ClientSums:
        own = SessionKeys.derived(identities[client], SESSION)
        return ClientSums(terms=terms, roster=roster, number=client, keys=own)

    found = server(lambda: ServerSum(terms=terms, roster=roster, context=context, live=live, length=length))
    expected = np.zeros(length, dtype=np.uint64)
    for client in range(gone, n):
        own = values(client, length)
        expected += own
        upload = watches[client](
            lambda client=client, own=own: fresh(client).masked(context, live, own, os.urandom(RANDOM_BYTES))
        )
        up[client] += WORD * length + sum(map(len, upload.shares.values()))
        server(lambda client=client, upload=upload: found.add(client, upload))
    survivors = server(found.close)
    for client in sorted(found.to_recover):
        revealed = watches[client](lambda client=client: fresh(client).pair_keys(context, live, survivors))
        up[client] += sum(map(len, revealed.values()))
        server(lambda client=client, revealed=revealed: found.add_pair_keys(client, revealed))
    for client in sorted(survivors):
        shares = server(lambda client=client: found.shares_for(client))
        down[client] += sum(map(len, shares.values()))
        opened = watches[client](
            lambda client=client, shares=shares: fresh(client).opened(context, live, survivors, shares)
        )
        up[client] += sum(map(len, opened.values()))
        server(lambda client=client, opened=opened: found.add_opened(client, opened))
    if not np.array_equal(server(found.total), expected):
        raise RuntimeError("the secure sum is not the plain sum")
    return {
        "client": statistics.median(watches[client].seconds for client in survivors),
        "server": server.seconds,
        "up": statistics.median(up[client] for client in survivors),
        "down": statistics.median(down[client] for client in survivors),
        "session": 32 * (n + 1),
    }


class Flower:
    """SecAgg+ by its own primitives, with as many neighbours and the same threshold: one client, and the server's work.

    Args:
        terms: the graph and the threshold.
        length: integers in a vector.
        dropped: neighbours of the client that drop out.
    """

    def __init__(self, terms: SumTerms, length: int, dropped: int) -> None:
        self.holders, self.threshold, self.shape = terms.degree + 1, terms.threshold, [(length,)]
        self.dropped = dropped
        few = [(self.pair(), self.pair()) for _ in range(min(terms.degree, 8))]  # eight neighbours' keys, in turns
        self.near = [few[i % len(few)] for i in range(terms.degree)]

    @staticmethod
    def pair() -> tuple[bytes, bytes]:
        private, public = asymmetric.generate_key_pairs()
        return asymmetric.private_key_to_bytes(private), asymmetric.public_key_to_bytes(public)

    @staticmethod
    def agreed(private: bytes, public: bytes) -> bytes:
        return symmetric_encryption.generate_shared_key(
            asymmetric.bytes_to_private_key(private), asymmetric.bytes_to_public_key(public)
        )

    def share(self) -> None:
        """Stages 0 and 1: two key pairs, and sealed shares of the self-mask's seed and of the first private key."""
        self.masking, self.sealing, self.seed = self.pair(), self.pair(), os.urandom(32)
        self.seeds = shamir.create_shares(self.seed, self.threshold, self.holders)
        self.privates = shamir.create_shares(self.masking[0], self.threshold, self.holders)
        self.common = [self.agreed(self.sealing[0], other[1][1]) for other in self.near]
        self.texts = [
            symmetric_encryption.encrypt(key, share_keys_plaintext_concat(0, i, self.seeds[i], self.privates[i]))
            for i, key in enumerate(self.common)
        ]

    def mask(self, own: Any) -> Any:
        """Stage 2: the neighbours' shares are opened (they are as long as these), and the vector is masked."""
        for key, text in zip(self.common, self.texts, strict=True):
            symmetric_encryption.decrypt(key, text)
        total = parameters_addition(own, pseudo_rand_gen(self.seed, MOD_RANGE, self.shape))
        for other in self.near:
            common = self.agreed(self.masking[0], other[0][1])
            total = parameters_addition(total, pseudo_rand_gen(common, MOD_RANGE, self.shape))
        return parameters_mod(total, MOD_RANGE)

    def unmask(self, total: Any) -> Any:
        """The server takes out a survivor's self-mask. Like Flower, it combines all shares that have come."""
        rebuilt = shamir.combine_shares(self.seeds[: self.holders - self.dropped])
        return parameters_subtraction(total, pseudo_rand_gen(rebuilt, MOD_RANGE, self.shape))

    def recover(self, total: Any) -> Any:
        """The server takes out the masks of a dropped client, from its rebuilt private key."""
        rebuilt = shamir.combine_shares(self.privates[: self.holders - self.dropped])
        for other in self.near:
            total = parameters_addition(
                total, pseudo_rand_gen(self.agreed(rebuilt, other[0][1]), MOD_RANGE, self.shape)
            )
        return total

    def sent(self) -> tuple[int, int]:
        """Bytes up and down."""
        public, sealed = len(self.masking[1]) + len(self.sealing[1]), sum(map(len, self.texts))
        opened = (self.holders - self.dropped) * len(self.seeds[0]) + self.dropped * len(self.privates[0])
        return public + sealed + WORD * self.shape[0][0] + opened, self.holders * public + sealed


def flower(n: int, length: int, gone: int, terms: SumTerms) -> dict[str, float]:
    """SecAgg+: some clients, and the server's work for each of them times the number of clients of their kind."""
    clients, adding, unmasking, recovering = [], Stopwatch(), Stopwatch(), Stopwatch()
    total = [np.zeros(length, dtype=np.int64)]
    sampled = SAMPLED if n <= 10 else 1
    for number in range(sampled):
        watch, client = Stopwatch(), Flower(terms, length, round(terms.degree * gone / n))
        own = [(values(number, length) % np.uint64(MOD_RANGE)).astype(np.int64)]
        watch(client.share)
        masked = watch(partial(client.mask, own))
        clients.append(watch.seconds)
        total = adding(partial(parameters_addition, total, masked))
        unmasking(partial(client.unmask, total))
        if gone:
            recovering(partial(client.recover, total))
    server = ((n - gone) * (adding.seconds + unmasking.seconds) + gone * recovering.seconds) / sampled
    up, down = client.sent()
    return {"client": statistics.median(clients), "server": server, "up": up, "down": down, "sampled": sampled}


def gone_of(n: int, dropouts: float) -> int:
    """Dropouts, in whole clients."""
    return int(Fraction(dropouts).limit_denominator(100) * n)


def cells(most: float) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The cells that are run, and those that are left out: masks times words, of all clients, beyond `most`."""
    run: list[dict[str, Any]] = []
    left: list[dict[str, Any]] = []
    for n in CLIENTS:
        for length in LENGTHS:
            for dropouts in DROPOUTS if n > 3 else (0.0, 1 / 3):
                terms = terms_of(n, dropouts)
                cell = {"clients": n, "length": length, "dropouts": dropouts}
                cell |= {"degree": terms.degree, "threshold": terms.threshold}
                (run if n * (terms.degree + 1) * length <= most else left).append(cell)
    return run, left


def measured(cell: dict[str, Any]) -> dict[str, Any]:
    """The three systems in one cell."""
    n, length = cell["clients"], cell["length"]
    gone, terms = gone_of(n, cell["dropouts"]), terms_of(n, cell["dropouts"])
    return cell | {
        "load": os.getloadavg()[0],
        "plain": plain(n, length, gone),
        "ours": ours(n, length, gone, terms),
        "secaggplus": flower(n, length, gone, terms),
    }


def _seconds(value: float) -> str:
    return f"{value * 1e3:.2f}" if value < 0.1 else f"{value * 1e3:,.0f}"


def print_sums(found: dict[str, Any], console: Console) -> None:
    """The table of a page."""
    table = Table(title="Milliseconds of a core, and kilobytes up and down a client, for one sum")
    for name in (
        "clients",
        "integers",
        "dropouts",
        "neighbours",
        "ours: client",
        "server",
        "kB up",
        "kB down",
        "up / plain",
    ):
        table.add_column(name, justify="right")
    for name in ("SecAgg+: client", "server", "kB up", "kB down", "plain: server"):
        table.add_column(name, justify="right")
    for cell in found["cells"]:
        own, peer, bare = cell["ours"], cell["secaggplus"], cell["plain"]
        table.add_row(
            f"{cell['clients']:,}", f"{cell['length']:,}", f"{cell['dropouts']:.0%}", str(cell["degree"]),
            _seconds(own["client"]), _seconds(own["server"]), f"{own['up'] / 1e3:,.1f}", f"{own['down'] / 1e3:,.1f}",
            f"{own['up'] / bare['up']:.3f}", _seconds(peer["client"]), _seconds(peer["server"]),
            f"{peer['up'] / 1e3:,.1f}", f"{peer['down'] / 1e3:,.1f}", _seconds(bare["server"]),
        )  # fmt: skip
    console.print(table)
    for cell in found["left_out"]:
        console.print(
            f"left out: {cell['clients']:,} clients, {cell['length']:,} integers, {cell['dropouts']:.0%} dropouts"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=float, default=2.5e10, help="largest cell: clients x masks x integers")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    run, left = cells(options.most)
    found: dict[str, Any] = {"cells": [], "left_out": left, "cores": os.cpu_count()}
    console = Console(width=190)
    for cell in run:
        found["cells"].append(measured(cell))
        console.print(f"{cell['clients']} {cell['length']} {cell['dropouts']} done, load {os.getloadavg()[0]:.1f}")
        if options.save:
            options.save.write_text(json.dumps(found, indent=1) + "\n")
    print_sums(found, console)


if __name__ == "__main__":
    main()
