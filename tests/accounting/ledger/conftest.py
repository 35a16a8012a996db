"""A PostgreSQL server for the session, and an empty database of either kind for each test."""

import importlib.util
import itertools
import os
from pathlib import Path

import pytest
import sqlalchemy as sa

ROOT = Path(__file__).resolve().parents[3]
COUNT = itertools.count()


def script(name):
    """A module of benchmarks/, which is no part of the package."""
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Without PostgreSQL its tests are left out, and one test skips to say so; where CI is set they fail.
TOOLS = script("postgres")
STORES = ["sqlite", "postgresql"] if TOOLS.binaries() or os.environ.get("CI") else ["sqlite"]
collect_ignore = [] if "postgresql" in STORES else ["test_sql_postgres.py"]


@pytest.fixture(scope="session")
def postgres():
    """The URL of a private server."""
    folder = TOOLS.binaries()
    if folder is None:
        reason = "needs PostgreSQL's initdb, postgres and pg_ctl (Debian: apt-get install postgresql)"
        pytest.fail(f"CI is set: {reason}") if os.environ.get("CI") else pytest.skip(reason)
    with TOOLS.server(folder) as url:
        yield url


@pytest.fixture
def postgres_url(postgres):
    """A schema of its own: the tables of one test are not those of another."""
    schema = f"test_{next(COUNT)}"
    engine = sa.create_engine(postgres)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE SCHEMA {schema}")
    engine.dispose()
    return f"{postgres}?options=-csearch_path%3D{schema}"


@pytest.fixture
def sqlite_url(tmp_path):
    return f"sqlite:///{tmp_path}/team.db"


@pytest.fixture(params=STORES)
def url(request):
    return request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")


@pytest.fixture(params=["file", *STORES])
def place(request, tmp_path):
    """Anywhere a ledger can be kept."""
    if request.param == "file":
        return tmp_path / "run.ledger.jsonl"
    return request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
