"""A statistic from outside, as owners of rows are asked for it: what is declared of it, without its function.

docs/explanation/federation.md#federation-statistics.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from ledgerwood.curator.queries.declared import DeclaredStatistic
from ledgerwood.errors import RoundViolation

_OWN = ("function", "rehearse", "constants")
"""Fields of a `DeclaredStatistic` that are not compared: what each side has, and what the server tells."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamedStatistic:
    """What a `DeclaredStatistic` declares. Owners have the function, and are told the constants.

    Args:
        declared: every field but the function, by name.
        constants: public values by name, which the function is called with.
    """

    declared: tuple[tuple[str, Any], ...]
    constants: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, statistic: DeclaredStatistic) -> Self:
        """What the statistic declares."""
        declared = {
            field.name: getattr(statistic, field.name)
            for field in dataclasses.fields(statistic)
            if field.name not in _OWN
        }
        stated = sorted(statistic.sensitivities.items(), key=lambda item: item[0].value)
        declared["sensitivities"] = tuple(stated)
        return cls(declared=tuple(declared.items()), constants=tuple(sorted(statistic.constants.items())))

    @property
    def name(self) -> str:
        """Of the statistic."""
        return str(dict(self.declared).get("name"))

    def require_among(self, known: Iterable["NamedStatistic"], where: str) -> None:
        """Refuse a statistic that is not on a list as it is declared here.

        Args:
            known: of the list, with constants of the same kinds.
            where: the list's name, for the error.

        Raises:
            RoundViolation: it names the statistic, and what differs.
        """
        found = [each for each in known if each.name == self.name]
        if not found:
            raise RoundViolation(f"{self.name!r} is a statistic from outside, and is not on {where}")
        differing = found[0]._difference(self)
        if differing:
            raise RoundViolation(f"{self.name!r} is on {where} with another {differing}: agree on one release of it")

    def _difference(self, other: "NamedStatistic") -> str:
        """What the other one declares differently; empty if nothing."""
        own, others = dict(self.declared), dict(other.declared)
        if own.keys() != others.keys():
            return "set of fields"
        for name, value in own.items():
            if value != others[name]:
                return name
        kinds = [{name: _kind(value) for name, value in each.constants} for each in (self, other)]
        return "" if kinds[0] == kinds[1] else "kind of constants"


def _kind(value: Any) -> tuple[Any, ...]:
    return (type(value), value.dtype.str, value.shape) if isinstance(value, np.ndarray) else (type(value),)


def trusted(named: NamedStatistic, own: Iterable[DeclaredStatistic], where: str) -> DeclaredStatistic:
    """The statistic of an owner's list that a server names, with the server's constants.

    Args:
        named: by the server.
        own: the owner's list.
        where: the list's name, for the error.

    Raises:
        RoundViolation: it is not on the list as the server declares it.
    """
    listed = {each.name: each for each in own}
    named.require_among(map(NamedStatistic.of, listed.values()), where)
    return dataclasses.replace(listed[named.name], constants=dict(named.constants))
