"""Verification: ledgers re-added by other code, audits of models, and specimens of published errors."""

import importlib
from typing import TYPE_CHECKING

from ledgerwood.verification import errata as errata
from ledgerwood.verification import poisoning as poisoning
from ledgerwood.verification.ledgers import LedgerReport as LedgerReport
from ledgerwood.verification.ledgers import sign_ledger as sign_ledger
from ledgerwood.verification.ledgers import verify_ledger as verify_ledger

if TYPE_CHECKING:
    from ledgerwood.verification.canaries import ModelAudit as ModelAudit
    from ledgerwood.verification.canaries import audit_model as audit_model
    from ledgerwood.verification.canaries import structure_depends_on_data as structure_depends_on_data

_LATE = {
    "ModelAudit": "ledgerwood.verification.canaries",
    "audit_model": "ledgerwood.verification.canaries",
    "structure_depends_on_data": "ledgerwood.verification.canaries",
}
"""What needs the trainers, and so numba and scikit-learn."""


def __getattr__(name: str) -> object:
    """Names that arrive late (PEP 562)."""
    if name in _LATE:
        return getattr(importlib.import_module(_LATE[name]), name)
    raise AttributeError(f"module 'ledgerwood.verification' has no attribute {name!r}")
