"""Verification: replays, audits, sensitivities that are searched for a breach, ledgers re-added, published errors.

Each name arrives when it is first used: some need packages that the base install does not have.
"""

from typing import TYPE_CHECKING

from ledgerwood import _extras

if TYPE_CHECKING:
    from ledgerwood.verification import errata as errata
    from ledgerwood.verification import membership as membership
    from ledgerwood.verification import noise_law as noise_law
    from ledgerwood.verification import poisoning as poisoning
    from ledgerwood.verification._assertions import assert_dp as assert_dp
    from ledgerwood.verification._matching import neighbour_of as neighbour_of
    from ledgerwood.verification._neighbour_rows import Neighbour as Neighbour
    from ledgerwood.verification._neighbour_rows import added as added
    from ledgerwood.verification._neighbour_rows import duplicated as duplicated
    from ledgerwood.verification._neighbour_rows import permuted as permuted
    from ledgerwood.verification._neighbour_rows import removed as removed
    from ledgerwood.verification._neighbour_rows import replaced as replaced
    from ledgerwood.verification._neighbour_rows import worst_rows as worst_rows
    from ledgerwood.verification._replay import replay as replay
    from ledgerwood.verification._sensitivity import SensitivityReport as SensitivityReport
    from ledgerwood.verification._sensitivity import assert_sensitivity as assert_sensitivity
    from ledgerwood.verification._sensitivity import check_sensitivity as check_sensitivity
    from ledgerwood.verification._session import Call as Call
    from ledgerwood.verification._session import Replay as Replay
    from ledgerwood.verification._session import Violation as Violation
    from ledgerwood.verification._tripwire import RowsRead as RowsRead
    from ledgerwood.verification._tripwire import tripwire as tripwire
    from ledgerwood.verification._verdicts import GrantVerdict as GrantVerdict
    from ledgerwood.verification.black_box import Audit as Audit
    from ledgerwood.verification.black_box import audit as audit
    from ledgerwood.verification.canaries import ModelAudit as ModelAudit
    from ledgerwood.verification.canaries import audit_model as audit_model
    from ledgerwood.verification.canaries import structure_depends_on_data as structure_depends_on_data
    from ledgerwood.verification.ledgers import LedgerReport as LedgerReport
    from ledgerwood.verification.ledgers import sign_ledger as sign_ledger
    from ledgerwood.verification.ledgers import verify_ledger as verify_ledger
    from ledgerwood.verification.membership import AttackReading as AttackReading
    from ledgerwood.verification.membership import attack_model as attack_model
    from ledgerwood.verification.noise_law import NoiseCheck as NoiseCheck
    from ledgerwood.verification.noise_law import check_fit_noise as check_fit_noise
    from ledgerwood.verification.noise_law import check_noise as check_noise
    from ledgerwood.verification.strategies import neighbours as neighbours

_LATE = {
    "AttackReading": "membership",
    "Audit": "black_box",
    "Call": "_session",
    "GrantVerdict": "_verdicts",
    "LedgerReport": "ledgers",
    "ModelAudit": "canaries",
    "Neighbour": "_neighbour_rows",
    "NoiseCheck": "noise_law",
    "Replay": "_session",
    "RowsRead": "_tripwire",
    "SensitivityReport": "_sensitivity",
    "Violation": "_session",
    "added": "_neighbour_rows",
    "assert_dp": "_assertions",
    "assert_sensitivity": "_sensitivity",
    "attack_model": "membership",
    "audit": "black_box",
    "audit_model": "canaries",
    "check_fit_noise": "noise_law",
    "check_noise": "noise_law",
    "check_sensitivity": "_sensitivity",
    "duplicated": "_neighbour_rows",
    "neighbour_of": "_matching",
    "neighbours": "strategies",
    "permuted": "_neighbour_rows",
    "removed": "_neighbour_rows",
    "replaced": "_neighbour_rows",
    "replay": "_replay",
    "sign_ledger": "ledgers",
    "structure_depends_on_data": "canaries",
    "tripwire": "_tripwire",
    "verify_ledger": "ledgers",
    "worst_rows": "_neighbour_rows",
}
"""Public names, and the module of this package that has them."""
_MODULES = ("errata", "ledgers", "membership", "noise_law", "poisoning")
_HOMES = {
    **{name: f"{__name__}.{module}" for name, module in _LATE.items()},
    **{name: f"{__name__}.{name}" for name in _MODULES},
}

_NAMES = [
    "AttackReading",
    "Audit",
    "Call",
    "GrantVerdict",
    "LedgerReport",
    "ModelAudit",
    "Neighbour",
    "NoiseCheck",
    "Replay",
    "RowsRead",
    "SensitivityReport",
    "Violation",
    "added",
    "assert_dp",
    "assert_sensitivity",
    "attack_model",
    "audit",
    "audit_model",
    "check_fit_noise",
    "check_noise",
    "check_sensitivity",
    "duplicated",
    "errata",
    "membership",
    "neighbour_of",
    "neighbours",
    "noise_law",
    "permuted",
    "poisoning",
    "removed",
    "replaced",
    "replay",
    "sign_ledger",
    "structure_depends_on_data",
    "tripwire",
    "verify_ledger",
    "worst_rows",
]


def __getattr__(name: str) -> object:
    """Names that arrive late (PEP 562); `__all__` has those that the installed packages allow."""
    if name == "__all__":
        return _extras.obtainable(__getattr__, _NAMES)
    return _extras.late(__name__, name, _HOMES)


def __dir__() -> list[str]:
    return sorted(_NAMES)
