"""Record and replay: fit twice, on neighbouring data, and show that only the exact values below the noise have changed.

The first fit is recorded: every call that reaches a curator or a ledger, with its public fields, the exact value that
its mechanism was handed, and what came out. The second fit, on the neighbour, is given the same outputs again. Then all
public values must be the same, and an exact value may change by no more than its release's event allows: that is the
premise of adaptive composition, call by call. docs/explanation/replay.md#replay-proves: what it proves, and what not.
"""

from collections.abc import Callable
from typing import TypeVar

from ledgerwood.recording.opening import recording
from ledgerwood.verification.replaying.hooks import hooks
from ledgerwood.verification.replaying.matching import neighbour_of
from ledgerwood.verification.replaying.session import Replay, Session
from ledgerwood.verification.sensitivity.neighbour_rows import Neighbour

D = TypeVar("D")


def replay(
    fit: Callable[[D], object], data: D, neighbour: Neighbour[D] | D, *, sampled: bool = True, group: int = 0
) -> Replay:
    """Fit on `data`, then on the neighbour with the outputs frozen, and compare.

    The samples of the two fits are coupled: a row of both is in both or in neither, and in the same group.

    Other threads and asyncio tasks do not see the replay. Threads that the fit itself starts are seen where they use
    the fit's curator and rounds, or run in a copy of its context (`contextvars.copy_context().run`), if their calls
    come in the same order in both fits. docs/explanation/recording.md#recording-context.

    Args:
        fit: a function from the data to the released result: a model, or anything that can be compared. All its
            randomness must come from a `RandomSource`, or from a generator that is seeded by one.
        data: of the first fit.
        neighbour: of the second one, as `added`, `removed`, `replaced` and the like make it; or a plain data set, such
            as (X, y), whose rows are matched by their values (`neighbour_of`).
        sampled: whether the changed row is in every sample, the worst case. If not, and in no group, no release from a
            sample may change at all.
        group: which group the changed row is assigned to, from 0, modulo the number of groups.

    Raises:
        ReplayFailed: a call, query or model that cannot be compared, data whose rows the fit does not hand over as
            they are, or another recording that is open in this thread or task; nothing is shown.
        InvalidParameter: data that are no neighbours under the fit's adjacency, or that differ in several rows.
    """
    neighbour = neighbour if isinstance(neighbour, Neighbour) else neighbour_of(data, neighbour)
    session = Session(neighbour, sampled=sampled, group=group)
    with recording("replay", hooks(session)):
        first = session.run(fit, data)
        session.replaying = True
        second = session.run(fit, neighbour.data)
    return session.outcome(first, second)
