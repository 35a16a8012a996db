"""What the checks of a kit ask of fitted models, of their errors and replays."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ledgerwood.errors import InvalidParameter, PrivacyError
from ledgerwood.verification.noise.law import check_fit_noise
from ledgerwood.verification.replaying.session import Replay
from ledgerwood.verification.testing.kit_reports import require


def _refusals(kind: type[PrivacyError]) -> frozenset[str]:
    found = {kind.__name__}
    for below in kind.__subclasses__():
        found |= _refusals(below)
    return frozenset(found)


REFUSALS = _refusals(PrivacyError)


def require_replay(name: str, found: Replay) -> None:
    require(found.ok, f"{name}: {'; '.join(map(str, found.violations[:3]))}")


def same_predictions(model: Any, other: Any, X: NDArray[Any]) -> bool:
    return bool(np.array_equal(model.predict(X), other.predict(X)))


def same_arrays(model: Any, other: Any) -> bool:
    first, second = (getattr(each, each._keeps).to_arrays() for each in (model, other))
    return first.keys() == second.keys() and all(np.array_equal(first[name], second[name]) for name in first)


def noise_drawn(fit: Callable[[], object]) -> int:
    """How many numbers of noise and choices a fit draws: what the test of their distribution counts."""
    try:
        return check_fit_noise(fit).draws
    except InvalidParameter as error:
        words = str(error).split(" drew ")[-1].split()
        return int(words[0]) if words and words[0].isdigit() else 0
