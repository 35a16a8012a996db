"""Real trainings with Opacus: each batch is paid for before its rows are drawn, and an empty ledger stops them."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledgerwood as lw
from ledgerwood.errors import InvalidParameter, LedgerError, UnsupportedEvent

# torch takes seconds to be imported
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ADD_REMOVE, ZERO_OUT, REPLACE_ONE = lw.Adjacency.ADD_REMOVE, lw.Adjacency.ZERO_OUT, lw.Adjacency.REPLACE_ONE
ROWS, BATCH, SIGMA = 200, 20, 4.0
RATE = Fraction(math.ceil(Fraction(float(np.nextafter(np.float32(0.1), np.float32(1)))) * 2**24), 2**24)


@pytest.fixture(scope="module")
def bridge():
    pytest.importorskip("opacus", reason="needs the extra: opacus")
    from ledgerwood.accounting.interop import opacus

    return opacus


class Run:
    """A linear model that is trained by Opacus with an accountant; `seen` has the rows of each batch."""

    def __init__(
        self, bridge, ledger, *, poisson=True, loader=None, paid=True, sigma=SIGMA, steps=1, delta=None, **options
    ):
        import torch
        from opacus import PrivacyEngine
        from torch.utils.data import DataLoader, TensorDataset

        self.torch = torch
        generator = torch.Generator().manual_seed(1)
        X = torch.randn(ROWS, 5, generator=generator)
        self.rows = TensorDataset(X, (X[:, 0] > 0).long(), torch.arange(ROWS))
        self.accountant = bridge.LedgerAccountant(ledger, purpose="a run", steps=steps, delta=delta)
        self.engine = PrivacyEngine(accountant=self.accountant.register())
        assert self.engine.accountant is self.accountant
        module = torch.nn.Linear(5, 2)
        self.model, self.optimizer, self.plain = self.engine.make_private(
            module=module, optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
            data_loader=loader or DataLoader(self.rows, batch_size=BATCH, shuffle=True),
            noise_multiplier=sigma, max_grad_norm=1.0, poisson_sampling=poisson, **options,
        )  # fmt: skip
        self.loader = self.accountant.paid(self.plain, self.optimizer) if paid else self.plain
        self.seen = []

    def backward(self, x, y):
        self.optimizer.zero_grad()
        self.torch.nn.functional.cross_entropy(self.model(x), y).backward()

    def epoch(self, loader=None):
        for x, y, rows in loader or self.loader:
            self.seen.append(rows)
            self.backward(x, y)
            self.optimizer.step()

    def weights(self):
        return self.torch.cat([each.detach().flatten() for each in self.model.parameters()]).clone()


def ledger(epsilon=2.0, adjacency=ADD_REMOVE, filter_=None):
    budget = lw.Budget(epsilon=epsilon, delta=1e-5, adjacency=adjacency)
    return lw.Ledger(budget, unit=lw.PrivacyUnit.ROW, filter=filter_ or lw.RenyiFilter(order=12.0))


def sampled(sigma=SIGMA, count=1, adjacency=ADD_REMOVE):
    step = lw.GaussianEvent(noise_multiplier=sigma, adjacency=adjacency)
    return lw.Repeated(lw.PoissonSampled(step, sampling_rate=float(RATE)), count=count)


def test_each_batch_is_paid_for_as_a_poisson_sample(bridge):
    run = Run(bridge, book := ledger())
    run.epoch()
    assert [entry.event for entry in book.entries[1:]] == [sampled()] * 10
    assert len(run.accountant) == 10
    assert run.accountant.history == [(SIGMA, 0.1, 10)]
    assert run.engine.get_epsilon(1e-5) == lw.price(lw.Composed((sampled(),) * 10)).epsilon(1e-5)


def test_an_empty_ledger_stops_the_training_before_a_row_is_drawn(bridge):
    run, epochs = Run(bridge, book := ledger(0.8)), 0
    with pytest.raises(lw.BudgetExceeded):
        while True:
            before = run.weights()
            run.epoch()
            epochs += 1
    steps, spent = len(run.seen), book.spent()
    assert 10 < steps == len(run.accountant) == len(book.entries) - 1 < 1000
    last = run.weights()
    with pytest.raises(lw.BudgetExceeded):
        run.epoch()
    assert len(run.seen) == steps
    assert book.spent() == spent
    assert spent.epsilon <= 0.8
    assert (run.weights() == last).all()
    assert not (before == last).all() or steps % 10 == 0
    # one more step does not fit
    more = lw.price(sampled(count=steps + 1), method="renyi").epsilon(1e-5)
    assert run.engine.get_epsilon(1e-5) <= 0.8
    assert more <= run.engine.get_epsilon(1e-5) * 1.2


def test_steps_are_paid_in_grants_of_a_plan(bridge):
    run = Run(bridge, book := ledger(filter_=lw.BasicFilter()), steps=25)
    for _ in range(2):
        run.epoch()
    assert [entry.event for entry in book.entries[1:]] == [sampled(count=25)]
    assert run.engine.get_epsilon(1e-5) == lw.price(sampled(count=25)).epsilon(1e-5)
    assert len(run.accountant) == 20
    with pytest.raises(lw.BudgetExceeded):  # the first grant took all of delta
        run.epoch()
    assert len(run.accountant) == 25


def test_another_noise_is_another_grant(bridge):
    run = Run(bridge, book := ledger(), steps=10)
    run.epoch()
    run.optimizer.noise_multiplier = 8.0
    run.epoch()
    assert [entry.event for entry in book.entries[1:]] == [sampled(count=10), sampled(8.0, count=10)]
    assert run.accountant.history == [(SIGMA, 0.1, 10), (8.0, 0.1, 10)]


def test_less_noise_than_was_paid_for_is_refused(bridge):
    run = Run(bridge, ledger())
    x, y, _ = next(iter(run.loader))
    run.backward(x, y)
    run.optimizer.noise_multiplier, before = 1.0, run.weights()
    with pytest.raises(LedgerError, match=r"noise_multiplier=1.0 is below 4.0"):
        run.optimizer.step()
    assert (run.weights() == before).all()
    assert all(p.grad is None and p.summed_grad is None for p in run.optimizer.params)


def test_a_step_that_was_not_paid_for_is_refused(bridge):
    run = Run(bridge, book := ledger(), paid=False)
    before = run.weights()
    with pytest.raises(LedgerError, match=r"accountant.paid\(data_loader, optimizer\)"):
        run.epoch()
    assert (run.weights() == before).all()
    run.loader = run.accountant.paid(run.plain, run.optimizer)
    x, y, _ = next(iter(run.loader))
    run.backward(x, y)
    run.optimizer.step()
    run.backward(x, y)
    with pytest.raises(LedgerError, match="not paid for"):  # the same batch again
        run.optimizer.step()
    assert len(book.entries) == 2


def test_a_batch_that_was_passed_over_pays_for_no_second_step(bridge):
    for options, adjacency in (({}, ADD_REMOVE), ({"poisson": False}, ZERO_OUT)):
        run = Run(bridge, ledger(8.0, adjacency), **options)
        batches = iter(run.loader)
        next(batches)
        x, y, _ = next(batches)
        run.backward(x, y)
        run.optimizer.step()
        run.backward(x, y)
        with pytest.raises(LedgerError, match="not paid for"):
            run.optimizer.step()


def test_workers_that_draw_ahead_are_refused(bridge):
    from torch.utils.data import DataLoader

    book = ledger()
    rows = Run(bridge, book).rows
    with pytest.raises(UnsupportedEvent, match="num_workers=1: workers draw batches ahead.*with num_workers=0"):
        Run(bridge, book, loader=DataLoader(rows, batch_size=BATCH, num_workers=1))
    assert len(book.entries) == 1


def test_batches_that_were_drawn_ahead_pay_for_no_second_step(bridge):
    """A loader of the user's own around the paid sampler, with workers."""
    from torch.utils.data import DataLoader

    run = Run(bridge, book := ledger())
    ahead = DataLoader(run.rows, batch_sampler=run.loader.batch_sampler, num_workers=1)
    x, y, _ = next(iter(ahead))
    assert len(book.entries) > 2
    run.backward(x, y)
    run.optimizer.step()
    run.backward(x, y)
    with pytest.raises(LedgerError, match="not paid for"):
        run.optimizer.step()


