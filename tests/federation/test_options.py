"""What each side of a federation fixes: one value, whose fields the public functions take by the same names."""

import dataclasses
import inspect

import pytest

import ledgerwood as lw
from ledgerwood.errors import FederationRefused, InvalidParameter
from ledgerwood.federation import OwnerSocket, client_app, federate, owner_of, server_app
from ledgerwood.federation.options import FederationOptions
from ledgerwood.federation.owners.policy import OwnerPolicy
from ledgerwood.trainers import SGBDTClassifier

from .conftest import BUDGET, SCHEMA

SIMULATED = {"server": "a simulation has one server", "registry": "a simulation's server makes its own owners"}
"""Options that `federate` does not take, and why."""


@pytest.mark.parametrize(
    ("function", "value", "renamed", "without"),
    [
        (client_app, OwnerPolicy, {}, {}),
        (owner_of, OwnerPolicy, {}, {}),
        (server_app, FederationOptions, {"server": "name"}, {}),
        (federate, FederationOptions, {}, SIMULATED),
    ],
)
def test_public_functions_take_every_option_with_its_default_and_explain_it(function, value, renamed, without):
    parameters = inspect.signature(function).parameters
    fields = {field.name: field for field in dataclasses.fields(value)}
    assert without.keys() <= fields.keys()
    for name, field in fields.items():
        shown = renamed.get(name, name)
        assert (shown in parameters) != (name in without), name
        if name not in without:
            assert parameters[shown].default == field.default, name
            assert f"        {shown}: " in inspect.getdoc(function).replace("\n    ", "\n        "), name


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"noise": "both"}, "'server', 'clients' or None"),
        ({"schema": "schema.json"}, "Schema or None"),
        ({"colluding": 1.0}, "share of the owners"),
        ({"allow_seed": 1}, "allow_seed=1"),
        ({"registry": (b"1" * 32,)}, "ClientRegistry or None"),
    ],
)
def test_what_an_owner_cannot_accept_is_refused_before_a_file_is_made(bad, message, tmp_path):
    given = {"dataset": "rows", "budget": BUDGET, "unit": lw.PrivacyUnit.ROW, **bad}
    with pytest.raises(InvalidParameter, match=message):
        owner_of(([], []), tmp_path / "ledger", key=tmp_path / "key", **given)
    with pytest.raises(InvalidParameter, match=message):
        client_app(([], []), tmp_path / "ledger", key=tmp_path / "key", **given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"noise": "both"}, "'server' or 'clients'"),
        ({"unit": "user"}, "a PrivacyUnit"),
        ({"rows_per_client": 0}, "rows_per_client=0"),
        ({"colluding": 0.5, "dropouts": 0.5}, "nobody would be left"),
        ({"server": "our hospital"}, "without a space"),
        ({"registry": (b"1" * 32,)}, "ClientRegistry or None"),
    ],
)
def test_what_a_server_cannot_fix_is_refused_where_it_is_said(bad, message):
    with pytest.raises(InvalidParameter, match=message):
        FederationOptions(**bad)
    with pytest.raises(InvalidParameter, match=message):
        server_app(SGBDTClassifier(schema=SCHEMA), **{"name" if name == "server" else name: bad[name] for name in bad})


@pytest.mark.parametrize("given", [{"noise": "clients"}, {"allow_seed": True}, {"budget": BUDGET}, {"dataset": "rows"}])
def test_what_the_process_behind_a_socket_decides_is_not_given_to_the_app(given):
    with pytest.raises(FederationRefused, match="given to the process behind OwnerSocket, by owner_of"):
        client_app(OwnerSocket(), **given)
