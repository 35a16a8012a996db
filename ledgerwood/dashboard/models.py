"""Saved models in a folder: their statements, plans and importances, and which ledger each was trained from.

Everything here was released already: a model holds released values only.
"""

import hashlib
import math
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from ledgerwood.accounting import risk
from ledgerwood.errors import InvalidParameter, PrivacyError
from ledgerwood.pages.values import Fact, plain

_DESCRIPTION = "model.json"
_MOST = 500
"""Models of a folder that are shown."""
_LARGEST = 1 << 28
"""Bytes of a description that is read."""
_IMPORTANCES = 30
_SHOWN_TREES, _SHOWN_LEVELS = 3, 3
_LONGEST_TEXT = 12_000
_PATIENCE = 0.8
"""Seconds that a page waits for models to be read; the others are shown as soon as they were."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """One saved model.

    Args:
        id: opaque.
        name: the folder's own name.
        failure: why it cannot be read; then all else is empty.
        estimator: the class.
        statement: the privacy statement, by name.
        assumptions: what must hold outside the library.
        epsilon, delta: of the statement, in words.
        protects: False where epsilon is infinite.
        seeded: whether the noise was reproducible; then it protects no one.
        plan: the plan's values by name.
        meaning: the guarantee in two sentences.
        importances: the largest ones by the features' names, falling, each with what is expected from noise alone.
        left_out: how many features are not among them.
        head: hash of the ledger's last entry after the fit.
        text: the first trees in words, or the only one's rules.
        pending: whether it is being read; then all else is empty.
    """

    id: str
    name: str
    failure: str | None = None
    estimator: str = ""
    statement: tuple[tuple[str, str], ...] = ()
    assumptions: tuple[str, ...] = ()
    epsilon: str = ""
    delta: str = ""
    protects: bool = True
    seeded: bool = False
    plan: tuple[tuple[str, str], ...] = ()
    importances: tuple[tuple[str, float, str], ...] = ()
    left_out: int = 0
    head: str = ""
    meaning: str = ""
    text: str = ""
    pending: bool = False


@final
class Models:
    """The models in a folder: each a folder that `save` or `ledgerwood train` wrote, or the folder itself.

    Args:
        folder: the folder; None for none.

    Raises:
        InvalidParameter: there is no such folder.
    """

    __slots__ = ("_facts", "_folder", "_lock", "_reader")

    def __init__(self, folder: Path | None) -> None:
        if folder is not None and not folder.is_dir():
            raise InvalidParameter(f"models={str(folder)!r} must be a folder with saved models (unit: path)")
        self._folder = None if folder is None else folder.resolve()
        self._facts: dict[str, tuple[str, Future[ModelFacts]]] = {}
        self._lock = threading.Lock()
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="models")

    @property
    def wanted(self) -> bool:
        """Whether a folder was named."""
        return self._folder is not None

    def all(self, *, patience: float = _PATIENCE) -> list[ModelFacts]:
        """All models, by name; each is read once, and again when its description changes.

        Args:
            patience: seconds to wait for those that are being read.
        """
        with self._lock:
            found = {}
            for folder in self._folders():
                stamp, known = _stamp(folder), self._facts.get(str(folder))
                same = known is not None and known[0] == stamp
                found[str(folder)] = known if known and same else (stamp, self._reader.submit(_read, folder))
            self._facts = found
        wait([task for _, task in found.values()], patience)
        return [
            task.result() if task.done() else ModelFacts(id=_id(folder), name=Path(folder).name, pending=True)
            for folder, (_, task) in found.items()
        ]

    def close(self) -> None:
        """Read no more."""
        self._reader.shutdown(wait=True, cancel_futures=True)

    def find(self, model_id: str) -> ModelFacts | None:
        """The model of this id, if there is one now."""
        return next((facts for facts in self.all() if facts.id == model_id), None)

    def _folders(self) -> list[Path]:
        if self._folder is None:
            return []
        if (self._folder / _DESCRIPTION).is_file():
            return [self._folder]
        try:
            with os.scandir(self._folder) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []
        return [self._folder / name for name in sorted(names) if (self._folder / name / _DESCRIPTION).is_file()][:_MOST]


def _stamp(folder: Path) -> str:
    try:
        stat = (folder / _DESCRIPTION).stat()
    except OSError:
        return "absent"
    return f"{stat.st_mtime_ns}-{stat.st_size}-{stat.st_ino}"


def _id(folder: str) -> str:
    return hashlib.sha256(f"model\0{folder}".encode("utf-8", "surrogateescape")).hexdigest()[:20]


def _read(folder: Path) -> ModelFacts:
    model_id = _id(str(folder))
    try:
        if (folder / _DESCRIPTION).stat().st_size > _LARGEST:
            raise InvalidParameter(f"its description has more than {_LARGEST:,} bytes, the most that is read")
        from ledgerwood.report.models import load_model, plan_values

        model = load_model(folder)
        statement = model.privacy_
        importances, left_out, text = _of_trees(model)
        meaning = risk.in_words(statement.epsilon, statement.delta, adjacency=statement.adjacency, unit=statement.unit)
        return ModelFacts(
            id=model_id,
            name=folder.name,
            estimator=type(model).__name__,
            statement=_statement(statement.to_record()),
            assumptions=tuple(statement.assumptions),
            epsilon=plain(statement.epsilon),
            delta=plain(statement.delta),
            protects=math.isfinite(statement.epsilon),
            seeded=statement.randomness == "test",
            plan=_texts(plan_values(model.plan_)),
            importances=importances,
            left_out=left_out,
            head=statement.ledger_head,
            meaning=meaning,
            text=text,
        )
    except ModuleNotFoundError as missing:
        why = f"models need {missing.name}: pip install 'ledgerwood[trainers]'"
    except (PrivacyError, OSError, ValueError, TypeError, KeyError, ImportError) as error:
        why = f"{type(error).__name__}: {error}".replace(str(folder), folder.name)
    return ModelFacts(id=model_id, name=folder.name, failure=why)


def _of_trees(model: Any) -> tuple[tuple[tuple[str, float, str], ...], int, str]:
    """The largest importances by name, how many are left out, and the first trees in words; none of another model."""
    from ledgerwood.reading import export_text, importances
    from ledgerwood.trainers.base.estimator import AbstractTreeEstimator

    if not isinstance(model, AbstractTreeEstimator):
        return (), 0, ""
    ranked = importances(model).features
    shown = tuple((each.name, each.share, _noise(each.noise)) for each in ranked[:_IMPORTANCES])
    first = range(min(_SHOWN_TREES, len(model.ensemble_.trees)))
    text = export_text(model, max_depth=_SHOWN_LEVELS, trees=first)
    if len(text) > _LONGEST_TEXT:
        text = text[:_LONGEST_TEXT].rpartition("\n")[0] + "\n..."
    return shown, max(0, len(ranked) - _IMPORTANCES), text


def _noise(share: float | None) -> str:
    return "not known" if share is None else f"{100.0 * share:.1f} %"


def _statement(record: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    shown = ("epsilon", "delta", "adjacency", "unit", "method", "certified", "randomness", "ledger_head")
    values = {name: record[name] for name in shown}
    if values["epsilon"] is None:
        why = "the noise is reproducible" if values["randomness"] == "test" else "it bounds nothing"
        values.update(epsilon=f"infinite: {why}", certified=False)
    return _texts({name: value for name, value in values.items() if isinstance(value, str | bool | int | float)})


def _texts(values: Mapping[str, Fact]) -> tuple[tuple[str, str], ...]:
    return tuple((name.replace("_", " "), plain(value)) for name, value in values.items())
