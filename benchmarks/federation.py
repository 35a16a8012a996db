"""Seconds and bytes of a round in Flower's simulation, beside plain sums and Flower's SecAgg+, and of a whole fit.

    python -m benchmarks.federation [--clients 3,10,20,100] [--words 1000,10000,100000,1000000] [--dropouts 0,0.1,0.3]
        [--fits 20,100] [--sent 5] [--save docs/benchmarks/federation.json] [--add]

One round sums one vector of 64-bit words of each client. Seconds are the median of some rounds after a first one, as
the server sees them; bytes are those of Flower's messages with their contents, for one client, up and down together.
Who drops out does so before the upload, and Flower says so at once: no time of waiting is in the figures. SecAgg+ sums
32-bit floats, with the same threshold of shares; dropouts are not measured for it. It runs in a process that is ended
after --peer-seconds: its figures are then of the rounds that it finished, if any. With --sent each preset of the
federated framework is trained over each number of clients, in one process, and the bytes that were sent stand beside
what its plan counts. With --add the figures in the file stay, but for those of the same cases.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
import warnings
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import get_args

import numpy as np

from ledgerwood.errors import PrivacyWarning
from ledgerwood.federation.codec import pack, unpack
from ledgerwood.federation.flower.client import ClientMain, app_that_answers
from ledgerwood.federation.flower.server import ServerMain, app_that
from ledgerwood.federation.flower.simulation import simulate
from ledgerwood.secure_aggregation import ClientSums, Roster, ServerSum, SessionKeys, SumContext, SumTerms, Upload
from ledgerwood.trainers.federated.presets import Preset

SESSION, PLAN = b"benchmark of sum", bytes(32)
PRESETS = get_args(Preset)


def identity(number):
    return number.to_bytes(32, "big")


@lru_cache
def roster_of(n):
    return Roster(session=SESSION, keys=tuple(SessionKeys.derived(identity(each), SESSION).public for each in range(n)))


def values_of(number, words):
    return np.random.default_rng(number).integers(0, 1 << 40, words, dtype=np.uint64)


class Summing:
    """A client that masks, or sends its vector as it is."""

    def __init__(self, number):
        self.number, self.sums = number, None

    def answer(self, request):
        kind, attempt, terms, words, live, survivors, shares = unpack(request)
        n, degree, threshold = terms
        if kind == "plain":
            return values_of(self.number, words).tobytes()
        if self.sums is None:
            self.sums = ClientSums(
                terms=SumTerms(n_clients=n, degree=degree, threshold=threshold), roster=roster_of(n),
                number=self.number, keys=SessionKeys.derived(identity(self.number), SESSION),
            )  # fmt: skip
        context = SumContext(session=SESSION, plan=PLAN, round=attempt, attempt=1)
        if kind == "upload":
            if self.number not in survivors:
                raise ConnectionAbortedError("drops out")
            masked = self.sums.masked(context, frozenset(live), values_of(self.number, words), os.urandom(32))
            return pack((masked.values, dict(masked.shares)))
        if kind == "recover":
            return pack(self.sums.pair_keys(context, frozenset(live), frozenset(survivors)))
        return pack(self.sums.opened(context, frozenset(live), frozenset(survivors), shares))


def summing(context):
    return Summing(context.node_config["partition-id"])


class CountingGrid:
    """Flower's grid, that counts the bytes of messages."""

    def __init__(self, grid):
        self.grid, self.bytes = grid, 0

    def __getattr__(self, name):
        return getattr(self.grid, name)

    def counted(self, messages):
        from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects

        messages = list(messages)
        self.bytes += sum(len(own.deflate()) for each in messages for own in get_all_nested_objects(each).values())
        return messages

    def push_messages(self, messages):
        return self.grid.push_messages(self.counted(messages))

    def pull_messages(self, names):
        return self.counted(self.grid.pull_messages(names))

    def send_and_receive(self, messages, *, timeout=None):
        return self.counted(self.grid.send_and_receive(self.counted(messages), timeout=timeout))


@dataclass
class Found:
    """What a server's app gives back."""

    figures: list