def test_added_up_batches_are_refused(bridge):
    run = Run(bridge, ledger())
    run.model.allow_grad_accumulation()
    batches = iter(run.loader)
    for _ in range(2):
        x, y, _ = next(batches)
        run.torch.nn.functional.cross_entropy(run.model(x), y).backward()
    before = run.weights()
    with pytest.raises(UnsupportedEvent, match="gradients of 2 Poisson samples"):
        run.optimizer.step()
    assert (run.weights() == before).all()


def test_batches_that_a_skipped_step_adds_up_are_refused_before_they_are_paid_for(bridge):
    run = Run(bridge, book := ledger())
    batches, before = iter(run.loader), run.weights()
    x, y, _ = next(batches)
    run.optimizer.signal_skip_step(do_skip=True)
    run.backward(x, y)
    run.optimizer.step()
    with pytest.raises(UnsupportedEvent, match="the last step was skipped, and this batch would be added up"):
        next(batches)
    assert len(book.entries) == 2
    assert (run.weights() == before).all()


def test_batches_that_were_drawn_before_the_skipped_step_are_refused(bridge):
    run = Run(bridge, ledger())
    batches, before = iter(run.loader), run.weights()
    drawn = [next(batches), next(batches)]
    for skip, (x, y, _) in zip((True, False), drawn, strict=True):
        run.optimizer.signal_skip_step(do_skip=skip)
        run.backward(x, y)
        if skip:
            run.optimizer.step()
    with pytest.raises(UnsupportedEvent, match="2 batches were drawn for a step of several parts"):
        run.optimizer.step()
    assert (run.weights() == before).all()


