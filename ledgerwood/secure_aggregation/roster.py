"""Who takes part in a session: public keys by client number, and the registry that vouches for them."""

from dataclasses import dataclass, field
from typing import final

from ledgerwood import _validate
from ledgerwood.errors import SumRefused
from ledgerwood.secure_aggregation.context import digest, exact_bytes, name_bytes
from ledgerwood.secure_aggregation.graph import neighbours
from ledgerwood.secure_aggregation.keys import KEY_BYTES, SIGNATURE_BYTES, verified
from ledgerwood.secure_aggregation.terms import SumTerms


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRegistry:
    """The Ed25519 public keys of all clients that may take part, known to each of them from elsewhere than the server.

    Args:
        keys: 32 bytes for each client number from 0 on, all different.
    """

    keys: tuple[bytes, ...]

    def __post_init__(self) -> None:
        keys = tuple(exact_bytes("keys[]", key, KEY_BYTES) for key in _validate.items("keys", self.keys, "public keys"))
        if len(set(keys)) != len(keys):
            raise _validate.fail("keys", f"<{len(keys)} keys>", "different for each client", "public keys")
        object.__setattr__(self, "keys", keys)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    """The public keys of a session, as the server sends them to all clients.

    Args:
        session: the session's name.
        keys: the X25519 public key of each client number from 0 on, 32 bytes each and all different; empty for a
            client that did not join.
        signatures: the clients' signatures of them, 64 bytes each, empty for a client that did not join. Without
            signatures at all, the roster is for sessions that trust the server to follow the protocol.

    Raises:
        InvalidParameter: keys or signatures of other lengths, or a key that occurs twice.
    """

    session: bytes
    keys: tuple[bytes, ...]
    signatures: tuple[bytes, ...] = ()
    joined: frozenset[int] = field(init=False, repr=False, compare=False)
    """The numbers of the clients that have a key."""
    digest: bytes = field(init=False, repr=False, compare=False)
    """32 bytes that no other session and no other keys have."""

    def __post_init__(self) -> None:
        name_bytes("session", self.session)
        for name, length in (("keys", KEY_BYTES), ("signatures", SIGNATURE_BYTES)):
            found = _validate.items(name, getattr(self, name), name)
            for value in found:
                if value != b"":
                    exact_bytes(f"{name}[]", value, length)
            object.__setattr__(self, name, found)
        there = [key for key in self.keys if key]
        if len(set(there)) != len(there):
            raise _validate.fail("keys", f"<{len(there)} keys>", "different for each client", "public keys")
        if self.signatures and [bool(key) for key in self.keys] != [bool(text) for text in self.signatures]:
            raise _validate.fail("signatures", f"<{len(self.signatures)}>", "one for each key", "signatures")
        object.__setattr__(self, "joined", frozenset(number for number, key in enumerate(self.keys) if key))
        object.__setattr__(self, "digest", digest(b"roster", self.session, *self.keys))

    def setting(self, terms: SumTerms) -> bytes:
        """Returns the digest of roster and terms that all keys are bound to, 32 bytes."""
        return digest(b"setting", self.digest, terms.digest())

    def neighbours(self, client: int, terms: SumTerms) -> frozenset[int]:
        """Returns the client numbers with which one shares masks; the graph is public and fixed for the session."""
        return neighbours(client, terms.n_clients, terms.degree, self.digest)

    def holders(self, client: int, terms: SumTerms) -> frozenset[int]:
        """Returns who holds shares of a client's self-mask: its neighbours and itself."""
        return self.neighbours(client, terms) | {client}

    def check(self, registry: ClientRegistry) -> None:
        """Checks that each key was signed, for this session, by the client of its number in the registry.

        Raises:
            SumRefused: another number of clients, or a key that its client has not signed; the message names it.
        """
        if len(self.keys) != len(registry.keys):
            raise SumRefused(f"the roster has {len(self.keys)} clients, and the registry {len(registry.keys)}")
        if not self.signatures:
            raise SumRefused("the roster is not signed, and this session trusts signed keys only")
        for number in sorted(self.joined):
            signature, key = self.signatures[number], self.keys[number]
            if not verified(registry.keys[number], signature, b"session key", self.session, key):
                raise SumRefused(f"client {number} of the registry has not signed its key in the roster")