def our_rounds(n, words, shares_of_dropouts, repeats, keep):
    """A server's function: plain rounds, and masked ones for each share of dropouts; each figure is kept at once."""
    largest = max(shares_of_dropouts)
    terms = SumTerms.for_clients(n, dropouts=largest)
    told = (terms.n_clients, terms.degree, terms.threshold)
    live = list(range(n))

    def asked(transport, kind, number, who, survivors, shares=None):
        shared = shares or {}
        requests = {
            each: pack((kind, number, told, words, live, sorted(survivors), shared.get(each, {}))) for each in who
        }
        return transport.exchange(requests, what=kind)

    def masked(transport, number, survivors):
        context = SumContext(session=SESSION, plan=PLAN, round=number, attempt=1)
        total = ServerSum(terms=terms, roster=roster, context=context, live=frozenset(live), length=words)
        for each, reply in asked(transport, "upload", number, live, survivors).items():
            masked_values, shares = unpack(reply)
            total.add(each, Upload(values=masked_values, shares=shares))
        total.close()
        for each, reply in asked(transport, "recover", number, total.to_recover, survivors).items():
            total.add_pair_keys(each, unpack(reply))
        shares = {each: dict(total.shares_for(each)) for each in survivors}
        for each, reply in asked(transport, "unmask", number, survivors, survivors, shares).items():
            total.add_opened(each, unpack(reply))
        return total.total()

    roster = roster_of(n)

    def rounds(transport):
        grid = transport._grid = CountingGrid(transport._grid)
        figures, number = [], 0
        for kind, share in (("plain", 0.0), *(("masked", each) for each in shares_of_dropouts)):
            survivors = live[: n - int(share * n)]
            seconds, sizes = [], []
            for _ in range(repeats + 1):
                number += 1
                begin, before = time.perf_counter(), grid.bytes
                if kind == "plain":
                    replies = asked(transport, "plain", number, live, live)
                    total = sum(np.frombuffer(each, np.uint64) for each in replies.values())
                else:
                    total = masked(transport, number, survivors)
                seconds.append(time.perf_counter() - begin)
                sizes.append(grid.bytes - before)
            right = sum(values_of(each, words) for each in (live if kind == "plain" else survivors))
            figures.append({
                "what": kind, "clients": n, "words": words, "dropouts": share, "degree": terms.degree,
                "threshold": terms.threshold, "seconds": statistics.median(seconds[1:]),
                "bytes_a_client": statistics.median(sizes[1:]) / n, "right": bool(np.array_equal(total, right)),
                "rounds": repeats, "load": os.getloadavg()[0],
            })  # fmt: skip
            keep(figures[-1])
        return Found(figures)

    return rounds


def secagg_plus(n, words, repeats, told):
    """The same sums by Flower's SecAgg+ workflow, of floats of 32 bits; seconds and bytes of each go to a file."""
    import flwr.server
    from flwr.client import NumPyClient
    from flwr.client.mod import secaggplus_mod
    from flwr.clientapp import ClientApp
    from flwr.server import LegacyContext
    from flwr.serverapp import ServerApp

    terms = SumTerms.for_clients(n)

    class Client(NumPyClient):
        def __init__(self, number):
            self.number = number

        def fit(self, parameters, config):
            return [np.random.default_rng(self.number).random(words, dtype=np.float32)], 1, {}

    client = ClientApp(
        client_fn=lambda context: Client(context.node_config["partition-id"]).to_client(), mods=[secaggplus_mod]
    )
    server = ServerApp()

    def main(grid, context):
        counting = CountingGrid(grid)
        while len(list(grid.get_node_ids())) < n:
            time.sleep(0.1)
        strategy = flwr.server.strategy.FedAvg(
            fraction_fit=1.0, fraction_evaluate=0.0, min_fit_clients=n, min_available_clients=n,
            initial_parameters=flwr.common.ndarrays_to_parameters([np.zeros(words, np.float32)]),
        )  # fmt: skip
        legacy = LegacyContext(
            context=context, config=flwr.server.ServerConfig(num_rounds=repeats + 1), strategy=strategy
        )
        own = flwr.server.workflow.SecAggPlusWorkflow(
            num_shares=terms.degree + 1, reconstruction_threshold=terms.threshold, max_weight=1.0, timeout=600
        )

        def fit(grid, context):
            begin, before = time.perf_counter(), counting.bytes
            own(grid, context)
            with told.open("a") as file:
                file.write(json.dumps([time.perf_counter() - begin, counting.bytes - before]) + "\n")

        flwr.server.workflow.DefaultWorkflow(fit_workflow=fit)(counting, legacy)

    server.main()(main)
    simulate(server, client, n)


