"""Black-box audits of mechanisms. docs/explanation/black-box.md."""

from ledgerwood.verification.black_box.auditor import audit as audit
from ledgerwood.verification.black_box.result import Audit as Audit
