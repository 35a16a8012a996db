"""A dashboard over a database and a folder, in this process, and ledgers to show."""

import shutil
from dataclasses import dataclass
from typing import Any

import anyio
import httpx
import pytest

import ledgerwood as lw
from ledgerwood.dashboard.app import create_app
from ledgerwood.dashboard.models import Models
from ledgerwood.dashboard.security import TokenGate, allowed_hosts
from ledgerwood.dashboard.shelf import Shelf
from ledgerwood.dashboard.sources import sources_at
from ledgerwood.dashboard.verifying import ImmediateVerifier

A = lw.Adjacency.ADD_REMOVE
TOKEN = "a token of at least sixteen characters"
ORIGIN = "http://127.0.0.1:8710"
SAMPLE = lw.PoissonSampled(lw.GaussianEvent(noise_multiplier=4.0, adjacency=A), sampling_rate=0.01)


def budget(epsilon=3.0, delta=1e-5):
    return lw.Budget(epsilon=epsilon, delta=delta, adjacency=A)


def pure(epsilon):
    return lw.PureEvent(epsilon=epsilon, adjacency=A)


@dataclass
class Board:
    """The dashboard, and one who asks it and keeps its cookies."""

    app: Any
    shelf: Shelf
    gate: TokenGate
    cookies: httpx.Cookies

    def ask(self, method, path, **kwargs):
        async def asked():
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(transport=transport, base_url=ORIGIN, cookies=self.cookies) as client:
                answer = await client.request(method, path, **kwargs)
                self.cookies = client.cookies
                return answer

        return anyio.run(asked)

    def get(self, path, **headers):
        return self.ask("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def post(self, path, form, **headers):
        return self.ask("POST", path, data=form, headers={"origin": ORIGIN, **headers})

    def login(self):
        answer = self.post("/login", {"token": TOKEN})
        assert answer.status_code == 303
        return self.csrf()

    def csrf(self):
        found = self.get("/").text.partition('name="csrf" value="')[2]
        return found.partition('"')[0]

    def book(self, title):
        """The id of the ledger with that title, or at that place."""
        from ledgerwood.dashboard import shown

        looks = [self.shelf.look(book, patience=30.0) for book in self.shelf.books()]
        return next(look.book.id for look in looks if title in (shown.title(look), look.book.key))


@pytest.fixture(scope="session")
def made_team(tmp_path_factory):
    """A folder with a database of two ledgers, and a file beside it; made once."""
    tmp_path = tmp_path_factory.mktemp("team")
    url = f"sqlite:///{tmp_path}/team.db"
    with lw.Ledger.open(
        url, dataset="adult", budget=budget(), unit=lw.PrivacyUnit.ROW, analysts={"ada": 0.5, "ben": 0.3}, analyst="ada"
    ) as ledger:
        ledger.spend(pure(0.4), purpose="median age", delta=0.0)
        grant = ledger.grant(lw.Repeated(SAMPLE, count=60), purpose="churn model", delta=1e-6)
        for step in range(55):
            grant.draw(SAMPLE, purpose=f"step {step}")
    lw.Ledger.open(url, dataset="census", budget=budget(), unit=lw.PrivacyUnit.USER).close()
    folder = tmp_path / "ledgers"
    folder.mkdir()
    with lw.Ledger.open(
        folder / "run.ledger.jsonl", dataset="run", budget=budget(), unit=lw.PrivacyUnit.ROW, filter=lw.ZCDPFilter()
    ) as ledger:
        ledger.spend(lw.GaussianEvent(noise_multiplier=9.0, adjacency=A), purpose="a histogram")
    return tmp_path


@pytest.fixture
def team(made_team, tmp_path):
    """A copy of it."""
    return shutil.copytree(made_team, tmp_path / "team")


@pytest.fixture
def made():
    """A function that makes a dashboard of places; each is closed in the end."""
    shelves = []

    def make(*places, locked=False, models=None, gate=None):
        shelf = Shelf(sources_at([str(place) for place in places]), ImmediateVerifier())
        gate = gate or TokenGate(TOKEN)
        hosts = allowed_hosts(["127.0.0.1", "localhost", "::1"], 8710)
        found = Models(models)
        found.all(patience=60.0)
        app = create_app(shelf, found, gate, hosts=hosts, port=8710, locked=locked)
        shelves.extend((shelf, found))
        return Board(app=app, shelf=shelf, gate=gate, cookies=httpx.Cookies())

    yield make
    for shelf in shelves:
        shelf.close()


@pytest.fixture
def board(team, made):
    return made(f"sqlite:///{team}/team.db", team / "ledgers")
