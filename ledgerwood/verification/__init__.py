"""Verification: ledgers re-added by other code, and specimens of published errors."""

from ledgerwood.verification import errata as errata
from ledgerwood.verification import poisoning as poisoning
from ledgerwood.verification.ledgers import LedgerReport as LedgerReport
from ledgerwood.verification.ledgers import sign_ledger as sign_ledger
from ledgerwood.verification.ledgers import verify_ledger as verify_ledger
