"""Every event is known wherever events are read, combined, stored and verified; or this test says what is missing."""

import ast
import inspect
from pathlib import Path

import pytest

import ledgerwood as lw
from ledgerwood import accounting
from ledgerwood.accounting.costs.losses import joint
from ledgerwood.accounting.events import base, group, serial
from ledgerwood.verification.ledgers.pairs import records

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = " ".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "tests/golden").glob("*.jsonl")))
LAWS = (ROOT / "tests/laws/conftest.py").read_text(encoding="utf-8")


def classes(above):
    """All final classes below a class, each once: a class with slots is made twice by its dataclass."""
    for kind in above.__subclasses__():
        yield from classes(kind)
        if getattr(kind, "__final__", False) and kind.__module__.startswith("ledgerwood."):
            yield kind


EVENTS = sorted({kind for kind in classes(base.Event) if not issubclass(kind, base.Derived)}, key=lambda k: k.__name__)


def cases(function):
    """The classes that a function's `match` names."""
    tree = ast.parse(inspect.getsource(function))
    return {ast.unparse(node.cls) for node in ast.walk(tree) if isinstance(node, ast.MatchClass)}


GAUSSIAN = "its mu says all, which log_profile asks for last"
DIVERGENCES = "it is known by bounds of its divergences, which are no profile from below"
SELECTION = "its runs are bounded from above only"
ONLY_FROM_ABOVE = {
    "EllipticalGaussianEvent": GAUSSIAN,
    "FilteredEvent": GAUSSIAN,
    "GDPEvent": GAUSSIAN,
    "GaussianEvent": GAUSSIAN,
    "PoissonSelection": SELECTION,
    "RenyiEvent": DIVERGENCES,
    "RepeatedSelection": SELECTION,
    "ReplaceOneSampled": "it is a bound of two costs, not the cost of one mechanism",
    "SkellamVectorEvent": DIVERGENCES,
    "ZeroConcentratedEvent": DIVERGENCES,
}
"""Events that `log_profile` of joint.py does not name, and why not."""
SAMPLED = "how many of a group's units a sample holds is not in the event"
ONE_UNIT = "one unit's curve does not bound that of several"
NO_GROUPS = {
    "FilteredEvent": "its rows pay one by one",
    "FixedSizeSampled": SAMPLED,
    "GaussianMixtureEvent": SAMPLED,
    "Parallel": SAMPLED,
    "PoissonSampled": SAMPLED,
    "PoissonSelection": SAMPLED,
    "ProfileEvent": ONE_UNIT,
    "RandomAllocation": SAMPLED,
    "RenyiEvent": ONE_UNIT,
    "RepeatedSelection": SAMPLED,
    "ReplaceOneSampled": SAMPLED,
    "TruncatedLaplaceEvent": "its noise ends, and no longer hides a step of several sensitivities",
}
"""Events that `grouped` refuses, and why."""


def test_there_are_events_and_no_exception_is_stale():
    names = {kind.__name__ for kind in EVENTS}
    assert names >= {*ONLY_FROM_ABOVE, *NO_GROUPS}
    assert not cases(joint.log_profile) & ONLY_FROM_ABOVE.keys()
    assert not cases(group._grouped) & NO_GROUPS.keys()
    assert {"GaussianEvent", "PoissonSampled", "Composed", "RenyiEvent"} <= {kind.__name__ for kind in EVENTS}


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_an_event_is_known_wherever_events_are_read(kind):
    name, missing = kind.__name__, []
    if name not in lw.__all__ or name not in accounting.__all__:
        missing.append("exports: accounting/events/__init__.py, accounting/__init__.py, ledgerwood/__init__.py")
    if name not in serial._CLASSES:
        missing.append("its record: _CLASSES of accounting/events/serial.py")
    if name not in records._READERS:
        missing.append("the verifier's reader: _LEAVES or _COMBINED of verification/ledgers/pairs/records.py")
    if name not in cases(joint.log_profile) and name not in ONLY_FROM_ABOVE:
        missing.append("its profile from below: log_profile of accounting/costs/losses/joint.py")
    if name not in cases(group._grouped) and name not in NO_GROUPS:
        missing.append("its groups: grouped of accounting/events/group.py")
    if f'"{name}"' not in GOLDEN:
        missing.append("a ledger that always verifies: tests/golden/write_ledgers.py")
    if name not in LAWS:
        missing.append("a strategy for the laws: tests/laws/conftest.py")
    if "docs/explanation" not in f"{inspect.getdoc(kind)} {inspect.getmodule(kind).__doc__}":
        missing.append("the page of its proof, with its anchor, in its docstring")
    assert missing == [], f"{name} is not known everywhere: add it to " + "; ".join(missing)
