"""Verification: audits, replays, sensitivity checks, a second implementation for ledgers, published errors.

Names are imported when they are first used: some need packages that the base install does not have.
"""

from typing import TYPE_CHECKING

from ledgerwood import _extras

if TYPE_CHECKING:
    from ledgerwood.verification import errata as errata
    from ledgerwood.verification.attacks import membership as membership
    from ledgerwood.verification.attacks import poisoning as poisoning
    from ledgerwood.verification.attacks.membership import AttackReading as AttackReading
    from ledgerwood.verification.attacks.membership import attack_model as attack_model
    from ledgerwood.verification.black_box import Audit as Audit
    from ledgerwood.verification.black_box import audit as audit
    from ledgerwood.verification.canaries import ModelAudit as ModelAudit
    from ledgerwood.verification.canaries import audit_model as audit_model
    from ledgerwood.verification.canaries import structure_depends_on_data as structure_depends_on_data
    from ledgerwood.verification.ledgers.federations import ClientVerdict as ClientVerdict
    from ledgerwood.verification.ledgers.federations import FederationReport as FederationReport
    from ledgerwood.verification.ledgers.federations import SessionVerdict as SessionVerdict
    from ledgerwood.verification.ledgers.federations import verify_federation as verify_federation
    from ledgerwood.verification.ledgers.filters import GrantVerdict as GrantVerdict
    from ledgerwood.verification.ledgers.reports import LedgerFailure as LedgerFailure
    from ledgerwood.verification.ledgers.reports import LedgerReport as LedgerReport
    from ledgerwood.verification.ledgers.verifying import sign_ledger as sign_ledger
    from ledgerwood.verification.ledgers.verifying import verify_ledger as verify_ledger
    from ledgerwood.verification.noise.law import NoiseCheck as NoiseCheck
    from ledgerwood.verification.noise.law import check_fit_noise as check_fit_noise
    from ledgerwood.verification.noise.law import check_noise as check_noise
    from ledgerwood.verification.replaying.replaying import replay as replay
    from ledgerwood.verification.replaying.session import Call as Call
    from ledgerwood.verification.replaying.session import Replay as Replay
    from ledgerwood.verification.replaying.session import Violation as Violation
    from ledgerwood.verification.sensitivity.checking import SensitivityReport as SensitivityReport
    from ledgerwood.verification.sensitivity.checking import assert_sensitivity as assert_sensitivity
    from ledgerwood.verification.sensitivity.checking import check_sensitivity as check_sensitivity
    from ledgerwood.verification.sensitivity.domains import Neighbour as Neighbour
    from ledgerwood.verification.sensitivity.domains import added as added
    from ledgerwood.verification.sensitivity.domains import duplicated as duplicated
    from ledgerwood.verification.sensitivity.domains import permuted as permuted
    from ledgerwood.verification.sensitivity.domains import removed as removed
    from ledgerwood.verification.sensitivity.domains import replaced as replaced
    from ledgerwood.verification.sensitivity.domains import worst_rows as worst_rows
    from ledgerwood.verification.sensitivity.matching import neighbour_of as neighbour_of
    from ledgerwood.verification.sensitivity.strategies import neighbours as neighbours
    from ledgerwood.verification.testing.assertions import assert_dp as assert_dp
    from ledgerwood.verification.testing.kit_reports import KitCheck as KitCheck
    from ledgerwood.verification.testing.kit_reports import KitReport as KitReport
    from ledgerwood.verification.testing.statistic_kit import assert_statistic as assert_statistic
    from ledgerwood.verification.testing.statistic_kit import check_statistic as check_statistic
    from ledgerwood.verification.testing.trainer_kit import assert_trainer as assert_trainer
    from ledgerwood.verification.testing.trainer_kit import check_trainer as check_trainer
    from ledgerwood.verification.testing.tripwires import RowsRead as RowsRead
    from ledgerwood.verification.testing.tripwires import tripwire as tripwire

_LATE = {
    "AttackReading": "attacks.membership",
    "Audit": "black_box",
    "Call": "replaying.session",
    "ClientVerdict": "ledgers.federations",
    "FederationReport": "ledgers.federations",
    "GrantVerdict": "ledgers.filters",
    "KitCheck": "testing.kit_reports",
    "KitReport": "testing.kit_reports",
    "LedgerFailure": "ledgers.reports",
    "LedgerReport": "ledgers.reports",
    "ModelAudit": "canaries",
    "Neighbour": "sensitivity.domains",
    "NoiseCheck": "noise.law",
    "Replay": "replaying.session",
    "RowsRead": "testing.tripwires",
    "SensitivityReport": "sensitivity.checking",
    "SessionVerdict": "ledgers.federations",
    "Violation": "replaying.session",
    "added": "sensitivity.domains",
    "assert_dp": "testing.assertions",
    "assert_sensitivity": "sensitivity.checking",
    "assert_statistic": "testing.statistic_kit",
    "assert_trainer": "testing.trainer_kit",
    "attack_model": "attacks.membership",
    "audit": "black_box",
    "audit_model": "canaries",
    "check_fit_noise": "noise.law",
    "check_noise": "noise.law",
    "check_sensitivity": "sensitivity.checking",
    "check_statistic": "testing.statistic_kit",
    "check_trainer": "testing.trainer_kit",
    "duplicated": "sensitivity.domains",
    "neighbour_of": "sensitivity.matching",
    "neighbours": "sensitivity.strategies",
    "permuted": "sensitivity.domains",
    "removed": "sensitivity.domains",
    "replaced": "sensitivity.domains",
    "replay": "replaying.replaying",
    "sign_ledger": "ledgers.verifying",
    "structure_depends_on_data": "canaries",
    "tripwire": "testing.tripwires",
    "verify_federation": "ledgers.federations",
    "verify_ledger": "ledgers.verifying",
    "worst_rows": "sensitivity.domains",
}
"""Public names, and the module that has them."""
_MODULES = {"errata": "errata", "membership": "attacks.membership", "poisoning": "attacks.poisoning"}
"""Public modules."""
_HOMES = {
    **{name: f"{__name__}.{module}" for name, module in _LATE.items()},
    **{name: f"{__name__}.{module}" for name, module in _MODULES.items()},
}

_NAMES = sorted([*_LATE, *_MODULES])


def __getattr__(name: str) -> object:
    """Names that arrive late (PEP 562); `__all__` has those that the installed packages allow."""
    if name == "__all__":
        return _extras.obtainable(__getattr__, _NAMES)
    return _extras.late(__name__, name, _HOMES)


def __dir__() -> list[str]:
    return sorted(_NAMES)
