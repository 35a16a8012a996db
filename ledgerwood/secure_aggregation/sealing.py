"""Shares on their way from one client to another, by the server: encrypted and authenticated by AES-256-GCM."""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ledgerwood.secure_aggregation.shares import ELEMENT_BYTES, PRIME

NONCE_BYTES = 12
TAG_BYTES = 16
SEALED_BYTES = NONCE_BYTES + ELEMENT_BYTES + TAG_BYTES
"""Bytes of a sealed share: 44."""


def sealed(share: int, key: bytes, nonce: bytes) -> bytes:
    """Returns a share, encrypted under a key that is made for this sender, receiver and attempt.

    Args:
        share: an element of the field.
        key: 32 bytes.
        nonce: 12 fresh bytes; should a client seal twice under one key, it still gives nothing away.
    """
    return nonce + AESGCM(key).encrypt(nonce, share.to_bytes(ELEMENT_BYTES, "big"), None)


def unsealed(text: bytes, key: bytes) -> int | None:
    """Returns the share, or None where the text was not sealed under this key, or is no element of the field."""
    try:
        share = AESGCM(key).decrypt(text[:NONCE_BYTES], text[NONCE_BYTES:], None)
    except (InvalidTag, ValueError):
        return None
    found = int.from_bytes(share, "big")
    return found if len(share) == ELEMENT_BYTES and found < PRIME else None
