"""Other libraries' descriptions of a release, both ways: dp-accounting's event trees and autodp's mechanisms.

Nothing imports this package but its user, and it imports a peer only when a conversion needs it.
"""

from ledgerwood.accounting.interop.autodp import from_autodp as from_autodp
from ledgerwood.accounting.interop.autodp import to_autodp as to_autodp
from ledgerwood.accounting.interop.dp_accounting import from_dp_event as from_dp_event
from ledgerwood.accounting.interop.dp_accounting import to_dp_event as to_dp_event
from ledgerwood.accounting.interop.dp_accounting import to_neighboring_relation as to_neighboring_relation