def test_a_skipped_step_adds_up_no_two_passes(bridge):
    """Within a pass of a shuffled loader rows differ, so that batches may be added up; over two they are the same."""
    run = Run(bridge, book := ledger(8.0, ZERO_OUT), poisson=False)
    batches = iter(run.loader)
    for skip in (True, False, True):
        x, y, _ = next(batches)
        run.optimizer.signal_skip_step(do_skip=skip)
        run.backward(x, y)
        run.optimizer.step()
    assert len(run.accountant) == 1
    with pytest.raises(UnsupportedEvent, match="the last step was skipped"):
        next(iter(run.loader))
    assert len(book.entries) == 2


def test_a_sampler_that_was_changed_is_refused(bridge):
    run = Run(bridge, book := ledger())
    batches = iter(run.loader)
    next(batches)
    run.plain.batch_sampler.sample_rate = 0.5
    with pytest.raises(LedgerError, match=r"sample_rate=0.5: the sampler was changed"):
        next(batches)
    assert len(book.entries) == 2


def test_a_batch_in_parts_is_one_step(bridge):
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    run = Run(bridge, book := ledger())
    with BatchMemoryManager(data_loader=run.loader, max_physical_batch_size=6, optimizer=run.optimizer) as parts:
        run.epoch(parts)
        assert len(run.seen) > 10 == len(run.accountant) == len(book.entries) - 1
        run.epoch(parts)
    assert len(run.seen) > 40
    assert 20 == len(run.accountant) == len(book.entries) - 1


@pytest.mark.parametrize("adjacency", [ZERO_OUT, REPLACE_ONE])
def test_shuffled_batches_cost_a_whole_step_a_pass_and_it_is_said(bridge, adjacency):
    book = ledger(8.0, adjacency)
    with pytest.warns(lw.PrivacyWarning, match="nothing is amplified by sampling.*one step on all rows"):
        run = Run(bridge, book, poisson=False)
    run.epoch()
    run.epoch()
    sigma = SIGMA / 2 if adjacency is REPLACE_ONE else SIGMA
    once = lw.Repeated(lw.GaussianEvent(noise_multiplier=sigma, adjacency=adjacency), count=1)
    assert [entry.event for entry in book.entries[1:]] == [once, once]
    assert len(run.accountant) == 20
    assert sorted(run.torch.cat(run.seen[:10]).tolist()) == list(range(ROWS))


def test_a_pass_that_was_broken_off_is_paid_for_again(bridge):
    run = Run(bridge, book := ledger(8.0, ZERO_OUT), poisson=False)
    for _ in range(3):
        x, y, _ = next(iter(run.loader))
        run.backward(x, y)
        run.optimizer.step()
    assert len(book.entries) == 4


