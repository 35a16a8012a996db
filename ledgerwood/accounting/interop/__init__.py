"""Other libraries' descriptions of a release: event trees, mechanisms, measurements, and accountants' histories.

Nothing imports this package but its user, and it imports a peer only when a conversion needs it.
"""

from ledgerwood.accounting.interop.autodp import from_autodp as from_autodp
from ledgerwood.accounting.interop.autodp import to_autodp as to_autodp
from ledgerwood.accounting.interop.diffprivlib import from_diffprivlib as from_diffprivlib
from ledgerwood.accounting.interop.dp_accounting import from_dp_event as from_dp_event
from ledgerwood.accounting.interop.dp_accounting import to_dp_event as to_dp_event
from ledgerwood.accounting.interop.dp_accounting import to_neighboring_relation as to_neighboring_relation
from ledgerwood.accounting.interop.opendp import from_opendp as from_opendp
from ledgerwood.accounting.interop.sgd_histories import TFPrivacyStatement as TFPrivacyStatement
from ledgerwood.accounting.interop.sgd_histories import from_sgd_history as from_sgd_history
from ledgerwood.accounting.interop.sgd_histories import read_tf_privacy_statement as read_tf_privacy_statement
