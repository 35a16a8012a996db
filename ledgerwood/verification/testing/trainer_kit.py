"""`check_trainer`: one call that holds a trainer to what every trainer promises, on synthetic rows.

docs/how-to/write-a-trainer.md shows it; docs/explanation/replay.md#trainer-kit says what it can show, and what not.
"""

import dataclasses

from ledgerwood import _validate
from ledgerwood.errors import InvalidParameter
from ledgerwood.trainers.base.systems import system
from ledgerwood.trainers.base.trainer import AbstractTrainer
from ledgerwood.verification.testing.kit_reports import Checks, KitReport
from ledgerwood.verification.testing.trainer_checks import TrainerKit


def check_trainer(trainer: AbstractTrainer | str, *, n_rows: int = 40, alpha: float = 1e-6, seed: int = 0) -> KitReport:
    """Hold a trainer to what every trainer promises: fit copies of it on synthetic rows, and on neighbours of them.

    No row of yours is used. Give a small trainer: it is fitted about fifty times.

    Args:
        trainer: an unfitted estimator; the parameters are kept, but for schema and random_state. Where it declares a
            schema, rows of that schema are made, else of the kit's own. Or the name of a system, as its entry point
            has it: each estimator of it is checked with its default parameters.
        n_rows: synthetic rows, at least 10.
        alpha: probability that noise which is right is rejected.
        seed: of rows and fits.

    Returns:
        Each check by its name, with its verdict. `report.ok` is True only if all of them could be made and none found
        anything; a report that is ok is no proof.

    Raises:
        InvalidParameter: no trainer.
    """
    n_rows = _validate.count("n_rows", n_rows, "rows", minimum=10)
    if isinstance(trainer, str):
        found = [(kind.__name__, check_trainer(kind(), n_rows=n_rows, alpha=alpha, seed=seed))
                 for kind in system(trainer).estimators]  # fmt: skip
        checks = Checks()
        for name, report in found:
            checks.made += [dataclasses.replace(check, name=f"{name}: {check.name}") for check in report.checks]
        return KitReport(of=trainer, checks=tuple(checks.made))
    if not isinstance(trainer, AbstractTrainer):
        raise InvalidParameter(
            f"trainer={trainer!r} must be an estimator that subclasses ledgerwood.trainers.AbstractTrainer, or the "
            "name of a system (unit: trainer)"
        )
    return TrainerKit.of(trainer, n_rows, alpha, seed).report()


def assert_trainer(
    trainer: AbstractTrainer | str, *, n_rows: int = 40, alpha: float = 1e-6, seed: int = 0
) -> KitReport:
    """Assert, in a test, that `check_trainer` finds nothing and could look at everything.

    Raises:
        AssertionError: it names the checks that failed, or could not be made, and says what was found.
        InvalidParameter: no trainer.
    """
    __tracebackhide__ = True
    report = check_trainer(trainer, n_rows=n_rows, alpha=alpha, seed=seed)
    report.require_ok()
    return report
