"""The terms of a session: how many clients, how many neighbours each, and how many must answer.

docs/explanation/secure-aggregation.md#graph has the proofs of the probabilities.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from ledgerwood import _validate
from ledgerwood.errors import InvalidParameter
from ledgerwood.secure_aggregation.context import digest, number_bytes

MOST_CLIENTS = 1 << 20
COMPLETE_UP_TO = 100
"""Up to so many clients `SumTerms.for_clients` takes the complete graph: its privacy needs no luck."""
PRIVACY_FAILURE = Fraction(1, 1 << 40)
"""Largest probability, over the public permutation, that colluders could unmask less than the sum of all honest."""
CORRECTNESS_FAILURE = Fraction(1, 1 << 30)
"""Largest probability, over the permutation, that the planned dropouts make a round fail."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SumRisks:
    """Upper bounds on what can go wrong by an unlucky permutation; exact 0 for a complete graph that suffices.

    Args:
        privacy: probability that a client's mask can be rebuilt by colluders, or that the honest survivors fall into
            two groups whose sums are told apart.
        correctness: probability that some client has fewer than `threshold` of its holders left.
    """

    privacy: Fraction
    correctness: Fraction


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SumTerms:
    """What all parties agree on before a session.

    Args:
        n_clients: clients of the session, numbered 0 .. n_clients - 1.
        degree: neighbours of each client: n_clients - 1, or an even number below.
        threshold: how many of a client and its neighbours must be left at each step, and must open their shares. It is
            above half of them, and above two thirds if `active`.
        active: secure against a server that deviates from the protocol, given a registry of signed keys. The graph is
            complete.

    Raises:
        InvalidParameter: other numbers than these.
    """

    n_clients: int
    degree: int
    threshold: int
    min_survivors: int = 0
    active: bool = False

    def __post_init__(self) -> None:
        n = _validate.count("n_clients", self.n_clients, "clients", minimum=2)
        if n > MOST_CLIENTS:
            raise _validate.fail("n_clients", n, f"<= {MOST_CLIENTS}", "clients")
        degree = _validate.count("degree", self.degree, "neighbours")
        if degree != n - 1 and (degree > n - 2 or degree % 2):
            raise _validate.fail("degree", degree, f"{n - 1}, or an even number below it", "neighbours")
        active = _validate.flag("active", self.active)
        if active and degree != n - 1:
            raise _validate.fail("degree", degree, f"{n - 1}: an active session has a complete graph", "neighbours")
        threshold = _validate.count("threshold", self.threshold, "clients")
        above = 2 * n // 3 if active else (degree + 1) // 2
        if not above < threshold <= degree + 1:
            raise _validate.fail("threshold", threshold, f"in {above + 1} .. {degree + 1}", "clients")
        least = _validate.count("min_survivors", self.min_survivors or threshold, "clients")
        if not threshold <= least <= n:
            raise _validate.fail("min_survivors", least, f"in {threshold} .. {n}", "clients")
        for name, value in (("n_clients", n), ("degree", degree), ("threshold", threshold), ("min_survivors", least)):
            object.__setattr__(self, name, value)

    @classmethod
    def for_clients(
        cls, n_clients: int, *, colluding: float = 0.0, dropouts: float = 0.0, active: bool = False
    ) -> "SumTerms":
        """Returns the terms of a complete graph up to 100 clients, and above of the smallest degree that is proven.

        Proven: failure of privacy has probability at most 2**-40, and of correctness at most 2**-30 in each round. A
        complete graph has neither. Thresholds are the smallest that are allowed: they tolerate most dropouts.

        Args:
            n_clients: clients of the session.
            colluding: fraction of them that may tell the server all they know; rounded down to whole clients.
            dropouts: fraction of them that may drop out in a round; rounded down to whole clients.
            active: see the class.

        Raises:
            InvalidParameter: fractions for which no threshold is both above what colluders hold and within reach of
                those who stay.
        """
        n = _validate.count("n_clients", n_clients, "clients", minimum=2)
        corrupt, lost = (_members(name, value, n) for name, value in (("colluding", colluding), ("dropouts", dropouts)))
        if not _validate.flag("active", active) and n > COMPLETE_UP_TO:
            for degree in range(2, n - 1, 2):
                found = _ring_terms(n, degree, corrupt, lost)
                if found is not None:
                    return found
        above = max(2 * n // 3, (n + corrupt) // 2) if active else max(n // 2, corrupt)
        if above + 1 > n - lost:
            rule = "two thirds, and than half of all and the colluders" if active else "half, and than the colluders"
            raise InvalidParameter(
                f"dropouts={dropouts!r} of {n} clients leave {n - lost} who answer, and with colluding={colluding!r} "
                f"{above + 1} must (unit: clients): more than {rule}. Plan for fewer of either, or ask more clients"
            )
        return cls(n_clients=n, degree=n - 1, threshold=above + 1, active=active)

    @property
    def complete(self) -> bool:
        """Whether every client shares a mask with every other."""
        return self.degree == self.n_clients - 1

    def risks(self, *, colluding: float = 0.0, dropouts: float = 0.0) -> SumRisks:
        """Bounds the probabilities of failure with these fractions of clients, over the public permutation.

        Hypergeometric tails in exact arithmetic, summed over clients. Colluders and dropouts must not depend on the
        permutation. `privacy` is of one set of dropouts: over R rounds with different ones it is at most R times that.
        """
        n = self.n_clients
        corrupt, lost = (_members(name, value, n) for name, value in (("colluding", colluding), ("dropouts", dropouts)))
        if self.complete:
            needed = n + corrupt < 2 * self.threshold if self.active else corrupt < self.threshold
            return SumRisks(privacy=Fraction(not needed), correctness=Fraction(self.threshold > n - lost))
        return SumRisks(
            privacy=_exposed(n, self.degree, self.threshold, corrupt) + _split(n, self.degree, corrupt + lost),
            correctness=_short(n, self.degree, self.threshold, lost),
        )

    def digest(self) -> bytes:
        """Returns 32 bytes that no other terms have."""
        return digest(
            b"terms", number_bytes(self.n_clients, self.degree, self.threshold, self.min_survivors, int(self.active))
        )


def _members(name: str, value: object, n: int) -> int:
    fraction = _validate.non_negative(name, value, "fraction of clients")
    if fraction >= 1.0:
        raise _validate.fail(name, value, "< 1", "fraction of clients")
    return math.floor(Fraction(fraction).limit_denominator(1 << 32) * n)  # .3 of 10 clients are 3


def _ring_terms(n: int, degree: int, corrupt: int, lost: int) -> SumTerms | None:
    """The smallest threshold of this degree that keeps privacy, if it keeps correctness, too."""
    split = _split(n, degree, corrupt + lost)
    if split > PRIVACY_FAILURE:
        return None
    for threshold in range((degree + 1) // 2 + 1, degree + 2):
        if _exposed(n, degree, threshold, corrupt) + split <= PRIVACY_FAILURE:
            fits = _short(n, degree, threshold, lost) <= CORRECTNESS_FAILURE
            least = max(threshold, n - lost)
            return SumTerms(n_clients=n, degree=degree, threshold=threshold, min_survivors=least) if fits else None
    return None


def _tail(population: int, marked: int, drawn: int, least: int) -> Fraction:
    """P(at least `least` marked among `drawn` of a population without replacement)."""
    hits = sum(
        math.comb(marked, found) * math.comb(population - marked, drawn - found)
        for found in range(max(least, 0), min(marked, drawn) + 1)
    )
    return Fraction(hits, math.comb(population, drawn))


def _exposed(n: int, degree: int, threshold: int, corrupt: int) -> Fraction:
    """Some honest client has `threshold` colluders or more among its neighbours: its self-mask could be rebuilt."""
    return (n - corrupt) * _tail(n - 1, corrupt, degree, threshold)


def _split(n: int, degree: int, gone: int) -> Fraction:
    """Two disjoint stretches of degree / 2 places each have no honest survivor: only then can a ring fall apart."""
    if gone < degree:
        return Fraction(0)
    return Fraction(math.comb(n, 2) * math.comb(gone, degree), math.comb(n, degree))


def _short(n: int, degree: int, threshold: int, lost: int) -> Fraction:
    """Some client has fewer than `threshold` left of itself and its neighbours."""
    spare = degree + 1 - threshold  # so many holders may be missing
    stayed = (n - lost) * _tail(n - 1, lost, degree, spare + 1)
    return stayed + (lost * _tail(n - 1, lost - 1, degree, spare) if lost else 0)
