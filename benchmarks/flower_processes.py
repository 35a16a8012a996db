"""A Flower deployment of real processes on this machine: a SuperLink and SuperNodes with TLS and node authentication.

Each node has three processes: the owner's own, which holds rows, key and ledger (`serve_owner`); a SuperNode; and one
that runs the client app. All can be killed, and started again.

Some things are not as Flower 1.41 has them, since five nodes share this machine: a SuperNode asks for messages every
0.5 s (Flower: 3 s), and says every 10 s that it is there (Flower: 30 s); and the process of a client app is forked from
one that has imported Flower (Flower starts a new interpreter for each message, which takes some 3 s of a core).
`as_flower_has_it=True` leaves all of it as it is.
"""

import datetime as dt
import io
import ipaddress
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from benchmarks.ports import held_port

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.5",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "PYTHONUNBUFFERED": "1",
}
APP = """
[project]
name = "{name}"
version = "1.0.0"
description = "{name}"
license = "Apache-2.0"
dependencies = []

[tool.flwr.app]
publisher = "ledgerwood"

[tool.flwr.app.components]
serverapp = "{package}{server}"
clientapp = "{package}{client}"

[tool.flwr.app.config]
{config}
"""


def make_certificates(folder):
    """A certificate authority, and a certificate of the SuperLink for this machine's own address."""
    now = dt.datetime.now(dt.UTC)

    def built(subject, issuer, key, number):
        names = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]) for name in (issuer, subject))
        return (
            x509.CertificateBuilder(*names)
            .public_key(key.public_key())
            .serial_number(number)
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=2))
        )

    authority, own = (ec.generate_private_key(ec.SECP384R1()) for _ in range(2))
    root = (
        built("authority of a test", "authority of a test", authority, 1)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority.public_key()), critical=False)
        .add_extension(x509.KeyUsage(True, False, False, False, False, True, True, False, False), critical=True)
        .sign(authority, hashes.SHA384())
    )
    local = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    link = (
        built("localhost", "authority of a test", own, 2)
        .add_extension(x509.SubjectAlternativeName(local), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)
        .sign(authority, hashes.SHA384())
    )
    for name, certificate in (("authority.crt", root), ("link.crt", link)):
        (folder / name).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    write_key(folder / "link.key", own, serialization.PrivateFormat.PKCS8)


def write_key(path, key, form):
    path.touch(mode=0o600)
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))


def flwr(*words):
    """Flower's own command line, in this process: its start takes seconds."""
    from flwr.cli.app import app
    from typer.testing import CliRunner

    real, sys.__stdout__ = sys.__stdout__, io.StringIO()  # where --format json is written to
    try:
        result = CliRunner().invoke(app, list(words))
        told = result.output + sys.__stdout__.getvalue()
    finally:
        sys.__stdout__ = real
    if result.exit_code != 0:
        raise RuntimeError(f"flwr {' '.join(words)}: {told}{result.exception!r}")
    return told