def peer(n, words, repeats, seconds):
    """Figures of SecAgg+ in a process of its own, which is ended after some seconds."""
    with tempfile.TemporaryDirectory(prefix="ledgerwood-peer-") as folder:
        told = Path(folder) / "rounds.jsonl"
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.federation", "peer", n, words, repeats, told]
        with subprocess.Popen([str(each) for each in command], start_new_session=True) as process:
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
                os.killpg(process.pid, signal.SIGKILL)  # ray's processes end with the one that started them
        if code:
            raise RuntimeError(f"SecAgg+ with {n} clients and {words} words ended with code {code}")
        marks = [json.loads(line) for line in told.read_text().splitlines()] if told.exists() else []
    found = {
        "what": "SecAgg+", "clients": n, "words": words, "dropouts": 0.0, "rounds": max(len(marks) - 1, 0),
        "finished": code == 0, "load": os.getloadavg()[0],
    }  # fmt: skip
    if len(marks) > 1:
        found["seconds"] = statistics.median(each for each, _ in marks[1:])
        found["bytes_a_client"] = statistics.median(each for _, each in marks[1:]) / n
    else:
        found["seconds"] = found["bytes_a_client"] = None
        found["more_than_seconds"] = seconds
    return found


def fit_of(n, trees=200):
    """A whole fit of S-GBDT over n clients."""
    import ledgerwood as lw
    from ledgerwood.federation import federate
    from ledgerwood.trainers import SGBDTClassifier

    rng = np.random.default_rng(0)
    X = rng.random((20_000, 10))
    y = np.where(X[:, 0] + 0.3 * rng.random(len(X)) > 0.6, "yes", "no")
    schema = lw.Schema(
        features=tuple(lw.Numeric(f"f{each}", 0, 1) for each in range(10)), target=lw.Categorical("two", ("no", "yes"))
    )
    model = SGBDTClassifier(epsilon=1.0, delta=1e-6, schema=schema, n_estimators=trees, max_depth=4, random_state=1)
    clients = [(X[each], y[each]) for each in np.array_split(np.arange(len(X)), n)]
    begin = time.perf_counter()
    model = federate(model, clients)
    took = time.perf_counter() - begin
    record = model.federation_
    central = type(model)(**model.get_params()).fit(X, y)
    return {
        "clients": n, "trees": trees, "seconds": took, "seconds_in_rounds": record.seconds,
        "rounds": len(record.rounds), "bytes_up_a_client": record.bytes_up / n,
        "bytes_down_a_client": record.bytes_down / n,
        "as_in_one_table": bool(np.array_equal(model.predict_proba(X), central.predict_proba(X))),
        "load": os.getloadavg()[0],
    }  # fmt: skip


def sent_by(preset, n, trees=20, rows=500):
    """Rounds and bytes of a fit on some rows of Adult, as sent, beside the plan's count, which knows no encryption."""
    from benchmarks import data_sets
    from ledgerwood.federation import federate
    from ledgerwood.trainers import FederatedGBDTClassifier

    data = data_sets.load("adult")
    X, y = data.X[:rows], data.y[:rows]
    model = FederatedGBDTClassifier(
        epsilon=1.0, delta=1e-6, schema=data.schema, preset=preset, n_estimators=trees, random_state=1
    )
    clients = [(X[each], y[each]) for each in np.array_split(np.arange(rows), n)]
    record = federate(model, clients, engine="process").federation_
    planned = model.plan_.communication(data.schema.cells(model.plan_.max_bins), n_clients=n)
    return {
        "preset": preset, "clients": n, "trees": trees, "rounds": len(record.rounds), "planned_rounds": planned.rounds,
        "words_up": sum(each.words for each in record.rounds), "planned_words_up": planned.words_up,
        "bytes_up_a_client": record.bytes_up / n, "bytes_down_a_client": record.bytes_down / n,
        "planned_bytes_up": planned.words_up * 8, "planned_bytes_down": planned.words_down * 8,
        "setup_bytes_a_client": record.setup_bytes / n,
    }  # fmt: skip


