"""The client's side: what it sends in each step, as functions of what it is asked and of its keys.

It keeps nothing between messages but keys, so that each message may be answered by a fresh process. Before each
answer its caller records `ClientSums.answer` in the client's `AnswerBook`; these methods check everything that can be
checked without it. docs/explanation/secure-aggregation.md#messages.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeGuard, final

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.errors import SumRefused
from ledgerwood.secure_aggregation.answers import AnswerKind, SumAnswer, members_digest
from ledgerwood.secure_aggregation.context import SumContext, endorsement, exact_bytes, framed, has_bytes, listed
from ledgerwood.secure_aggregation.keys import (
    SIGNATURE_BYTES,
    SessionKeys,
    expanded,
    mask_key,
    sealing_key,
    self_mask_key,
    verified,
)
from ledgerwood.secure_aggregation.masks import Masker, pair_sign
from ledgerwood.secure_aggregation.roster import ClientRegistry, Roster
from ledgerwood.secure_aggregation.sealing import NONCE_BYTES, SEALED_BYTES, sealed, unsealed
from ledgerwood.secure_aggregation.shares import ELEMENT_BYTES, WIDE_BYTES, element, split
from ledgerwood.secure_aggregation.terms import SumTerms

RANDOM_BYTES = 32
"""Fresh random bytes that one upload needs."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Upload:
    """A masked vector, and the sealed shares of its self-mask.

    Args:
        values: the client's integers plus its masks, modulo 2**64: uint64 (length,).
        shares: a sealed share of 44 bytes for each live holder: the client's live neighbours and itself.
    """

    values: NDArray[np.uint64]
    shares: Mapping[int, bytes]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSums:
    """One client in one session.

    Args:
        terms: the session's terms.
        roster: the public keys of all clients, as the server sent them.
        number: this client's number.
        keys: its keys for this session.
        registry: the registry of an active session, known from elsewhere than the server; None in other sessions.

    Raises:
        SumRefused: a roster of another session or size, one that does not hold this client's own key, or one that is
            not signed as the registry demands.
        InvalidParameter: an active session without a registry, or the other way round.
    """

    terms: SumTerms
    roster: Roster
    number: int
    keys: SessionKeys
    registry: ClientRegistry | None = None

    def __post_init__(self) -> None:
        n = self.terms.n_clients
        if len(self.roster.keys) != n:
            raise SumRefused(f"the roster has {len(self.roster.keys)} clients, and the terms say {n}")
        number = _validate.count("number", self.number, "client number", minimum=0)
        if number >= n or self.roster.keys[number] != self.keys.public:
            raise SumRefused(f"the roster does not hold this client's key at its number {number}")
        if self.terms.active != (self.registry is not None):
            raise _validate.fail("registry", type(self.registry), "given if, and only if, terms.active", "registry")
        if self.registry is not None:
            self.roster.check(self.registry)

    def answer(
        self, context: SumContext, kind: AnswerKind, live: Collection[int], survivors: Collection[int] | None = None
    ) -> SumAnswer:
        """Returns what the client's book has to hold before the client answers.

        Args:
            context: which sum.
            kind: what is asked for.
            live: the clients that are asked for an upload.
            survivors: those whose uploads arrived; None for an upload.

        Raises:
            SumRefused: sets of clients, or a session, that the protocol forbids.
        """
        if (survivors is None) != (kind == "upload"):
            raise SumRefused(f"{kind}: the survivors are named with every kind of answer but the upload")
        self._check(context, live, survivors)
        return SumAnswer(
            round=context.round, attempt=context.attempt, kind=kind, live=members_digest(live),
            survivors="" if survivors is None else members_digest(survivors),
        )  # fmt: skip

    def masked(
        self, context: SumContext, live: Collection[int], values: NDArray[np.uint64], randomness: bytes
    ) -> Upload:
        """Returns the first message: the masked vector, and sealed shares of its self-mask.

        Args:
            context: which sum.
            live: the clients that are asked for an upload.
            values: this client's integers modulo 2**64: uint64 (length,).
            randomness: 32 fresh random bytes, of `os.urandom` outside of tests.

        Raises:
            SumRefused: sets of clients, or a session, that the protocol forbids.
            InvalidParameter: values of another type or shape, or randomness of another length.
        """
        self._check(context, live, None)
        total = _vector(values).copy()
        bound = self._bound(context)
        held = sorted(self._holders() & frozenset(live))
        exact_bytes("randomness", randomness, RANDOM_BYTES)
        # Mixed with a key of this client and with the attempt: randomness that is poor, or used twice, is still secret.
        random = _Randomness(expanded(self.keys.own_key(), framed(b"randomness", randomness, bound)))
        coefficients = [element(random.take(WIDE_BYTES)) for _ in range(self.terms.threshold)]
        shares = {
            holder: sealed(share, self._sealing_key(bound, self.number, holder), random.take(NONCE_BYTES))
            for holder, share in split(coefficients, held).items()
        }
        masker = Masker(total)
        masker.add(self_mask_key(coefficients[0].to_bytes(ELEMENT_BYTES, "big"), bound, self.number), 1)
        for other in held:
            if other != self.number:
                masker.add(self._mask_key(bound, other), pair_sign(self.number, other))
        return Upload(values=total, shares=shares)

    def endorsed(self, context: SumContext, live: Collection[int], survivors: Collection[int]) -> bytes:
        """Returns the signature that in this attempt this client was shown these live clients and survivors, 64 bytes.

        Raises:
            SumRefused: sets of clients, or a session, that the protocol forbids; a session that is not active.
        """
        self._check(context, live, survivors)
        if not self.terms.active:
            raise SumRefused("survivors are endorsed in active sessions only")
        return self.keys.sign(*endorsement(self._bound(context), live, survivors))

    def pair_keys(
        self,
        context: SumContext,
        live: Collection[int],
        survivors: Collection[int],
        endorsements: Mapping[int, bytes] | None = None,
    ) -> dict[int, bytes]:
        """Returns the keys of the masks that this client shares with each neighbour that dropped out, 32 bytes each.

        They are the keys of this attempt's masks alone.

        Raises:
            SumRefused: sets of clients, or a session, that the protocol forbids; too few endorsements.
        """
        self._check(context, live, survivors)
        self._check_endorsements(context, live, survivors, endorsements)
        bound = self._bound(context)
        dropped = (self._holders() & frozenset(live)) - set(survivors)
        return {other: self._mask_key(bound, other) for other in sorted(dropped)}

    def opened(
        self,
        context: SumContext,
        live: Collection[int],
        survivors: Collection[int],
        shares: Mapping[int, bytes],
        endorsements: Mapping[int, bytes] | None = None,
    ) -> dict[int, bytes]:
        """Returns the opened shares, 16 bytes each, that surviving holders of masks have sealed for this client.

        A share that does not open is left out: it was damaged, or is of another attempt.

        Raises:
            SumRefused: a share of a client that is no surviving neighbour; sets of clients, or a session, that the
                protocol forbids; too few endorsements.
        """
        self._check(context, live, survivors)
        self._check_endorsements(context, live, survivors, endorsements)
        strangers = set(shares) - (self._holders() & frozenset(survivors))
        if strangers:
            raise SumRefused(
                f"shares are asked for of clients that did not survive or are no neighbours: {listed(strangers)}"
            )
        bound = self._bound(context)
        found = {}
        for sender in sorted(shares):
            text = shares[sender]
            if has_bytes(text, SEALED_BYTES):
                share = unsealed(text, self._sealing_key(bound, sender, self.number))
                if share is not None:
                    found[sender] = share.to_bytes(ELEMENT_BYTES, "big")
        return found

    def _holders(self) -> frozenset[int]:
        return self.roster.holders(self.number, self.terms)

    def _bound(self, context: SumContext) -> bytes:
        return context.digest(self.roster.setting(self.terms))

    def _mask_key(self, bound: bytes, other: int) -> bytes:
        low, high = sorted((self.number, other))
        return mask_key(self.keys.pair_key(self.roster.keys[other]), bound, low, high)

    def _sealing_key(self, bound: bytes, sender: int, receiver: int) -> bytes:
        other = receiver if sender == self.number else sender
        common = self.keys.own_key() if other == self.number else self.keys.pair_key(self.roster.keys[other])
        return sealing_key(common, bound, sender, receiver)

    def _check(self, context: SumContext, live: Collection[int], survivors: Collection[int] | None) -> None:
        if context.session != self.roster.session:
            raise SumRefused("the request is of another session than the roster")
        strangers = frozenset(live) - self.roster.joined
        if strangers:
            raise SumRefused(f"live clients that did not join: {listed(strangers)}")
        self._check_members("live clients", live)
        if survivors is not None:
            invented = frozenset(survivors) - frozenset(live)
            if invented:
                raise SumRefused(f"survivors that were not live: {listed(invented)}")
            self._check_members("survivors", survivors)

    def _check_members(self, what: str, members: Collection[int]) -> None:
        if self.number not in members:
            raise SumRefused(f"this client, {self.number}, is not among the {what}")
        if len(members) < self.terms.min_survivors:
            raise SumRefused(f"{len(members)} clients are {what}, and at least {self.terms.min_survivors} must be")
        left = len(self._holders() & frozenset(members))
        if left < self.terms.threshold:
            raise SumRefused(
                f"{left} of this client and its neighbours are among the {what}, and at least {self.terms.threshold} "
                "must be: fewer could be told apart"
            )

    def _check_endorsements(
        self,
        context: SumContext,
        live: Collection[int],
        survivors: Collection[int],
        endorsements: Mapping[int, bytes] | None,
    ) -> None:
        if self.registry is None:
            return
        text = endorsement(self._bound(context), live, survivors)
        found = sum(
            member in survivors
            and has_bytes(signature, SIGNATURE_BYTES)
            and verified(self.registry.keys[member], signature, *text)
            for member, signature in (endorsements or {}).items()
        )
        if found < self.terms.threshold:
            raise SumRefused(
                f"{found} survivors have endorsed this set of survivors, and at least {self.terms.threshold} must: "
                "others may have been shown another one"
            )


class _Randomness:
    """The bytes of one upload, one after the other: a keystream of AES-256."""

    __slots__ = ("_stream",)

    def __init__(self, key: bytes) -> None:
        self._stream = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()

    def take(self, count: int) -> bytes:
        return self._stream.update(bytes(count))


def is_vector(values: object) -> TypeGuard[NDArray[np.uint64]]:
    """Whether a value from elsewhere is a vector of words."""
    return isinstance(values, np.ndarray) and values.dtype == np.uint64 and values.ndim == 1


def _vector(values: object) -> NDArray[np.uint64]:
    if not is_vector(values):
        raise _validate.fail("type(values)", type(values), "a numpy array of uint64 with one axis", "type")
    return values
