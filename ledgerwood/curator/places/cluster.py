"""The curator's side of a Dask cluster: places encoded rows on workers, asks questions, and adds up the answers.

Whatever a worker computes can be computed again, from the source of the rows and from questions: who is lost is
replaced, and nothing is drawn or released a second time. docs/explanation/places.md#clusters.
"""

import dataclasses
import itertools
import os
import time
import uuid
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TypeVar, final

from ledgerwood.curator.inputs.watching import WatchedFiles
from ledgerwood.curator.places import worker
from ledgerwood.curator.places.connections import killed_kinds, lost_kinds, require_private
from ledgerwood.curator.places.messages import (
    SPENT,
    UNPAID,
    Absent,
    Answer,
    Drawn,
    RowCharge,
    SessionSecret,
    SharedValues,
    SumQuestion,
    code_digest,
)
from ledgerwood.curator.queries.registry import Integers, PartSums
from ledgerwood.curator.views.tree_rows import TreeShape
from ledgerwood.errors import FilesChanged, PrivacyError, RoundViolation, SchemaError, WorkersLost
from ledgerwood.mechanisms.exact.coins import MOST_ROWS, RowCoins

T = TypeVar("T")
MOST_LOSSES = 32
"""Failed attempts at one question, in a row, before the fit gives up."""
PATIENCE = 60.0
"""Seconds that the cluster has to get a worker, or its scheduler, back."""
_GLANCE = 2.0
"""Seconds between two looks at whether there still is a worker to wait for."""
_FAN_IN = 8


class _Lost(Exception):
    """A task's result is gone with its worker."""


class _NotTold(Exception):
    """A worker does not know the session: it came later, or was started again."""


@final
class Accounts:
    """What is left of each row's limit under an individual filter: on the workers, after the questions that were asked.

    Where it is lost, or rows lie in other blocks by now, it is computed again, from those questions; their answers are
    not looked at a second time.
    """

    __slots__ = ("_asked", "_left", "_of")

    def __init__(self) -> None:
        self._asked: list[SumQuestion] = []
        self._left: list[Any] | None = None
        self._of: list[Any] = []

    def charged(self, question: SumQuestion, blocks: list[Any], submit: Callable[..., Any]) -> list[Any]:
        """Tasks that answer the question and charge the rows, one a block."""
        left = self._left
        if left is None or self._of is not blocks:  # another query's recovery may have placed the rows again
            left = [None] * len(blocks)
            for asked in self._asked:
                left = [submit(worker.accounts_of, step) for step in self._steps(asked, blocks, left, submit)]
        return self._steps(question, blocks, left, submit)

    @staticmethod
    def _steps(question: SumQuestion, blocks: list[Any], left: list[Any], submit: Callable[..., Any]) -> list[Any]:
        return [submit(worker.charged, block, own, question) for block, own in zip(blocks, left, strict=True)]

    def keep(self, question: SumQuestion, blocks: list[Any], left: list[Any]) -> None:
        """Take over what is left, of these blocks' rows, after a question that was answered."""
        self._asked.append(question)
        self._left, self._of = left, blocks

    def forget(self) -> None:
        """Compute what is left again, at the next question."""
        self._left = None


