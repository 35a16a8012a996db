"""The inputs of an audit: a function in a file, a pair of data sets, a claim."""

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ledgerwood.accounting import Adjacency, Budget, Event, GaussianEvent, LaplaceEvent
from ledgerwood.accounting.events.serial import from_json, to_json
from ledgerwood.accounting.ledger.entries import canonical
from ledgerwood.errors import InvalidParameter, LedgerError, PrivacyError
from ledgerwood.verification.auditing import Claim

Sampler = Callable[[Any, int, np.random.Generator], NDArray[Any]]


def named(spec: str) -> tuple[str, str]:
    """The two halves of MODULE:NAME; MODULE is a file that ends in .py, or a module's dotted name.

    Raises:
        InvalidParameter: not of this form.
    """
    module, colon, name = spec.rpartition(":")
    if not colon or not module or not name.isidentifier():
        raise InvalidParameter(
            f"{spec!r} must be FILE.py:NAME or MODULE:NAME, the name one of the file's own (unit: name)"
        )
    return module, name


def load_named(spec: str) -> Any:
    """Loads MODULE:NAME. The module is run, with its own folder (or the current one) to import from.

    Raises:
        InvalidParameter: no such file, module or name, or the module fails when it is run.
    """
    module, name = named(spec)
    try:
        loaded = _from_file(Path(module)) if module.endswith(".py") else _from_name(module)
    except PrivacyError:
        raise
    except (Exception, SystemExit) as error:
        raise InvalidParameter(
            f"{module} cannot be imported: {type(error).__name__}: {error} (unit: module)"
        ) from error
    try:
        return vars(loaded)[name]
    except KeyError:
        raise InvalidParameter(f"{module} has no {name!r} (unit: name)") from None


def load_sampler(spec: str) -> Sampler:
    """The function sampler(dataset, n, rng) that MODULE:NAME names.

    Raises:
        InvalidParameter: as `load_named`, or it cannot be called.
    """
    sampler = load_named(spec)
    if not callable(sampler):
        raise InvalidParameter(f"{spec} must be a function sampler(dataset, n, rng), not {sampler!r} (unit: function)")
    found: Sampler = sampler
    return found


def load_pair(text: str | None) -> tuple[Any, Any] | None:
    """A pair of data sets: JSON, a file of JSON, or MODULE:NAME; two lists, each of numbers or of rows.

    Raises:
        InvalidParameter: not two of them, or rows of different lengths.
    """
    if text is None:
        return None
    if text.lstrip().startswith("["):
        return _two(_json(text, "pair"), from_json=True)
    if text.endswith(".json"):
        return _two(_json(_text(Path(text)), text), from_json=True)
    return _two(load_named(text), from_json=False)


def load_claim(
    *,
    epsilon: float | None,
    delta: float | None,
    gaussian: float | None,
    laplace: float | None,
    event: Path | None,
    adjacency: Adjacency,
) -> Claim:
    """The one claim that was given: (epsilon, delta), one Gaussian or Laplace release, or an event's record in a file.

    Raises:
        InvalidParameter: a value outside its bound, or no event's record.
    """
    if epsilon is not None:
        return Budget(epsilon=epsilon, delta=delta or 0.0, adjacency=adjacency)
    if gaussian is not None:
        return GaussianEvent(noise_multiplier=gaussian, adjacency=adjacency)
    if laplace is not None:
        return LaplaceEvent(noise_multiplier=laplace, adjacency=adjacency)
    if event is None:
        raise InvalidParameter("a claim is needed (unit: claim)")
    try:
        return from_json(_json(_text(event), str(event)))
    except LedgerError as error:
        raise InvalidParameter(f"{event} holds no event's record: {error} (unit: record)") from error


def claim_words(claim: Claim | None) -> str:
    """The claim as a reader can check it: its numbers, or its record."""
    if isinstance(claim, Budget):
        return f"epsilon {claim.epsilon!r}, delta {claim.delta!r}, {claim.adjacency.value}"
    if isinstance(claim, Event):
        try:
            return canonical(to_json(claim))
        except LedgerError:
            return repr(claim)
    return "none" if claim is None else "a function from epsilon to delta"


def _two(value: Any, *, from_json: bool) -> tuple[Any, Any]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise InvalidParameter(f"pair={value!r} must be two data sets (unit: data sets)")
    if not from_json:
        return value[0], value[1]
    first, second = (_dataset(rows) for rows in value)
    return first, second


def _dataset(rows: object) -> NDArray[Any]:
    if not isinstance(rows, list):
        raise InvalidParameter(f"{rows!r} must be a list of numbers or of rows (unit: data set)")
    try:
        found = np.array(rows)
    except ValueError as error:
        raise InvalidParameter(f"{rows!r} must have rows of one length (unit: numbers)") from error
    if found.dtype == object:
        raise InvalidParameter(f"{rows!r} must hold numbers, truths or texts of one kind (unit: data set)")
    return found.astype(np.float64) if found.dtype.kind in "iu" else found


def _json(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidParameter(f"{place} is not JSON: {error} (unit: text)") from error


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidParameter(f"{path} is not UTF-8: {error} (unit: text)") from error


def _from_file(path: Path) -> Any:
    if not path.is_file():
        raise InvalidParameter(f"there is no file {str(path)!r} (unit: path)")
    _import_from(path.parent)
    name = f"ledgerwood_audited_{path.stem}"  # dataclasses and pickle ask sys.modules; no other module is hidden
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidParameter(f"{str(path)!r} is no Python file (unit: path)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _from_name(name: str) -> Any:
    _import_from(Path())
    return importlib.import_module(name)


def _import_from(folder: Path) -> None:
    place = str(folder.resolve())
    if place not in sys.path:
        sys.path.insert(0, place)
