"""Opening a recording: by `ledgerwood.verification`, and by nothing else (an import contract says so)."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ledgerwood.errors import ReplayFailed
from ledgerwood.recording.context import Hook, Point, Recording, current, joined

__all__ = ["Hook", "Point", "recording", "unreleased"]


@contextmanager
def recording(name: str, hooks: Mapping[Point, Hook]) -> Iterator[None]:
    """Let the hooks stand at their points for calls of this thread or task, until the end of the block.

    Other threads and tasks go on as if there were none, and may have their own recordings. A closed recording stays
    closed: a task that outlives the block is an ordinary one again.

    Args:
        name: what it is, for messages: "replay", say.
        hooks: by point.

    Raises:
        ReplayFailed: one is open in this thread or task already, of any kind: one would record the other's work.
    """
    running = current()
    if running is not None:
        raise ReplayFailed(
            f"another recording is going on here, a {running.name}: a {name} cannot be opened inside of it. End it "
            "first, or run this one in a thread of its own"
        )
    opened = Recording(name, hooks)
    try:
        with joined(opened):
            yield
    finally:
        opened.close()


@contextmanager
def unreleased() -> Iterator[None]:
    """Run a fit that is not released: a recording without hooks, so the fits warn of nothing and count nowhere.

    Inside of another recording, which says that already, it does nothing.
    """
    if current() is not None:
        yield
        return
    with recording("trial fit of a verification", {}):
        yield
