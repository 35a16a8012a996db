"""The one place that imports a peer library, late."""

import importlib
from types import ModuleType


def load(module: str, *, extra: str) -> ModuleType:
    """The module of a peer.

    Raises:
        ImportError: the peer is not installed; the message names the extra that brings it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        raise ImportError(
            f"this conversion needs {missing.name}: pip install 'ledgerwood[{extra}]'", name=missing.name
        ) from missing