@final
class ClusterSession:
    """One fit on a cluster. Made by `session_on`.

    Args:
        client: of the cluster.
        private: whether its connections must be private: True unless the noise is a test's.
        n_jobs: threads of each worker; None: as many as it has.
    """

    __slots__ = ("_asked", "_blocks", "_cost", "_drawn", "_files", "_held", "_measured", "_n_jobs", "_partitions",
                 "_placed", "_private", "_released", "_secret", "_shape", "_shared", "client", "name")  # fmt: skip

    def __init__(self, client: Any, *, private: bool, n_jobs: int | None) -> None:
        self.client = client
        self.name = uuid.uuid4().hex
        self._secret = os.urandom(32)
        self._private = private
        self._n_jobs = n_jobs
        self._shared = SharedValues()
        self._asked = self._placed = self._drawn = 0
        self._cost = UNPAID
        self._files: WatchedFiles | None = None
        self._partitions: Callable[[], list[Any]] = list
        self._shape: TreeShape | None = None
        self._blocks: list[Any] = []
        self._measured: list[worker.Measured] = []
        self._held: list[Any] = []
        self._released: list[Any] = []

    def open(self) -> None:
        """Tell all workers of the session; those that come later are told when they first answer.

        Raises:
            PrivacyError: connections that others can listen to, or workers with other code.
        """
        if self._private:
            require_private(self.client)
        told = self.client.run(
            worker.open_session,
            self.name,
            SessionSecret(self._secret),
            code_digest(),
            tuple(self._shared.pickles),
            on_error="return",
        )
        for address, problem in told.items():
            if isinstance(problem, str) and problem:
                raise PrivacyError(f"{problem} ({address}). {self._cost}")
            if isinstance(problem, ImportError | AttributeError | TypeError):
                raise PrivacyError(f"the worker at {address} lacks this version of ledgerwood: {problem}. {self._cost}")

    def close(self) -> None:
        """Forget rows and secrets everywhere, as far as the workers can be reached."""
        self._blocks, self._held, self._released = [], [], []
        if self.client.status == "running":
            with suppress(*lost_kinds()):  # what ends the fit has been said, or is being raised
                self.client.run(worker.close_session, self.name, on_error="ignore")

    def drawn(self, coins: RowCoins | None, **drawn: Any) -> Drawn:
        """Who takes part by these coins, for workers of this session; None: by no coin."""
        self._drawn += 1
        found = Drawn(number=self._drawn, sealed=b"", **drawn)
        if coins is None:
            return found
        return dataclasses.replace(found, sealed=coins.sealed(self._secret, found.purpose(self.name)))

    @property
    def n_rows(self) -> int:
        """The number of rows, curator only."""
        return sum(each.n_rows for each in self._measured)

    def watch(self, files: WatchedFiles) -> None:
        """Compare these files, that the rows are read from, with what they were."""
        self._files = files

    def results(self, tasks: Callable[[], list[Any]]) -> list[Any]:
        """What tasks that read rows return; errors as of `place`."""

        def computed() -> list[Any]:
            futures = _computed(self.client, tasks())
            self._settle(futures)
            return list(self.client.gather(futures))

        found = self._tried(computed, self._recover)
        self._require_files()
        return found

    def place(self, partitions: Callable[[], list[Any]], shape: TreeShape, *, n_rows: int | None = None) -> None:
        """Encode the rows on the workers, and keep them there.

        Args:
            partitions: makes the tasks that encode the partitions, in the public order of the rows.
            shape: of the table.
            n_rows: that were counted before, and paid for since; None: they were not.

        Raises:
            RoundViolation: a second table in one session, whose questions would be asked of the other one's rows.
            FilesChanged: a file is another one than when the fit began.
            SchemaError: a partition that does not fit the schema by names and types, or cannot be computed; or 2**35
                rows.
            WorkersLost: the cluster lost its workers too often.
        """
        if self._shape is not None:
            raise RoundViolation("a session on a cluster has one table")
        if n_rows is not None:
            self._cost = SPENT
        self._partitions, self._shape = partitions, shape
        self._tried(self._place, self._recover)
        self._require_files()  # a mixture of two versions is nobody's data set
        if n_rows not in (None, self.n_rows):
            raise WorkersLost(f"the rows are others than when their schema was estimated. {SPENT}")
        self._cost = SPENT

    def _place(self) -> None:
        client = self.client
        encoded = _computed(client, self._partitions())
        self._settle(encoded)
        found = [self._submitted(worker.measured, self.name, *each) for each in enumerate(encoded)]
        self._settle(found)
        now = client.gather(found)
        if any(isinstance(each, Absent) for each in now):
            raise _NotTold
        # Of rows that are placed again the first time's: blocks compare what they get.
        measured = self._measured or now
        if len(now) != len(measured):
            raise WorkersLost(f"the rows have another number of partitions than when the fit began. {self._cost}")
        offsets = list(itertools.accumulate((each.n_rows for each in measured), initial=0))
        if offsets[-1] >= MOST_ROWS:
            raise SchemaError("a table has fewer than 2**35 rows: docs/explanation/queries.md#leaf-ratios")
        homes = client.who_has(encoded)
        of_worker: dict[str, list[int]] = defaultdict(list)
        for number, future in enumerate(encoded):
            at = homes.get(future.key) or ("",)
            of_worker[min(at, key=lambda each: (len(of_worker[each]), each))].append(number)
        self._placed += 1
        blocks = [
            client.submit(
                worker.block,
                self._shape,
                [encoded[number] for number in numbers],
                [(offsets[number], measured[number]) for number in numbers],
                key=f"ledgerwood-rows-{self.name}-{self._placed}-{place}",
                workers=[home] if home else None,
                allow_other_workers=bool(home),
            )
            for place, (home, numbers) in enumerate(of_worker.items())
            if numbers
        ]
        self._settle(blocks)
        self._measured, self._blocks, self._held = measured, blocks, []

    def _settle(self, futures: list[Any]) -> None:
        """Wait for tasks that read rows."""
        self._wait(futures)
        for number, future in enumerate(futures):
            if future.status != "finished":
                self._fail(future, f"partition {number} of the rows")

    def _wait(self, futures: list[Any]) -> None:
        """Wait until tasks have come to an end, as long as there is a worker that may work at them.

        Raises:
            WorkersLost: there was none for too long.
        """
        from distributed import wait

        until = time.monotonic() + PATIENCE
        while True:
            try:
                wait(futures, timeout=min(_GLANCE, PATIENCE))  # type: ignore[no-untyped-call]
            except TimeoutError:
                pass
            else:
                return
            if self.client.status == "closed":  # it has given up its scheduler
                raise _Lost
            if self.client.scheduler_info(n_workers=1).get("workers"):
                until = time.monotonic() + PATIENCE
            elif time.monotonic() > until:
                raise WorkersLost(f"the cluster has had no worker for {PATIENCE:g} seconds. {self._cost}")

    def _fail(self, future: Any, what: str) -> NoReturn:
        """Raise what the end of a task means that did not finish; no value of a row is told.

        Raises:
            _Lost: its worker died.
            FilesChanged: a file that it read is another one.
            SchemaError, PrivacyError: at the first time that rows are read.
            WorkersLost: later.
        """
        error = future.exception() if future.status == "error" else None
        if error is None or isinstance(error, killed_kinds()):
            raise _Lost
        self._require_files()
        if type(error) in (WorkersLost, PrivacyError):
            raise type(error)(f"{error}. {self._cost}")
        if self._blocks:
            raise WorkersLost(f"{what} cannot be computed again ({type(error).__name__}). {self._cost}")
        if isinstance(error, PrivacyError):
            raise error
        raise SchemaError(
            f"{what} cannot be computed ({type(error).__name__}): its source is not there, or a step of it fails on a "
            f"value. {self._cost}"
        )

    def _require_files(self) -> None:
        problem = ""
        try:
            if self._files is not None:
                self._files.require_same()
        except FilesChanged as error:
            problem = str(error)
        if problem:  # outside of the block above, which has nothing more to tell
            raise FilesChanged(f"{problem}. {self._cost}")

    def question(self, query: object, *, is_choice: bool, drawn: Drawn | None, charge: RowCharge | None) -> SumQuestion:
        """The next question; each has its own number."""
        known = len(self._shared.pickles)
        packed = self._shared.packed(query)
        self._asked += 1
        return SumQuestion(
            session=self.name, number=self._asked, packed=packed, known=known,
            news=tuple(self._shared.pickles[known:]), is_choice=is_choice, drawn=drawn, charge=charge,
            n_jobs=self._n_jobs,
        )  # fmt: skip

    def answered(self, question: SumQuestion) -> Integers:
        """The sums over all parts, each once.

        Raises:
            WorkersLost: the cluster lost its workers too often.
            RoundViolation: a part is missing, or came twice.
        """

        def ask() -> Integers:
            return self._summed([self._submitted(worker.answered, block, question) for block in self._blocks], question)

        return self._tried(ask, self._recover)

    def charged(self, question: SumQuestion, accounts: Accounts) -> Integers:
        """As `answered`, of a question with a charge, which the accounts keep once it is answered."""

        def ask() -> Integers:
            blocks = self._blocks
            steps = accounts.charged(question, blocks, self._submitted)
            left = [self._submitted(worker.accounts_of, step) for step in steps]
            sums = self._summed([self._submitted(worker.answer_of, step) for step in steps], question)
            accounts.keep(question, blocks, left)
            return sums

        def recover() -> None:
            accounts.forget()
            self._recover()

        return self._tried(ask, recover)

    def _submitted(self, task: Callable[..., Any], *arguments: Any) -> Any:
        key = f"ledgerwood-{task.__name__}-{uuid.uuid4().hex}"
        future = self.client.submit(task, *arguments, key=key, pure=False)
        self._held.append(future)
        return future

    def _summed(self, answers: list[Any], question: SumQuestion) -> Integers:
        while len(answers) > _FAN_IN:
            answers = [
                self._submitted(worker.merged, answers[begin : begin + _FAN_IN])
                for begin in range(0, len(answers), _FAN_IN)
            ]
        sums = PartSums(range(len(self._measured)))
        self._wait(answers)
        for future in (*self._blocks, *answers):  # where a block cannot be had the answer's error is the block's
            if future.status != "finished" and (future.status == "error" or future in answers):
                self._fail(future, "a part of the rows" if future in self._blocks else "an answer to a question")
        # The client sends a message each 10 ms: tasks that were released after the answers would delay the next ones.
        self._released, self._held = self._held, []
        for answer in self.client.gather(answers):
            if isinstance(answer, Absent):
                raise _NotTold
            if not isinstance(answer, Answer) or answer.number != question.number:
                raise RoundViolation(f"a worker answered another question than number {question.number}")
            sums.add(answer.parts, answer.sums)
        return sums.total()

    def _recover(self) -> None:
        """Tell all workers that there are now, and place the rows again where they cannot be had any more."""
        self._awaited()
        self.open()
        if any(block.status in ("cancelled", "error", "lost") for block in self._blocks):
            self._place()

    def _awaited(self) -> None:
        """Wait until the cluster has a scheduler; whether it has a worker, `_wait` looks.

        Raises:
            WorkersLost: it does not get one.
        """
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and self.client.status != "closed":
            with suppress(*lost_kinds()):  # it comes back, or it does not
                if self.client.status == "running" and self.client.scheduler_info(n_workers=1):
                    return
            time.sleep(0.1)
        raise WorkersLost(f"the cluster's scheduler is lost, and did not come back. {self._cost}")

    def _tried(self, attempt: Callable[[], T], recover: Callable[[], None]) -> T:
        """The attempt's result, after as many recoveries as it takes where workers are lost on the way.

        Raises:
            WorkersLost: it takes too many.
        """
        last = ""
        lost: tuple[type[Exception], ...] = (_NotTold, _Lost, *lost_kinds())
        for losses in range(MOST_LOSSES):
            try:
                if losses:
                    recover()
                return attempt()
            except PrivacyError:
                raise
            except lost as error:
                last = type(error).__name__
            time.sleep(min(1.0, 0.01 * 2**losses))  # a cluster that starts again takes its time
        raise WorkersLost(f"workers were lost {MOST_LOSSES} times in one round ({last}). {self._cost}")


def _computed(client: Any, tasks: list[Any]) -> list[Any]:
    """The futures of tasks that read rows."""
    with warnings.catch_warnings():
        # It would tell how large a collection is that was made of rows in memory.
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        return list(client.compute(tasks))


@contextmanager
def session_on(client: Any, *, private: bool, n_jobs: int | None) -> Iterator[ClusterSession]:
    """A session on a cluster, until the block ends; arguments and errors as of `ClusterSession` and its `open`."""
    session = ClusterSession(client, private=private, n_jobs=n_jobs)
    try:
        session.open()
        yield session
    finally:
        session.close()