KINDS = ("plain", "masked", "SecAgg+")


def print_rounds(found):
    """A line for each case, with bytes beside those of plain sums."""
    print(
        f"{'clients':>8} {'words':>8} {'dropouts':>9} {'what':>8} {'seconds':>8} {'kB a client':>12} {'x plain':>8} "
        f"{'load':>5}"
    )
    plain = {
        (each["clients"], each["words"]): each["bytes_a_client"] for each in found["rounds"] if each["what"] == "plain"
    }
    for each in found["rounds"]:
        case = f"{each['clients']:8d} {each['words']:8d} {each['dropouts']:9.0%} {each['what']:>8}"
        if each["seconds"] is None:
            print(f"{case} no round within {each['more_than_seconds']:g} s {each['load']:19.1f}")
            continue
        sent = each["bytes_a_client"]
        told = f" after {each['rounds']} rounds: no more within the limit" if not each.get("finished", True) else ""
        print(
            f"{case} {each['seconds']:8.2f} {sent / 1e3:12.1f} {sent / plain[each['clients'], each['words']]:8.3f} "
            f"{each['load']:5.1f}{told}"
        )
    if found["left_out"]:
        cases = "; ".join(f"{n} clients with {words} words" for n, words in found["left_out"])
        print(f"not measured (too many words for this machine): {cases}")


