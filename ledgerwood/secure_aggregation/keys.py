"""A client's keys for one session: X25519 for secrets of pairs, Ed25519 for signatures, all derived from one secret.

RFC 7748 (X25519), RFC 5869 (HKDF), RFC 8032 (Ed25519). docs/explanation/secure-aggregation.md#keys.
"""

from typing import final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

from ledgerwood._uncopied import Uncopied
from ledgerwood.errors import SumRefused
from ledgerwood.secure_aggregation.context import exact_bytes, framed, name_bytes, number_bytes

KEY_BYTES = 32
SIGNATURE_BYTES = 64


def extracted(secret: bytes, info: bytes) -> bytes:
    """Returns a key of 32 bytes: HKDF-SHA256 of a secret, without salt."""
    return HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=None, info=info).derive(secret)


def expanded(key: bytes, info: bytes) -> bytes:
    """Returns a key of 32 bytes: the second step of HKDF-SHA256, of a key that is uniform already."""
    return HKDFExpand(algorithm=hashes.SHA256(), length=KEY_BYTES, info=info).derive(key)


@final
class SessionKeys(Uncopied):
    """What one client can compute and nobody else, in one session. Never shared, rebuilt, printed, copied or pickled.

    The same identity and session give the same keys, so that a client that restarts has them again.
    """

    __slots__ = ("_agreement", "_identity", "_own", "_pairs", "_session", "public", "verifying_key")

    def __init__(self, identity: bytes, session: bytes) -> None:
        exact_bytes("identity", identity, KEY_BYTES)
        self._session = name_bytes("session", session)
        self._agreement = X25519PrivateKey.from_private_bytes(extracted(identity, framed(b"agreement", session)))
        self._own = extracted(identity, framed(b"own", session))
        self._identity = Ed25519PrivateKey.from_private_bytes(extracted(identity, framed(b"identity")))
        self._pairs: dict[bytes, bytes] = {}
        self.public = self._agreement.public_key().public_bytes_raw()
        """The X25519 public key of this session, 32 bytes: what other clients need."""
        self.verifying_key = self._identity.public_key().public_bytes_raw()
        """The Ed25519 public key, 32 bytes, the same in all sessions: what a registry holds."""

    @classmethod
    def derived(cls, identity: bytes, session: bytes) -> "SessionKeys":
        """Returns the keys of a session.

        Args:
            identity: the client's own secret, 32 uniform bytes, kept for as long as it takes part in anything.
            session: the session's public name.

        Raises:
            InvalidParameter: a secret of another length, or an empty name.
        """
        return cls(identity, session)

    @property
    def signature(self) -> bytes:
        """The Ed25519 signature of this session's public key, 64 bytes, for rosters of an active session."""
        return self.sign(b"session key", self._session, self.public)

    def sign(self, label: bytes, *parts: bytes) -> bytes:
        """Returns the Ed25519 signature of `framed(label, *parts)`, 64 bytes."""
        return self._identity.sign(framed(label, *parts))

    def pair_key(self, public: bytes) -> bytes:
        """Returns the key that this client has in common with the owner of another public key, 32 bytes.

        HKDF of the X25519 secret, bound to the session and to both public keys. It leaves this object only into
        derivations of keys for one purpose of one attempt.

        Raises:
            SumRefused: a public key of low order, which would make the secret known to everybody.
        """
        found = self._pairs.get(public)
        if found is None:
            try:
                secret = self._agreement.exchange(X25519PublicKey.from_public_bytes(public))
            except ValueError:
                raise SumRefused(
                    "a public key in the roster is of low order: nobody can share a secret with it"
                ) from None
            found = extracted(secret, framed(b"pair", self._session, *sorted((self.public, public))))
            self._pairs[public] = found
        return found

    def own_key(self) -> bytes:
        """Returns a key that nobody else has, 32 bytes: for what a client seals for itself, and for its randomness."""
        return self._own

    def __repr__(self) -> str:
        return "SessionKeys(<secret>)"

    def _uncopied(self) -> str:
        return "SessionKeys are neither copied nor pickled: whoever has them can unmask a client"


def mask_key(pair: bytes, bound: bytes, low: int, high: int) -> bytes:
    """Returns the key of the mask of one pair in one attempt, 32 bytes: all that is revealed of a dropped client."""
    return expanded(pair, framed(b"mask", bound, number_bytes(low, high)))


def sealing_key(pair: bytes, bound: bytes, sender: int, receiver: int) -> bytes:
    """Returns the key under which the sender seals its share for the receiver in one attempt, 32 bytes."""
    return expanded(pair, framed(b"seal", bound, number_bytes(sender, receiver)))


def self_mask_key(secret: bytes, bound: bytes, client: int) -> bytes:
    """Returns the key of a client's self-mask in one attempt, 32 bytes, from the secret that is shared."""
    return extracted(secret, framed(b"self mask", bound, number_bytes(client)))


def verified(verifying_key: bytes, signature: bytes, label: bytes, *parts: bytes) -> bool:
    """Whether the signature is of `framed(label, *parts)` under this Ed25519 key."""
    try:
        Ed25519PublicKey.from_public_bytes(verifying_key).verify(signature, framed(label, *parts))
    except (InvalidSignature, ValueError):
        return False
    return True