class Deployment:
    """A SuperLink and nodes.

    Args:
        folder: for certificates, keys, logs and sockets; empty.
        owners: for each node the command of its owner's own process: its arguments after `python`, to which the path
            of the socket is added.
        as_flower_has_it: whether nodes are Flower's own, unchanged.
    """

    def __init__(self, folder, owners, *, as_flower_has_it=False):
        self.folder, self.commands, self.plain = Path(folder), list(owners), as_flower_has_it
        self.held = [held_port() for _ in range(len(self.commands) + 1)]
        self.port, *self.ports = (own.getsockname()[1] for own in self.held)
        self.processes = {}
        self.before = {}

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for name in list(self.processes):
            self.kill(name)
        for own in self.held:
            own.close()
        for name, value in self.before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value

    def start(self):
        make_certificates(self.folder)
        for home in ("cli", "link"):
            (self.folder / home).mkdir()
        own = {**ENVIRONMENT, "FLWR_HOME": str(self.folder / "cli")}
        self.before = {name: os.environ.get(name) for name in own}
        os.environ.update(own)
        authority = str(self.folder / "authority.crt")
        (self.folder / "cli" / "config.toml").write_text(
            f'[superlink]\ndefault = "here"\n[superlink.here]\naddress = "127.0.0.1:{self.port}"\n'
            f'root-certificates = "{authority}"\n'
        )
        self.run(
            "link", "-m", "benchmarks.flower_processes", "link",
            "--ssl-ca-certfile", authority, "--ssl-certfile", str(self.folder / "link.crt"),
            "--ssl-keyfile", str(self.folder / "link.key"), "--host", "127.0.0.1", "--port", str(self.port),
            "--enable-supernode-auth", "--disable-runtime-dependency-installation",
        )  # fmt: skip
        self.wait_for_port(self.port)
        for number in range(len(self.commands)):
            key = ec.generate_private_key(ec.SECP384R1())
            write_key(self.folder / f"node-{number}.key", key, serialization.PrivateFormat.OpenSSH)
            public = self.folder / f"node-{number}.pub"
            public.write_bytes(
                key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
            )
            flwr("supernode", "register", str(public), "here")
            for part in ("owner", "node", "app"):
                self.start_part(part, number)

    def start_part(self, part, number):
        """Start one process of a node, which does not run: "owner", "node" or "app"."""
        name = f"{part}-{number}"
        if part == "owner":
            self.run(name, *self.commands[number], self.socket(number))
        elif part == "node":
            isolation = "subprocess" if self.plain else "process"
            self.run(
                name, "-m", "benchmarks.flower_processes", "plain-node" if self.plain else "node",
                "--root-certificates", str(self.folder / "authority.crt"), "--superlink", f"127.0.0.1:{self.port}",
                "--auth-supernode-private-key", str(self.folder / f"node-{number}.key"), "--host", "127.0.0.1",
                "--port", str(self.ports[number]), "--isolation", isolation,
                "--node-config", f'partition-id={number} owner="{self.socket(number)}"',
            )  # fmt: skip
        elif not self.plain:
            self.run(name, "-m", "benchmarks.flower_processes", "app", f"127.0.0.1:{self.ports[number]}")

    def keep_up(self, part, number, seconds=120.0):
        """Start a process of a node; a SuperNode again and again until it is admitted, as a service manager does.

        A SuperNode that was killed is refused by the SuperLink until its last heartbeat is old.
        """
        name = f"{part}-{number}"
        told = (self.folder / f"{name}.log").stat().st_size
        self.start_part(part, number)
        end = time.monotonic() + seconds
        while part == "node" and time.monotonic() < end:
            time.sleep(0.5)
            if b"SuperNode ID" in (self.folder / f"{name}.log").read_bytes()[told:]:
                return
            if self.processes[name].poll() is not None:
                self.start_part(part, number)

    def socket(self, number):
        return str(self.folder / f"owner-{number}.socket")

    def run(self, name, *words):
        home = self.folder / name
        home.mkdir(exist_ok=True)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        environment = {**os.environ, **ENVIRONMENT, "FLWR_HOME": str(home), "PYTHONPATH": str(ROOT), "PATH": path}
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, *words], env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def kill(self, name):
        """Kill a process and all that it has started, at once."""
        process = self.processes.pop(name, None)
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def wait_for_port(self, port, seconds=120):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), 0.5).close()
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise TimeoutError(f"nobody listens on port {port} after {seconds} s: {self.log('link')}")

    def log(self, name, characters=3_000):
        return (self.folder / f"{name}.log").read_text(errors="replace")[-characters:]

    def make_app(self, package, code, parts=(":server", ":client"), **config):
        """An app folder whose package is some code; `parts` are the places of both apps in it."""
        folder = self.folder / f"app-{package}"
        (folder / package).mkdir(parents=True)
        values = "\n".join(f"{name} = {json.dumps(value)}" for name, value in config.items())
        name = package.replace("_", "-")
        text = APP.format(name=name, package=package, server=parts[0], client=parts[1], config=values)
        (folder / "pyproject.toml").write_text(text)
        (folder / package / "__init__.py").write_text(code)
        return folder

    def start_app(self, folder):
        """The id of a new run of an app."""
        return re.search(r"started run (\d+)", flwr("run", str(folder), "here")).group(1)

    def status(self, run):
        """The state of a run, such as "running" or "finished:completed", and what Flower says of it."""
        told = flwr("ls", "here", "--format", "json")
        found = json.loads(told[told.index("{") : told.rindex("}") + 1]).get("runs", [])
        return next(((each["status"], each["status-details"]) for each in found if each["run-id"] == run), ("?", told))

    def finished(self, run, seconds):
        """Wait for a run's end.

        Raises:
            TimeoutError: it has not ended in time.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            status, details = self.status(run)
            if status.startswith("finished"):
                return status, details
            time.sleep(0.5)
        raise TimeoutError(f"run {run} is {status} after {seconds} s: {self.log('link')}")


def patient_node(words):
    """A SuperNode that asks for messages every 0.5 s."""
    import types

    from flwr.common import constant as times
    from flwr.supercore import constant

    constant.PULL_INITIAL_BACKOFF = 0.1  # s: it often asks before the content of a message has arrived
    times.HEARTBEAT_DEFAULT_INTERVAL = 10  # s: two of them have to pass before a killed node is admitted again

    from flwr.supernode import start_client_internal as loop
    from flwr.supernode.cli.flower_supernode import flower_supernode

    loop.time = types.SimpleNamespace(sleep=lambda seconds: time.sleep(min(seconds, 0.5)))
    sys.argv = ["flower-supernode", *words]
    flower_supernode()


def warm_apps(words):
    """Take the tasks of a SuperNode, and do each in a process that is forked from this one."""
    from flwr.supercore import constant

    constant.PULL_INITIAL_BACKOFF = 0.1
    from flwr.proto.runtime_pb2 import AcquireTaskRequest
    from flwr.supercore.constant import TaskType
    from flwr.supercore.interceptors import RuntimeVersionHttpInterceptor
    from flwr.supercore.retry import make_simple_http_retry_invoker
    from flwr.supercore.runtime import RuntimeHttpClient
    from flwr.supernode.runtime.run_clientapp import run_clientapp

    import ledgerwood.federation.flower.apps  # noqa: F401

    client = RuntimeHttpClient.from_server_address(
        server_address=words[0],
        insecure=True,
        root_certificates=None,
        interceptors=[RuntimeVersionHttpInterceptor(component_name="SuperExec")],
        retry_invoker=make_simple_http_retry_invoker(),
    )
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        try:
            task = client.AcquireTask(AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP]))
        except Exception as error:  # noqa: BLE001  # the SuperNode is down for a while
            print(type(error).__name__, flush=True)
            time.sleep(0.5)
            continue
        if not (task.HasField("task") and task.token):
            time.sleep(0.25)
        elif os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                run_clientapp(runtime_api_address=words[0], token=task.token, insecure=True)
            except BaseException as error:  # noqa: BLE001  # Flower ends its processes by SystemExit
                print(repr(error), flush=True)
            finally:
                os._exit(0)


def main():
    kind, *words = sys.argv[1:]
    if kind == "link":
        from flwr.superlink.cli.flower_superlink import flower_superlink

        sys.argv = ["flower-superlink", *words]
        flower_superlink()
    elif kind == "plain-node":
        from flwr.supernode.cli.flower_supernode import flower_supernode

        sys.argv = ["flower-supernode", *words]
        flower_supernode()
    elif kind == "node":
        patient_node(words)
    else:
        warm_apps(words)


if __name__ == "__main__":
    main()
