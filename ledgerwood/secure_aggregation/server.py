"""The server's side of one attempt: it collects messages, says what is missing, and unmasks the sum.

docs/explanation/secure-aggregation.md#messages.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import final

import numpy as np
from numpy.typing import NDArray

from ledgerwood import _validate
from ledgerwood.errors import SumIncomplete, SumRefused
from ledgerwood.secure_aggregation.client import Upload, is_vector
from ledgerwood.secure_aggregation.context import SumContext, endorsement, has_bytes, listed
from ledgerwood.secure_aggregation.keys import KEY_BYTES, SIGNATURE_BYTES, self_mask_key, verified
from ledgerwood.secure_aggregation.masks import Masker, pair_sign
from ledgerwood.secure_aggregation.roster import ClientRegistry, Roster
from ledgerwood.secure_aggregation.sealing import SEALED_BYTES
from ledgerwood.secure_aggregation.shares import ELEMENT_BYTES, PRIME, combined
from ledgerwood.secure_aggregation.terms import SumTerms


@final
class ServerSum:
    """One attempt at one sum. It holds the running sum and short keys, and no client's vector.

    The steps, each of which may be asked for what it still lacks:

    1. `add` uploads as they come, and `close` when no more are waited for: the survivors are those that have come.
    2. Active sessions: `add_endorsement` of at least `threshold` survivors.
    3. If somebody dropped out: `add_pair_keys` of all `to_recover`. If one of them is lost, give this attempt up;
       nothing was unmasked, and another attempt may begin.
    4. `shares_for` each survivor, and `add_opened` what it returns. From here on the survivors are final.
    5. `total`.

    Args:
        terms: the session's terms.
        roster: its public keys.
        context: which sum.
        live: the clients that are asked for an upload.
        length: integers in a vector.
        registry: checks endorsements where one is given; otherwise the clients alone do.

    Raises:
        SumIncomplete: live clients one of which has too few neighbours among them.
        SumRefused: live clients that did not join, or a session that is not the roster's.
    """

    __slots__ = (
        "_bound",
        "_closed",
        "_context",
        "_endorsements",
        "_lacking",
        "_live",
        "_masker",
        "_opened",
        "_opened_by",
        "_recover",
        "_registry",
        "_roster",
        "_sealed",
        "_terms",
        "_total",
        "_uploaded",
    )

    def __init__(
        self,
        *,
        terms: SumTerms,
        roster: Roster,
        context: SumContext,
        live: Collection[int],
        length: int,
        registry: ClientRegistry | None = None,
    ) -> None:
        if context.session != roster.session or len(roster.keys) != terms.n_clients:
            raise SumRefused("terms, roster and context are not of one session")
        strangers = set(live) - roster.joined
        if strangers:
            raise SumRefused(f"live clients that did not join: {listed(strangers)}")
        self._terms, self._roster, self._context, self._registry = terms, roster, context, registry
        self._bound = context.digest(roster.setting(terms))
        self._live = frozenset(live)
        self._total = np.zeros(_validate.count("length", length, "integers", minimum=0), dtype=np.uint64)
        self._masker = Masker(self._total)
        self._uploaded: set[int] = set()
        self._sealed: defaultdict[int, dict[int, bytes]] = defaultdict(dict)  # by receiver, then by sender
        self._closed = False
        self._endorsements: dict[int, bytes] = {}
        self._recover: dict[int, frozenset[int]] = {}  # the dropped neighbours of each survivor that has any
        self._lacking: set[int] = set()  # survivors whose keys of pairs with them are missing
        self._opened: defaultdict[int, dict[int, int]] = defaultdict(dict)  # by owner of the secret, then by holder
        self._opened_by: set[int] = set()
        self._check_holders("live", self._live)

    @property
    def context(self) -> SumContext:
        """Which sum this is."""
        return self._context

    @property
    def live(self) -> frozenset[int]:
        """The clients that are asked for an upload."""
        return self._live

    @property
    def uploaded(self) -> frozenset[int]:
        """The clients whose uploads have come; once closed, the survivors."""
        return frozenset(self._uploaded)

    @property
    def dropped(self) -> frozenset[int]:
        """The live clients whose uploads have not come."""
        return self._live - self._uploaded

    def add(self, client: int, upload: Upload) -> None:
        """Adds a client's upload.

        Raises:
            SumRefused: an upload that is late, repeated, of a client that was not asked, or malformed. The sum is as it
                was.
        """
        if self._closed:
            raise self._refused(client, "upload", "it is late: the survivors are final")
        self._check_sender(client, "upload", self._live, self._uploaded)
        values = upload.values
        if not is_vector(values) or values.size != self._total.size:
            raise self._refused(client, "upload", f"its values are not {self._total.size} integers of 64 bits")
        holders = self._roster.holders(client, self._terms) & self._live
        self._check_texts(client, "upload", upload.shares, holders, SEALED_BYTES)
        np.add(self._total, values, out=self._total)
        for holder, text in upload.shares.items():
            self._sealed[holder][client] = text
        self._uploaded.add(client)

    def close(self) -> frozenset[int]:
        """Ends the uploads, and returns the survivors.

        Raises:
            SumIncomplete: a survivor has too few neighbours among the survivors. Nothing was unmasked: another attempt
                may begin, of more clients or after the missing ones have come back.
        """
        if not self._closed:
            self._check_holders("survivors", self._uploaded)
            self._closed = True
            for gone in self.dropped:
                for client in self._roster.neighbours(gone, self._terms) & self._uploaded:
                    self._recover[client] = self._recover.get(client, frozenset()) | {gone}
            self._lacking = set(self._recover)
        return self.uploaded

    @property
    def to_recover(self) -> frozenset[int]:
        """The survivors that have still to reveal keys of pairs with dropped neighbours; empty if nobody dropped out.

        Raises:
            SumIncomplete: the uploads are not closed.
        """
        self._check_closed("keys of pairs")
        return frozenset(self._lacking)

    def add_endorsement(self, client: int, signature: bytes) -> None:
        """Adds a survivor's signature of the survivors.

        Raises:
            SumRefused: of a client that did not survive, repeated, malformed, or not its signature.
        """
        self._check_closed("endorsements")
        self._check_sender(client, "endorse", self._uploaded, self._endorsements)
        if not has_bytes(signature, SIGNATURE_BYTES):
            raise self._refused(client, "endorse", f"a signature has {SIGNATURE_BYTES} bytes")
        if self._registry is not None:
            text = endorsement(self._bound, self._live, self._uploaded)
            if not verified(self._registry.keys[client], signature, *text):
                raise self._refused(client, "endorse", "it is not this client's signature of these survivors")
        self._endorsements[client] = signature

    @property
    def endorsements(self) -> dict[int, bytes]:
        """The signatures by client, for the requests that follow: empty unless the session is active.

        Raises:
            SumIncomplete: too few have come.
        """
        self._check_closed("endorsements")
        if self._terms.active and len(self._endorsements) < self._terms.threshold:
            raise SumIncomplete(
                f"{self._context}: {len(self._endorsements)} survivors have endorsed, and {self._terms.threshold} must;"
                f" missing are {listed(self._uploaded - set(self._endorsements))}"
            )
        return dict(self._endorsements)

    def add_pair_keys(self, client: int, keys: Mapping[int, bytes]) -> None:
        """Takes out the masks that a survivor shares with its dropped neighbours.

        Raises:
            SumRefused: of a client that was not asked, repeated, or malformed. The sum is as it was.
            SumIncomplete: the uploads are not closed.
        """
        self._check_closed("keys of pairs")
        self._check_sender(client, "recover", self._recover, self._recover.keys() - self._lacking)
        self._check_texts(client, "recover", keys, self._recover[client], KEY_BYTES)
        for other, key in keys.items():
            self._masker.add(key, pair_sign(other, client))  # the opposite of what the client added
        self._lacking.remove(client)

    def shares_for(self, client: int) -> dict[int, bytes]:
        """Returns the sealed shares that a survivor has to open, by the survivors that have made them.

        Raises:
            SumIncomplete: keys of pairs or endorsements are missing: nobody may be asked to open anything yet.
            SumRefused: of a client that did not survive.
        """
        self._check_recovered()
        if client not in self._uploaded:
            raise self._refused(client, "unmask", "it did not survive")
        return {sender: text for sender, text in self._sealed[client].items() if sender in self._uploaded}

    def add_opened(self, client: int, shares: Mapping[int, bytes]) -> None:
        """Adds the shares that a survivor has opened.

        Raises:
            SumRefused: of a client that did not survive, repeated, malformed, or of a client that it holds no share of.
            SumIncomplete: keys of pairs or endorsements are missing.
        """
        self._check_recovered()
        self._check_sender(client, "unmask", self._uploaded, self._opened_by)
        asked = self._sealed[client].keys() & self._uploaded
        self._check_texts(client, "unmask", shares, asked & shares.keys(), ELEMENT_BYTES)
        found = {owner: int.from_bytes(text, "big") for owner, text in shares.items()}
        if any(share >= PRIME for share in found.values()):
            raise self._refused(client, "unmask", "a share is no element of the field")
        for owner, share in found.items():
            self._opened[owner][client] = share
        self._opened_by.add(client)

    @property
    def short(self) -> dict[int, int]:
        """How many opened shares are missing yet, by the survivor whose self-mask needs them."""
        missing = {owner: self._terms.threshold - len(self._opened[owner]) for owner in sorted(self._uploaded)}
        return {owner: count for owner, count in missing.items() if count > 0}

    def total(self) -> NDArray[np.uint64]:
        """Returns the sum over the survivors modulo 2**64: uint64 (length,).

        Raises:
            SumIncomplete: opened shares are missing. If no more come, the round is lost: its survivors are final.
        """
        self._check_recovered()
        short = self.short
        if short:
            owner, count = next(iter(short.items()))
            raise SumIncomplete(
                f"{self._context}: the self-masks of {listed(short)} cannot be rebuilt; that of {owner} lacks {count} "
                f"of {self._terms.threshold} opened shares; nothing was opened by "
                f"{listed(self._uploaded - self._opened_by)}"
            )
        total = self._total.copy()
        masker = Masker(total)
        for owner in sorted(self._uploaded):
            secret = combined(self._opened[owner], self._terms.threshold)
            masker.add(self_mask_key(secret.to_bytes(ELEMENT_BYTES, "big"), self._bound, owner), -1)
        return total

    def _check_holders(self, what: str, members: Collection[int]) -> None:
        there, terms = frozenset(members), self._terms
        missing = listed(frozenset(range(terms.n_clients)) - there)
        if len(there) < terms.min_survivors:
            raise SumIncomplete(
                f"{self._context}: {len(there)} clients are {what}, and at least {terms.min_survivors} must be; "
                f"missing are {missing}"
            )
        for member in sorted(there):
            count = len(self._roster.holders(member, terms) & there)
            if count < terms.threshold:
                raise SumIncomplete(
                    f"{self._context}: {count} of client {member} and its neighbours are {what}, and at least "
                    f"{terms.threshold} must be; missing are {missing}"
                )

    def _check_closed(self, what: str) -> None:
        if not self._closed:
            raise SumIncomplete(f"{self._context}: uploads of {listed(self.dropped)} are waited for; close them first")

    def _check_recovered(self) -> None:
        self._check_closed("shares")
        self.endorsements  # noqa: B018  # raises where some are missing
        if self._lacking:
            raise SumIncomplete(
                f"{self._context}: keys of pairs with dropped clients are missing from {listed(self._lacking)}; if "
                "they do not come, begin another attempt: nothing was unmasked"
            )

    def _check_sender(self, client: int, kind: str, asked: Collection[int], done: Collection[int]) -> None:
        if client not in asked:
            raise self._refused(client, kind, "it was not asked")
        if client in done:
            raise self._refused(client, kind, "it is repeated")

    def _check_texts(
        self, client: int, kind: str, texts: Mapping[int, bytes], wanted: Collection[int], length: int
    ) -> None:
        if set(texts) != set(wanted):
            odd = set(texts) ^ set(wanted)
            raise self._refused(client, kind, f"it is not about the clients that it should be about: {listed(odd)}")
        if not all(has_bytes(text, length) for text in texts.values()):
            raise self._refused(client, kind, f"each of its texts must be {length} bytes")

    def _refused(self, client: int, kind: str, reason: str) -> SumRefused:
        return SumRefused(f"{kind} of client {client} in {self._context} is refused: {reason}")
