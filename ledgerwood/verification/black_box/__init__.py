"""Audits of mechanisms that can only be called. docs/explanation/black-box.md."""

from ledgerwood.verification.black_box.auditor import audit as audit
from ledgerwood.verification.black_box.result import Audit as Audit
