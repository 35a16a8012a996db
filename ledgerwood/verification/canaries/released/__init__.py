"""Audits of whatever a fitted model shows: many fits with and without one row, and the black-box auditor on top.

docs/explanation/canaries.md#released-values.
"""

from ledgerwood.verification.canaries.released.auditing import audit_released as audit_released
from ledgerwood.verification.canaries.released.values import Released as Released
