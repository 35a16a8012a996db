"""The ledger: the record of granted plans, of draws from them, and of the total."""

from ledgerwood.accounting.ledger.book import Ledger as Ledger
from ledgerwood.accounting.ledger.entries import CheckpointEntry as CheckpointEntry
from ledgerwood.accounting.ledger.entries import DrawEntry as DrawEntry
from ledgerwood.accounting.ledger.entries import GrantEntry as GrantEntry
from ledgerwood.accounting.ledger.entries import HeldGrant as HeldGrant
from ledgerwood.accounting.ledger.entries import LedgerAbout as LedgerAbout
from ledgerwood.accounting.ledger.entries import MigrationEntry as MigrationEntry
from ledgerwood.accounting.ledger.entries import OpenEntry as OpenEntry
from ledgerwood.accounting.ledger.entries import Randomness as Randomness
from ledgerwood.accounting.ledger.entries import SpentSums as SpentSums
from ledgerwood.accounting.ledger.grants import Grant as Grant
from ledgerwood.accounting.ledger.record import LedgerRecord as LedgerRecord
from ledgerwood.accounting.ledger.record import Receipt as Receipt
