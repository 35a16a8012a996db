"""What the two sides of a session compute alike: releases of the library, names of sums and of coins."""

import hashlib

from ledgerwood.curator.places.messages import code_digest
from ledgerwood.federation.codec import kind_in
from ledgerwood.federation.messages import Begin, FederationTerms
from ledgerwood.secure_aggregation import SumContext


def coin_purpose(session: bytes, draw: int) -> bytes:
    """What the coins of a draw are sealed for."""
    return session + b" " + str(draw).encode()


def version() -> str:
    """The release of this library, with a digest of its code."""
    from ledgerwood import __version__

    return f"{__version__} ({code_digest()})"


def sum_context(terms: FederationTerms, round_: int, attempt: int, question: bytes) -> SumContext:
    """What all masks, shares and signatures of one attempt are bound to: the terms, and what exactly is asked.

    Args:
        terms: of the session.
        round_: the number of the question.
        attempt: at it.
        question: `Ask.digest` of it: a server that asks owners for different sums could tell one of them apart.
    """
    plan = hashlib.sha256(terms.digest + question).digest()
    return SumContext(session=terms.session, plan=plan, round=round_, attempt=attempt)


def is_setup(request: bytes) -> bool:
    """Returns whether a request begins a session: another process of the owner has to be handed it first."""
    return kind_in(request) == Begin.__name__
