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


@pytest.fixture(scope="session")
def postgres():
    """The URL of a private server; without PostgreSQL the test skips, or fails where CI is set."""
    tools = script("postgres")
    folder = tools.binaries()
    if folder is None:
        reason = "needs PostgreSQL's initdb, postgres and pg_ctl (Debian: apt-get install postgresql)"
        pytest.fail(f"CI is set: {reason}") if os.environ.get("CI") else pytest.skip(reason)
    with tools.server(folder) as url:
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


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request):
    return request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url")