def test_under_replace_one_a_sample_has_both_costs(bridge):
    run = Run(bridge, book := ledger(8.0, REPLACE_ONE))
    run.epoch()
    assert book.entries[1].event.event == lw.ReplaceOneSampled(
        lw.GaussianEvent(noise_multiplier=SIGMA / 2, adjacency=REPLACE_ONE),
        add_remove=lw.GaussianEvent(noise_multiplier=SIGMA, adjacency=ADD_REMOVE),
        sampling_rate=float(RATE),
    )


def test_what_has_no_known_cost_is_refused(bridge):
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, RandomSampler

    with pytest.raises(UnsupportedEvent, match="under add-remove a shuffled or ordered loader has no bound"):
        Run(bridge, ledger(), poisson=False)
    run = Run(bridge, book := ledger(8.0, ZERO_OUT))
    replaced = DataLoader(run.rows, batch_size=BATCH, sampler=RandomSampler(run.rows, replacement=True))
    with pytest.raises(UnsupportedEvent, match="BatchSampler over RandomSampler has no known cost"):
        run.accountant.paid(replaced, run.optimizer)
    longer = DataLoader(run.rows, batch_size=BATCH, sampler=RandomSampler(run.rows, num_samples=2 * ROWS))
    with pytest.raises(UnsupportedEvent, match="no known cost"):
        run.accountant.paid(longer, run.optimizer)
    with pytest.raises(UnsupportedEvent, match="rand_on_empty"):
        Run(bridge, book, rand_on_empty=True)
    with pytest.raises(UnsupportedEvent, match="AdaClipDPOptimizer is not covered"):
        Run(bridge, book, clipping="adaptive", target_unclipped_quantile=0.5, clipbound_learning_rate=0.2,
            max_clipbound=10.0, min_clipbound=0.1, unclipped_num_std=10.0)  # fmt: skip
    with pytest.raises(UnsupportedEvent, match="a step without noise"):
        Run(bridge, book, sigma=0.0).epoch()
    run.optimizer.attach_step_hook(PrivacyEngine().accountant.get_optimizer_hook_fn(0.1))
    with pytest.raises(InvalidParameter, match="another accountant"):
        run.accountant.paid(run.plain, run.optimizer)
    with pytest.raises(LedgerError, match="no ledger to pay from"):
        bridge.LedgerAccountant().paid(run.plain, run.optimizer)
    with pytest.raises(InvalidParameter, match="must be a Ledger"):
        bridge.LedgerAccountant("team.jsonl")
    assert len(book.entries) == 1


def test_opacus_finds_the_noise_by_our_cost_and_spends_nothing(bridge):
    from opacus.accountants.utils import get_noise_multiplier

    found = get_noise_multiplier(
        target_epsilon=1.0, target_delta=1e-5, sample_rate=0.1, steps=100, accountant="ledgerwood"
    )
    epsilon = lw.price(sampled(found, count=100)).epsilon(1e-5)
    assert 0.98 <= epsilon <= 1.0
    assert bridge.LedgerAccountant().get_epsilon(1e-5) == 0.0


def test_a_checkpoint_goes_on_with_the_ledger_that_paid(bridge, tmp_path):
    budget = lw.Budget(epsilon=2.0, delta=1e-5, adjacency=ADD_REMOVE)
    terms = {"budget": budget, "unit": lw.PrivacyUnit.ROW, "filter": lw.RenyiFilter(order=12.0)}
    with lw.Ledger.open(tmp_path / "team.jsonl", **terms) as book:
        run = Run(bridge, book, steps=15)
        run.epoch()
        run.engine.save_checkpoint(path=tmp_path / "run.pt", module=run.model)
        paid = run.engine.get_epsilon(1e-5)
    with lw.Ledger.open(tmp_path / "team.jsonl") as book:
        again = Run(bridge, book, steps=15)
        assert again.engine.get_epsilon(1e-5) == paid  # the ledger remembers without the checkpoint
        again.engine.load_checkpoint(path=tmp_path / "run.pt", module=again.model)
        assert len(again.accountant) == 10
        again.epoch()
        assert [entry.event.count for entry in book.entries[1:]] == [15, 15]  # what was not used is not given back
        assert again.engine.get_epsilon(1e-5) > paid
    other = Run(bridge, ledger())
    with pytest.raises(LedgerError, match="does not hold under purpose='a run'"):
        other.engine.load_checkpoint(path=tmp_path / "run.pt", module=other.model)
    with pytest.raises(ValueError, match="cannot be loaded"):
        other.accountant.load_state_dict({"history": [], "mechanism": "rdp"})


