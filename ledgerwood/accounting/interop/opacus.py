"""An accountant for Opacus that pays from a ledger, before the rows of a batch are drawn.

docs/explanation/interop.md#opacus. Importing this module imports opacus and torch; nothing else of the library does.
"""

import itertools
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any, final

from ledgerwood import _extras, _validate, cautions
from ledgerwood.accounting import sgd
from ledgerwood.accounting.adjacency import Adjacency
from ledgerwood.accounting.events.base import Event
from ledgerwood.accounting.events.composition import Composed, Repeated
from ledgerwood.accounting.interop.sgd_histories import sampler_rate
from ledgerwood.accounting.ledger.book import Ledger
from ledgerwood.accounting.ledger.entries import GrantEntry
from ledgerwood.accounting.pricing import price
from ledgerwood.errors import InvalidParameter, LedgerError, PrivacyError, UnsupportedEvent

try:
    from opacus.accountants import IAccountant, register_accountant
    from opacus.data_loader import CollateFnWithEmpty
    from opacus.optimizers import DPOptimizer, DPOptimizerFastGradientClipping, DPPerLayerOptimizer
    from opacus.utils.uniform_sampler import UniformWithReplacementSampler
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler, Sampler, SequentialSampler
except ModuleNotFoundError as missing:
    raise _extras.needed(__name__, missing) from missing

_MECHANISM = "ledgerwood"
_NUMBERS = itertools.count(1)
_KNOWN = (DPOptimizer, DPPerLayerOptimizer, DPOptimizerFastGradientClipping)
_WRAP = "data_loader = accountant.paid(data_loader, optimizer)"
_ADDED_UP = (
    "a row may be in several batches, and then moves the sum by several times the clipping norm, which one step's cost "
    "does not cover. Make one step a batch; signal_skip_step is for the parts of one batch, all of which are to be "
    "gone through (Opacus' BatchMemoryManager signals it)"
)
_SHUFFLED = (
    "poisson_sampling=False: the batches are not Poisson samples, and nothing is amplified by sampling. Each pass over "
    "the rows is charged as one step on all rows, which holds under {adjacency} where the order does not depend on the "
    "rows' values; poisson_sampling=True costs much less"
)


