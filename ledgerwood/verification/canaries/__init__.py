"""Audits of trained models: canaries that fair coins include. docs/explanation/canaries.md."""

from ledgerwood import _extras

try:
    from ledgerwood.verification.canaries.audit import audit_model as audit_model
    from ledgerwood.verification.canaries.result import ModelAudit as ModelAudit
    from ledgerwood.verification.canaries.result import StructureCheck as StructureCheck
    from ledgerwood.verification.canaries.seeing import structure_depends_on_data as structure_depends_on_data
except ModuleNotFoundError as _missing:  # the base install: each name says which extra it needs
    __getattr__ = _extras.absent(__name__, _missing)

__all__ = _extras.own_names(vars())  # noqa: PLE0605