def test_ghost_clipping_takes_one_batch_a_step(bridge):
    import torch
    from opacus import PrivacyEngine

    run = Run(bridge, ledger())
    accountant = bridge.LedgerAccountant(book := ledger(), purpose="ghost")
    module = torch.nn.Linear(5, 2)
    engine = PrivacyEngine(accountant=accountant.register())
    model, optimizer, criterion, loader = engine.make_private(
        module=module, optimizer=torch.optim.SGD(module.parameters(), lr=0.1), criterion=torch.nn.CrossEntropyLoss(),
        data_loader=run.plain, noise_multiplier=SIGMA, max_grad_norm=1.0, grad_sample_mode="ghost",
    )  # fmt: skip
    batches = iter(accountant.paid(loader, optimizer))
    x, y, _ = next(batches)
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()
    for x, y, _ in (next(batches), next(batches)):
        criterion(model(x), y).backward()
    with pytest.raises(LedgerError, match="2 batches were drawn since the last step"):
        optimizer.step()
    assert len(book.entries) == 4
    batches = iter(accountant.paid(loader, optimizer))
    x, y, _ = next(batches)
    optimizer.signal_skip_step(do_skip=True)
    criterion(model(x), y).backward()
    optimizer.step()
    with pytest.raises(UnsupportedEvent, match="the last step was skipped"):
        next(batches)
    assert len(book.entries) == 5


@given(rate=st.floats(1e-8, 1.0))
def test_the_rate_covers_every_coin_of_the_sampler(rate):
    """A row is taken if k / 2^24 < float32(rate): count the k's exactly."""
    from ledgerwood.accounting.interop.sgd_histories import sampler_rate

    below = math.ceil(Fraction(float(np.float32(rate))) * 2**24)
    assert Fraction(min(below, 2**24), 2**24) <= Fraction(sampler_rate(rate)) <= min(1.0, rate * (1 + 2e-7) + 2**-24)


def test_the_coins_are_whole_multiples(bridge):
    import torch

    coins = torch.rand(100_000).double() * 2**24
    assert (coins == coins.round()).all()
    assert coins.max() < 2**24
    mask = torch.tensor([0.1], dtype=torch.float32) < 0.1
    assert not mask.any()  # the rate is compared as float32


def test_a_loop_of_ones_own_pays_before_each_step(bridge):
    accountant = bridge.LedgerAccountant(book := ledger(0.8), purpose="own loop")
    with pytest.raises(lw.BudgetExceeded):
        for _ in range(1000):
            accountant.step(noise_multiplier=SIGMA, sample_rate=0.1)
    assert len(accountant) == len(book.entries) - 1
    assert accountant.get_epsilon(1e-5) <= 0.8


def test_a_ledger_that_was_opened_at_a_checkpoint_does_not_know_what_a_run_cost(bridge, tmp_path):
    path = tmp_path / "x.jsonl"
    budget = lw.Budget(epsilon=5.0, delta=1e-5, adjacency=ADD_REMOVE)
    with lw.Ledger.open(path, budget=budget, unit=lw.PrivacyUnit.ROW, filter=lw.RenyiFilter(order=12.0)) as book:
        book.grant(sampled(count=50), purpose="a run")
        whole = bridge.LedgerAccountant(book, purpose="a run").get_epsilon(1e-5)
        book.checkpoint()
    assert whole > 0.0
    with lw.Ledger.open(path, from_checkpoint=True) as book:
        accountant = bridge.LedgerAccountant(book, purpose="a run")
        for read in (lambda: accountant.event, lambda: accountant.get_epsilon(1e-5), accountant.state_dict):
            with pytest.raises(LedgerError, match="open the whole ledger"):
                read()
