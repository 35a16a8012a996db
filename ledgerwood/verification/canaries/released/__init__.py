"""Audits of whatever a fitted model shows: many fits with and without one row, and the black-box auditor on top.

docs/explanation/canaries.md#released-values.
"""

from ledgerwood import _extras

try:
    from ledgerwood.verification.canaries.released.auditing import audit_released as audit_released
    from ledgerwood.verification.canaries.released.values import Released as Released
except ModuleNotFoundError as _missing:  # the base install: each name says which extra it needs
    __getattr__ = _extras.absent(__name__, _missing)

__all__ = _extras.own_names(vars())  # noqa: PLE0605