@final
class LedgerAccountant(IAccountant):  # type: ignore[misc]
    """An accountant for Opacus' `PrivacyEngine` that pays from a ledger, and stops the training where it is empty.

    Opacus tells its accountant of a step when noise has been added already. So `paid` wraps the data loader: each batch
    is paid for before its rows are drawn, in grants of `steps` batches. If a grant does not fit, `BudgetExceeded` is
    raised, no row of the batch is drawn, and the ledger is unchanged. A step that was not paid for is refused.

    Args:
        ledger: the ledger that pays, under any relation; None for an accountant that computes costs only, as Opacus
            makes one to find a noise multiplier.
        purpose: printable text of one line that names the run on the ledger. Grants that the ledger already holds under
            this purpose count as part of the run.
        steps: batches that are paid for at once, >= 1; the whole training costs least in one grant. What was granted
            and is not used stays spent.
        delta: of each grant, for ledgers with `BasicFilter` or `AdvancedCompositionFilter`; None takes all the rest.

    Raises:
        InvalidParameter: not a Ledger, or a value outside its bound.
    """

    def __init__(
        self,
        ledger: Ledger | None = None,
        *,
        purpose: str = "DP-SGD by Opacus",
        steps: int = 1,
        delta: float | None = None,
    ) -> None:
        super().__init__()
        if ledger is not None and not isinstance(ledger, Ledger):
            raise _validate.fail("ledger", ledger, "a Ledger", "ledger")
        self.ledger, self.purpose, self.delta = ledger, purpose, delta
        self.steps = _validate.count("steps", steps, "batches")
        self._event: Event | None = None
        self._left = 0
        self._paid: deque[float] = deque()
        self._hook: Callable[[Any], None] | None = None
        self._strict, self._poisson = False, True

    @classmethod
    def mechanism(cls) -> str:
        """The name in Opacus' registry of accountants."""
        return _MECHANISM

    def register(self) -> str:
        """Give this accountant a name in Opacus' registry: `PrivacyEngine(accountant=accountant.register())`.

        The name is for the engine only. A search for a noise multiplier asks what steps would cost, and this accountant
        says what has been paid, so that the search would never end: give Opacus' `get_noise_multiplier` the name
        "ledgerwood", or take `lw.sgd_plan(budget=...)`.
        """
        name = f"{_MECHANISM}-{next(_NUMBERS)}"
        register_accountant(name, lambda: self)
        return name

    def paid(self, data_loader: Any, optimizer: Any) -> Any:
        """The loader to train with, whose batches are paid for before they are drawn.

        Args:
            data_loader: what `make_private` returned. Poisson samples (`poisson_sampling=True`) are priced as such.
                A loader that shuffles its rows, or walks through them in order, is charged one step on all rows for
                each pass, with a `PrivacyWarning`.
            optimizer: what `make_private` returned; its noise multiplier is read before each batch.

        Batches are drawn one by one, in this process: a loader whose workers draw ahead is refused.

        Raises:
            UnsupportedEvent: a loader or an optimizer without a known cost; the message names it.
            InvalidParameter: the optimizer's engine has another accountant.
            LedgerError: this accountant has no ledger.
        """
        ledger = self._require_ledger()
        if type(optimizer) not in _KNOWN:
            raise UnsupportedEvent(
                f"the optimizer {type(optimizer).__name__} is not covered; these are: "
                f"{', '.join(known.__name__ for known in _KNOWN)}. Adaptive clipping releases a count besides, and of "
                "several processes each one would spend"
            )
        if self._hook is None or optimizer.step_hook is not self._hook:
            raise InvalidParameter(
                "optimizer: its PrivacyEngine has another accountant, so its steps would not be counted; make it by "
                "PrivacyEngine(accountant=accountant.register()) (unit: engine)"
            )
        if data_loader.num_workers > 0:
            raise UnsupportedEvent(
                f"num_workers={data_loader.num_workers}: workers draw batches ahead, so that it is not known which "
                "batch a step is made on, and those drawn ahead would pay for repeated steps on one; make the "
                "DataLoader with num_workers=0"
            )
        collate = data_loader.collate_fn
        if isinstance(collate, CollateFnWithEmpty) and collate.rand_on_empty:
            raise UnsupportedEvent(
                "rand_on_empty=True puts a random row into an empty batch, which one more row takes out again: the sum "
                "moves by up to twice the clipping norm; take rand_on_empty=False"
            )
        sampler = data_loader.batch_sampler
        if type(sampler) is UniformWithReplacementSampler:
            rate = sampler_rate(sampler.sample_rate)
        elif _passes_once(sampler):
            rate = None
            if ledger.budget.adjacency is Adjacency.ADD_REMOVE:
                raise UnsupportedEvent(
                    "poisson_sampling=False: under add-remove a shuffled or ordered loader has no bound here, since "
                    "one more row shifts the batches of all others; take poisson_sampling=True, or a ledger whose "
                    "budget is stated under zero-out or replace-one"
                )
            cautions.emit([_SHUFFLED.format(adjacency=ledger.budget.adjacency.value)])
        else:
            raise UnsupportedEvent(
                f"the batch sampler {type(sampler).__name__} over {type(getattr(sampler, 'sampler', None)).__name__} "
                "has no known cost: take poisson_sampling=True, or shuffle=True without replacement"
            )
        self._strict = type(optimizer) is DPOptimizerFastGradientClipping
        self._poisson = rate is not None
        return DataLoader(
            dataset=data_loader.dataset,
            batch_sampler=PaidBatches(self, sampler, optimizer, rate),
            collate_fn=data_loader.collate_fn,
            pin_memory=data_loader.pin_memory,
            generator=data_loader.generator,
        )

    def pay(self, noise_multiplier: float, *, rate: float | None, batches: int) -> None:
        """Pay for one batch, or for a pass of batches, before its rows are drawn; `PaidBatches` does it.

        Args:
            noise_multiplier: noise over the clipping norm, > 0.
            rate: probability of a row in a Poisson sample; None for a pass in which each row comes once.
            batches: the batches of the pass; 1 for a sample.

        Raises:
            BudgetExceeded: it does not fit; nothing was spent.
            UnsupportedEvent: a multiplier of 0 has no finite cost, or the filter has no proven cost for the steps.
        """
        ledger = self._require_ledger()
        event = _step(noise_multiplier, rate, ledger.budget.adjacency)
        if self._left == 0 or event != self._event:
            count = -(-self.steps // batches)
            ledger.grant(Repeated(event, count=count), purpose=self.purpose, delta=self.delta)
            self._event, self._left = event, count
        self._left -= 1

    def drawn(self, noise_multiplier: float | None) -> None:
        """Take note of a batch that was paid for at this multiplier and drawn; of None that a pass begins."""
        if noise_multiplier is None:
            self._paid.clear()  # no step is made on what was drawn in an earlier pass
        else:
            self._paid.append(noise_multiplier)

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Pay for one step on a Poisson sample, in a loop without a `PrivacyEngine`: call it before the rows are drawn.

        Raises:
            BudgetExceeded: it does not fit; nothing was spent, and the step must not be made.
        """
        if self.ledger is not None:
            self.pay(noise_multiplier, rate=sampler_rate(sample_rate), batches=1)
        self._count(float(noise_multiplier), float(sample_rate))

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """The function that Opacus' optimizer calls in each step: it refuses a step that was not paid for."""

        def hook(optimizer: Any) -> None:
            try:
                self._take(optimizer, sample_rate)
            except PrivacyError:
                optimizer._is_last_step_skipped = False
                optimizer.zero_grad(set_to_none=True)  # nothing of the refused step is left
                raise

        self._hook = hook
        return hook

    def _take(self, optimizer: Any, sample_rate: float) -> None:
        self._require_ledger()
        used = int(optimizer.accumulated_iterations)
        if used > 1 and self._poisson:
            raise UnsupportedEvent(
                f"gradients of {used} Poisson samples were added up for one step: a row may be in several of them, and "
                "moves the sum by several times the clipping norm, which a sample of the summed rate does not cover; "
                "make one step a batch (Opacus' BatchMemoryManager splits a batch that is too large)"
            )
        if self._poisson and optimizer._is_last_step_skipped and len(self._paid) > 1:
            raise UnsupportedEvent(f"{len(self._paid)} batches were drawn for a step of several parts: {_ADDED_UP}")
        if len(self._paid) < used:
            raise LedgerError(f"a step on a batch that was not paid for: train with {_WRAP}, one step a batch")
        if self._strict and len(self._paid) != 1:
            raise LedgerError(
                f"{len(self._paid)} batches were drawn since the last step: with ghost clipping their number in a step "
                "is not known, so draw one batch a step"
            )
        if optimizer.noise_multiplier < (least := max(self._paid)):
            raise LedgerError(
                f"noise_multiplier={optimizer.noise_multiplier!r} is below {least!r}, at which this batch was paid for "
                "when it was drawn: change it between batches"
            )
        self._paid.clear()  # a batch that was passed over pays for no second step on this one
        self._count(float(optimizer.noise_multiplier), float(sample_rate))

    def _count(self, noise_multiplier: float, sample_rate: float) -> None:
        if self.history and self.history[-1][:2] == (noise_multiplier, sample_rate):
            self.history[-1] = (noise_multiplier, sample_rate, self.history[-1][2] + 1)
        else:
            self.history.append((noise_multiplier, sample_rate, 1))

    @property
    def event(self) -> Event | None:
        """What has been paid for under this purpose; without a ledger the steps of the history; None if there is none.

        Steps of a history are Poisson samples under add-remove.
        """
        parts: list[Event]
        if self.ledger is None:
            parts = [
                Repeated(_step(sigma, sampler_rate(rate), Adjacency.ADD_REMOVE), count=count)
                for sigma, rate, count in self.history
            ]
        else:
            parts = [entry.event for entry in self._grants()]
        return Composed(tuple(parts)) if parts else None

    def get_epsilon(self, delta: float, *args: Any, **kwargs: Any) -> float:
        """The certified epsilon of all that has been paid for, used or not, as one plan; 0 before the first batch.

        The ledger's own total, `ledger.spent()`, also holds where later grants were chosen after earlier releases.
        """
        event = self.event
        return 0.0 if event is None else price(event).epsilon(delta)

    def __len__(self) -> int:
        """Number of steps taken."""
        return sum(count for _, _, count in self.history)

    def state_dict(self, destination: Any = None) -> Any:
        """The steps taken, and the hashes of the grants that paid for them."""
        destination = OrderedDict() if destination is None else destination
        destination["history"] = [tuple(each) for each in self.history]
        destination["mechanism"] = self.mechanism()
        destination["grants"] = [] if self.ledger is None else [entry.hash for entry in self._grants()]
        return destination

    def load_state_dict(self, state_dict: Any) -> None:
        """Go on from a checkpoint on the ledger that paid for it. Batches paid for and not used are not given back.

        Raises:
            LedgerError: the ledger does not hold the grants of the checkpoint under this purpose.
            ValueError: it is not the state of such an accountant.
        """
        super().load_state_dict(state_dict)
        known = set() if self.ledger is None else {entry.hash for entry in self._grants()}
        absent = [each for each in state_dict.get("grants", ()) if each not in known]
        if absent:
            raise LedgerError(
                f"the checkpoint was paid for by {len(absent)} grants that this ledger does not hold under "
                f"purpose={self.purpose!r} (the first has hash {absent[0][:12]}): open the ledger that paid for it"
            )
        self.history = [tuple(each) for each in state_dict["history"]]
        self._paid.clear()

    def _grants(self) -> list[GrantEntry]:
        entries = () if self.ledger is None else self.ledger.entries
        if entries and entries[0].index:
            raise LedgerError(
                "the ledger was opened at a checkpoint, and what was paid for before it is not here: open the whole "
                "ledger, without from_checkpoint=True"
            )
        return [entry for entry in entries if isinstance(entry, GrantEntry) and entry.purpose == self.purpose]

    def _require_ledger(self) -> Ledger:
        if self.ledger is None:
            raise LedgerError(
                "this accountant has no ledger to pay from: make LedgerAccountant(ledger, purpose=...), and hand it to "
                "the engine by PrivacyEngine(accountant=accountant.register())"
            )
        return self.ledger


@final
class PaidBatches(Sampler[list[int]]):  # type: ignore[misc]
    """A batch sampler that pays for each batch before it draws it. Made by `LedgerAccountant.paid`.

    Args:
        accountant: that pays.
        sampler: that draws the batches.
        optimizer: whose noise multiplier is read.
        rate: of a Poisson sample; None for a pass in which each row comes once.
    """

    def __init__(self, accountant: LedgerAccountant, sampler: Any, optimizer: Any, rate: float | None) -> None:
        self.accountant, self.sampler, self.optimizer, self.rate = accountant, sampler, optimizer, rate

    def __len__(self) -> int:
        return len(self.sampler)

    def __iter__(self) -> Iterator[list[int]]:
        batches, drawn = len(self), iter(self.sampler)
        self.accountant.drawn(None)
        for number in range(batches):
            self._require_same_terms(number)
            noise_multiplier = self.optimizer.noise_multiplier
            if self.rate is not None:
                self.accountant.pay(noise_multiplier, rate=self.rate, batches=1)
            elif number == 0:
                first = noise_multiplier
                self.accountant.pay(first, rate=None, batches=batches)
            try:
                batch = next(drawn)
            except StopIteration:
                return
            self.accountant.drawn(noise_multiplier if self.rate is not None else first)
            yield batch

    def _require_same_terms(self, number: int) -> None:
        """Refuse to draw the next batch while a skipped step holds gradients that it must not be added to."""
        if self.optimizer._is_last_step_skipped and (self.rate is not None or number == 0):
            raise UnsupportedEvent(f"the last step was skipped, and this batch would be added up with it: {_ADDED_UP}")
        if self.rate is not None and (now := sampler_rate(self.sampler.sample_rate)) != self.rate:
            raise LedgerError(
                f"sample_rate={self.sampler.sample_rate!r}: the sampler was changed after `paid` had read its rate, so "
                f"that a row is taken with probability {now!r}, where {self.rate!r} would be paid for; make the loader "
                f"anew: {_WRAP}"
            )


def _step(noise_multiplier: float, rate: float | None, adjacency: Adjacency) -> Event:
    if noise_multiplier == 0.0:
        raise UnsupportedEvent("noise_multiplier=0.0: a step without noise has no finite privacy cost")
    if rate is None:
        return sgd.released("gaussian", noise_multiplier, adjacency)
    return sgd.sampled("gaussian", noise_multiplier, adjacency, rate)


def _passes_once(sampler: Any) -> bool:
    """Returns whether a batch sampler brings each row at most once a pass, in an order that does not see the rows."""
    if type(sampler) is not BatchSampler:
        return False
    rows = sampler.sampler
    if type(rows) is RandomSampler:
        return not rows.replacement and rows.num_samples <= len(rows.data_source)
    return type(rows) is SequentialSampler


register_accountant(_MECHANISM, LedgerAccountant, force=True)