def drawn_rounds(found):
    """Seconds and bytes of a round over clients, without dropouts, one line a length of vectors."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    numbers_of_clients = sorted({each["clients"] for each in found["rounds"]})
    colours = {words: f"C{place}" for place, words in enumerate(sorted({each["words"] for each in found["rounds"]}))}
    for kind, style in zip(KINDS, ("s:", "o-", "^--"), strict=True):
        for words, colour in colours.items():
            own = [
                each
                for each in found["rounds"]
                if (each["what"], each["words"], each["dropouts"]) == (kind, words, 0.0) and each["seconds"] is not None
            ]
            for axis, values in (
                (axes[0], [each["seconds"] for each in own]),
                (axes[1], [each["bytes_a_client"] / 1e3 for each in own]),
            ):
                axis.plot([each["clients"] for each in own], values, style, color=colour, markersize=5)
    for axis, title in zip(axes, ("seconds a round", "kB a client and round"), strict=True):
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks(numbers_of_clients, [f"{n:,}" for n in numbers_of_clients])
        axis.minorticks_off()
        axis.set_xlabel("clients")
        axis.set_title(title)
    for kind, style in zip(KINDS, ("s:", "o-", "^--"), strict=True):
        axes[0].plot([], [], style, color="gray", label=kind)
    for words, colour in colours.items():
        axes[0].plot([], [], color=colour, label=f"{words:,} words")
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    return figure


def print_fits(found):
    """A line for each fit."""
    for each in found["fits"]:
        same = "equals" if each["as_in_one_table"] else "DIFFERS from"
        print(
            f"{each['clients']:5d} clients, {each['trees']} trees, {each['rounds']} rounds: {each['seconds']:.0f} s, "
            f"{each['seconds_in_rounds']:.0f} s of them in rounds; each client sent "
            f"{each['bytes_up_a_client'] / 1e3:.0f} kB and received {each['bytes_down_a_client'] / 1e3:.0f} kB; the "
            f"model {same} the one of one table; load {each['load']:.1f}"
        )


def print_sent(found):
    """A line for each preset: rounds and kilobytes, as sent and as the plan counts them."""
    print(
        f"{'preset':>18} {'rounds':>7} {'planned':>8} {'words up':>9} {'planned':>8} {'kB up':>7} {'planned':>8} "
        f"{'kB down':>8} {'planned':>8} {'kB before':>10}"
    )
    for each in found.get("sent", []):
        print(
            f"{each['preset']:>18} {each['rounds']:7d} {each['planned_rounds']:8d} {each['words_up']:9d} "
            f"{each['planned_words_up']:8d} {each['bytes_up_a_client'] / 1e3:7.1f} "
            f"{each['planned_bytes_up'] / 1e3:8.1f} {each['bytes_down_a_client'] / 1e3:8.1f} "
            f"{each['planned_bytes_down'] / 1e3:8.1f} {each['setup_bytes_a_client'] / 1e3:10.1f}"
        )


def numbers(kind):
    return lambda text: [kind(float(each)) for each in text.split(",") if each]


def added(found, before):
    """Figures of an earlier run beside those of this one, which replaces the same cases."""

    def kept(name, which):
        own = {which(each) for each in found[name]}
        return sorted([*(each for each in before[name] if which(each) not in own), *found[name]], key=which)

    rounds = kept("rounds", lambda each: (each["clients"], each["words"], KINDS.index(each["what"]), each["dropouts"]))
    fits = kept("fits", lambda each: (each["clients"], each["trees"]))
    measured = {(each["clients"], each["words"]) for each in rounds}
    left_out = {tuple(each) for each in (*found["left_out"], *before["left_out"])} - measured
    sent = found.get("sent") or before.get("sent", [])
    return {**before, **found, "rounds": rounds, "fits": fits, "sent": sent, "left_out": sorted(left_out)}


def main():
    if sys.argv[1:2] == ["peer"]:
        n, words, repeats = map(int, sys.argv[2:5])
        secagg_plus(n, words, repeats, Path(sys.argv[5]))
        return
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=numbers(int), default=[3, 10, 20, 100])
    parser.add_argument("--words", type=numbers(int), default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--dropouts", type=numbers(float), default=[0.0, 0.1, 0.3])
    parser.add_argument("--fits", type=numbers(int), default=[20, 100])
    parser.add_argument("--sent", type=int, default=0, help="clients of the fits whose bytes are counted; 0: none")
    parser.add_argument("--trees", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most-words", type=float, default=2e7, help="clients times words of a case that is measured")
    parser.add_argument("--peer-seconds", type=float, default=900.0, help="for the rounds of SecAgg+; 0: none of it")
    parser.add_argument("--save", type=Path, default=None)
    parser.add_argument("--add", action="store_true", help="to the figures that are in the file already")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", PrivacyWarning)
    found = {"rounds": [], "fits": [], "sent": [], "cores": os.cpu_count(), "left_out": []}

    def keep(figure, kind):
        found[kind].append(figure)
        print(figure, flush=True)
        if arguments.save is not None:
            text = found
            if arguments.add and arguments.save.exists():
                text = added(found, json.loads(arguments.save.read_text()))
            arguments.save.write_text(json.dumps(text, indent=1) + "\n")

    for n in arguments.clients:
        for words in arguments.words:
            if n * words > arguments.most_words:
                found["left_out"].append([n, words])
                continue
            server = app_that(
                ServerMain(
                    train=our_rounds(n, words, arguments.dropouts, arguments.repeats, partial(keep, kind="rounds")),
                    clients=n, model=None, wait=600.0, timeout=600.0,
                )
            )  # fmt: skip
            simulate(server, app_that_answers(ClientMain(name=uuid.uuid4().hex, owner=summing)), n)
            if arguments.peer_seconds > 0:
                keep(peer(n, words, arguments.repeats, arguments.peer_seconds), "rounds")
    for n in arguments.fits:
        keep(fit_of(n, arguments.trees), "fits")
    for preset in PRESETS if arguments.sent else ():
        keep(sent_by(preset, arguments.sent), "sent")


if __name__ == "__main__":
    from benchmarks import federation  # noqa: PLW0406

    federation.main()  # what an app has from there, ray's processes import; all else is pickled into each message
