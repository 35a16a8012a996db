"""Displays: pictures of privacy costs, ledgers, models and audits, on matplotlib (extra `plot`).

Values are computed without matplotlib, which is imported when something is drawn. Names are imported when they are
first used: those of models and audits need packages that the base install does not have.
"""

from typing import TYPE_CHECKING

from ledgerwood import _extras

if TYPE_CHECKING:
    from ledgerwood.displays.audits import AttackDisplay as AttackDisplay
    from ledgerwood.displays.audits import AuditDisplay as AuditDisplay
    from ledgerwood.displays.audits import DrawnBound as DrawnBound
    from ledgerwood.displays.base import AbstractDisplay as AbstractDisplay
    from ledgerwood.displays.ledger import BudgetDisplay as BudgetDisplay
    from ledgerwood.displays.ledger import GrantStep as GrantStep
    from ledgerwood.displays.models import ContributionDisplay as ContributionDisplay
    from ledgerwood.displays.models import ExplanationDisplay as ExplanationDisplay
    from ledgerwood.displays.models import ImportanceDisplay as ImportanceDisplay
    from ledgerwood.displays.models import PartialDependenceDisplay as PartialDependenceDisplay
    from ledgerwood.displays.models import TreeDisplay as TreeDisplay
    from ledgerwood.displays.price import AttackerCurve as AttackerCurve
    from ledgerwood.displays.price import PrivacyProfileDisplay as PrivacyProfileDisplay
    from ledgerwood.displays.price import ProfileCurve as ProfileCurve
    from ledgerwood.displays.price import TradeOffDisplay as TradeOffDisplay
    from ledgerwood.displays.utility import UtilityCurve as UtilityCurve
    from ledgerwood.displays.utility import UtilityDisplay as UtilityDisplay

_LATE = {
    "AbstractDisplay": "base",
    "AttackDisplay": "audits",
    "AttackerCurve": "price",
    "AuditDisplay": "audits",
    "BudgetDisplay": "ledger",
    "ContributionDisplay": "models",
    "DrawnBound": "audits",
    "ExplanationDisplay": "models",
    "GrantStep": "ledger",
    "ImportanceDisplay": "models",
    "PartialDependenceDisplay": "models",
    "PrivacyProfileDisplay": "price",
    "ProfileCurve": "price",
    "TradeOffDisplay": "price",
    "TreeDisplay": "models",
    "UtilityCurve": "utility",
    "UtilityDisplay": "utility",
}
"""Public names, and the module that has them."""
_HOMES = {name: f"{__name__}.{module}" for name, module in _LATE.items()}

_NAMES = sorted(_LATE)


def __getattr__(name: str) -> object:
    """Names that arrive late (PEP 562); `__all__` has those that the installed packages allow."""
    if name == "__all__":
        return _extras.obtainable(__getattr__, _NAMES)
    return _extras.late(__name__, name, _HOMES)


def __dir__() -> list[str]:
    return sorted(_NAMES)
