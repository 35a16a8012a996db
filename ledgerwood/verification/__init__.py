"""Verification: ledgers re-added by other code."""

from ledgerwood.verification.ledgers import LedgerReport as LedgerReport
from ledgerwood.verification.ledgers import verify_ledger as verify_ledger
