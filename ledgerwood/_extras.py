"""Names that need packages which the base install does not have: which can be had, and what the others need."""

import importlib
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType

_EXTRAS = {
    "hypothesis": "testing",
    "pytest": "testing",
    "sqlalchemy": "sql",
    "psycopg": "sql",
    "pyarrow": "arrow",
    "dask": "dask",
    "distributed": "dask",
    "matplotlib": "plot",
    "flwr": "federation",
    "ray": "federation",
    "msgpack": "federation",
    "starlette": "dashboard",
    "uvicorn": "dashboard",
    "jinja2": "dashboard",
    "markupsafe": "dashboard",
    "anyio": "dashboard",
    "xgboost": "xgboost",
    "onnx": "onnx",
    "opacus": "opacus",
    "torch": "opacus",
}
"""Packages that are not in the extra "trainers", and the extra that has them."""


def needed(name: str, missing: ModuleNotFoundError) -> ModuleNotFoundError:
    """The error that says which package a name needs, and which extra brings it."""
    extra = _EXTRAS.get(str(missing.name).partition(".")[0], "trainers")
    return ModuleNotFoundError(f"{name} needs {missing.name}: pip install 'ledgerwood[{extra}]'", name=missing.name)


def absent(package: str, missing: ModuleNotFoundError) -> Callable[[str], object]:
    """The `__getattr__` of a package whose names could not be imported: each name raises with the extra that it needs.

    Its modules can still be imported by their full names, if their requirements are installed.

    Args:
        package: the package's name.
        missing: the error of the failed import.

    Raises:
        ModuleNotFoundError: `missing` itself, where a module of this library is what could not be found.
    """
    if str(missing.name).partition(".")[0] == "ledgerwood":
        raise missing

    def get(name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        raise needed(f"{package}.{name}", missing) from missing

    return get


def late(package: str, name: str, homes: Mapping[str, str]) -> object:
    """A name that arrives when it is first used (PEP 562).

    Args:
        package: the package that is asked.
        name: the name.
        homes: the full name of the module that has each late name; one that ends with the name is that module itself.

    Raises:
        AttributeError: no such name.
        ImportError: a package is missing; the message says which extra has it.
    """
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    home = homes[name]
    try:
        module = importlib.import_module(home)
        # The home may be a package that could not import its names, and says so in its own name.
        return module if home.rpartition(".")[2] == name else getattr(module, name)
    except ModuleNotFoundError as missing:
        if str(missing.name).partition(".")[0] == "ledgerwood":
            raise
        raise needed(f"{package}.{name}", missing) from missing


def obtainable(get: Callable[[str], object], names: Iterable[str]) -> list[str]:
    """The names that are available with the installed packages, for `import *`."""
    found = []
    for name in names:
        try:
            get(name)
        except ImportError:
            continue
        found.append(name)
    return found


def own_names(names: Mapping[str, object]) -> list[str]:
    """The public names of a package's namespace that are no modules: its `__all__`, sorted."""
    return sorted(
        name for name, value in names.items() if not name.startswith("_") and not isinstance(value, ModuleType)
    )
