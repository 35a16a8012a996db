"""Secure aggregation: a server learns the sum of its clients' integers modulo 2**64, and nothing else of them.

The protocol is pure: no messages are sent, no files written, no rows seen, and no randomness is drawn here. Whoever
calls passes randomness in as bytes. docs/explanation/secure-aggregation.md has guarantees, messages and proofs.
"""

from ledgerwood.secure_aggregation.answers import AnswerBook as AnswerBook
from ledgerwood.secure_aggregation.answers import AnswerKind as AnswerKind
from ledgerwood.secure_aggregation.answers import SumAnswer as SumAnswer
from ledgerwood.secure_aggregation.answers import members_digest as members_digest
from ledgerwood.secure_aggregation.client import RANDOM_BYTES as RANDOM_BYTES
from ledgerwood.secure_aggregation.client import ClientSums as ClientSums
from ledgerwood.secure_aggregation.client import Upload as Upload
from ledgerwood.secure_aggregation.context import SumContext as SumContext
from ledgerwood.secure_aggregation.keys import SessionKeys as SessionKeys
from ledgerwood.secure_aggregation.roster import ClientRegistry as ClientRegistry
from ledgerwood.secure_aggregation.roster import Roster as Roster
from ledgerwood.secure_aggregation.server import ServerSum as ServerSum
from ledgerwood.secure_aggregation.terms import SumRisks as SumRisks
from ledgerwood.secure_aggregation.terms import SumTerms as SumTerms
