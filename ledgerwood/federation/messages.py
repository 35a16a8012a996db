"""What a server and the owners of rows say to each other: requests, and replies.

All of it is public, or sealed, or masked: docs/explanation/federation.md#federation-messages.
"""

import hashlib
import math
import re
from dataclasses import dataclass, field
from typing import Literal, Self, final, get_args

import numpy as np

from ledgerwood import _validate
from ledgerwood.accounting.adjacency import PrivacyUnit
from ledgerwood.accounting.events import FilteredEvent
from ledgerwood.curator.inputs.typed_columns import TypedColumns
from ledgerwood.curator.places.federated_rows import FitTerms, NoiseBy, OwnersDraw
from ledgerwood.errors import BadMessage, BudgetExceeded, DrawRefused, LedgerError, PrivacyError
from ledgerwood.schema import Schema
from ledgerwood.secure_aggregation import SumTerms, Upload

PROTOCOL = 2
"""Of the messages: both sides must have the same."""
_WIDTHS = re.compile(r"[<>=|]?[US][0-9]+")
"""Types of texts in numpy's words: how wide they are depends on the longest one."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Describe:
    """Ask for the names and the number of the columns.

    Args:
        protocol: of the server.
        version: of the server's library.
        numeric_target: whether labels are numbers, where the fit estimates the schema and asks for types; else None.
    """

    protocol: int
    version: str
    numeric_target: bool | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnNames:
    """Reply to `Describe`.

    Args:
        n_features: of the owner's rows.
        names: of the columns; empty of an array.
        columns: with their types, where these were asked for.
    """

    n_features: int
    names: tuple[str, ...]
    columns: TypedColumns | None = None

    @property
    def shown(self) -> str:
        """For an error."""
        if self.columns is not None:
            return ", ".join(f"{each.name} ({each.kind})" for each in (*self.columns.features, self.columns.target))
        return f"{self.n_features} columns without names" if not self.names else ", ".join(self.names)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FederationTerms:
    """All that a session fixes before it begins; its hash binds every mask and every entry of a client's ledger.

    Args:
        session: 16 random bytes.
        fit: what is trained, on which schema.
        noise: who adds the noise.
        unit: what is protected: a row, or a client's whole contribution.
        rows_per_client: of whole contributions, how many rows count as one.
        honest: noise="clients": this many honest owners together carry the whole noise; each adds a share of it.
        least: a round with fewer survivors than this is not unmasked.
        sums: of secure aggregation.
        server: the server's name, as the clients' ledgers have it.

    `digest` is the SHA-256 of the terms as they travel, 32 bytes: each question of the session is bound to it.
    """

    session: bytes
    fit: FitTerms
    noise: NoiseBy
    unit: PrivacyUnit
    rows_per_client: int
    honest: int
    least: int
    sums: SumTerms
    server: str
    digest: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        from ledgerwood.federation.codec import pack

        if self.noise not in get_args(NoiseBy):
            raise _validate.fail("noise", self.noise, "'server' or 'clients'", "name")
        for name, unit in (("rows_per_client", "rows"), ("honest", "owners"), ("least", "owners")):
            if type(getattr(self, name)) is not int or getattr(self, name) < 1:
                raise _validate.fail(name, getattr(self, name), "a whole number >= 1", unit)
        object.__setattr__(self, "digest", hashlib.sha256(b"ledgerwood federation 1|" + pack(self)).digest())

    @property
    def assumption(self) -> str:
        """Who is trusted for what, for a model's privacy statement."""
        sums = self.sums
        # The others' sums, taken from the total, leave that of the last one.
        others = min(sums.threshold - 1, self.least - 2)
        pooling = f"and from {others} other owners that pool what they know with it" if others else "alone"
        hidden = (
            f"{sums.n_clients} owners kept their rows; secure aggregation hid the sums of each from the server "
            f"{pooling}, if all follow the protocol ({'active' if sums.active else 'semi-honest'} security) and send "
            "sums of real rows"
        )
        if any(isinstance(each, FilteredEvent) for each, _ in self.fit.event.draws()):
            hidden += "; each owner kept the accounts of its rows under the individual filter, and charged them"
        if self.noise == "server":
            columns = self.fit.columns
            listed = [] if columns is None else [each for each in (*columns.features, columns.target) if each.keyed]
            keys = (
                "; of each column whose categories were estimated it saw the exact list of the values in the rows of "
                "all owners together, with their total numbers of rows"
                if listed
                else ""
            )
            return (
                f"{hidden}; the server saw exact sums over all owners, added the noise, and is trusted with both{keys}"
            )
        return (
            f"{hidden}; each owner added a share of the noise, so that the guarantee holds against the server too, and "
            f"against {self.least - self.honest} owners that pool what they know: of at least {self.least} owners in "
            f"each round {self.honest} have to be honest"
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """Ask whether the owner would take part.

    Args:
        terms: of the session.
        number: the owner's, from 0.
        secret: of a run with a seed, by which coins are sealed; empty otherwise.
        call: of a stream, the number of the call, from 1; otherwise 1.
    """

    terms: FederationTerms
    number: int
    secret: bytes
    call: int = 1

    def __post_init__(self) -> None:
        _validate.count("call", self.call, "calls", minimum=1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Willing:
    """Reply to `Hello`.

    Args:
        key: the owner's public key of the session.
        signature: of it, by which the owners of an active session know it as the registry's; else empty.
        n_rows: of a run with a seed, whose coins are by place; else 0.
    """

    key: bytes
    signature: bytes
    n_rows: int

    def __post_init__(self) -> None:
        for name, value, sizes in (("key", self.key, (32,)), ("signature", self.signature, (0, 64))):
            if type(value) is not bytes or len(value) not in sizes:
                raise BadMessage(f"the {name} of an owner has {sizes[-1]} bytes")
        _validate.count("n_rows", self.n_rows, "rows", minimum=0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """The session begins: the owner's ledger pays for the plan.

    Args:
        hello: as it was.
        keys: the public keys of all owners by number.
        signatures: of them, of an active session; else none.
        offset: of a run with a seed, the place of the owner's first row.
        schema: that was estimated, once it is known: said to all owners again, and to each process that missed it.
    """

    hello: Hello
    keys: tuple[bytes, ...]
    signatures: tuple[bytes, ...]
    offset: int
    schema: Schema | None = None


def schema_digest(schema: Schema) -> bytes:
    """SHA-256 of an estimated schema as it travels, 32 bytes."""
    from ledgerwood.federation.codec import pack

    return hashlib.sha256(b"ledgerwood schema 1|" + pack(schema)).digest()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Reply to `Begin`."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ask:
    """One question to all live owners.

    Args:
        session, round, attempt: of the question.
        live: the numbers of the owners that are asked.
        draw: who takes part.
        is_choice: whether the query is a selection's.
        packed: query and mechanism, in which repeated values are numbers.
        known: how many repeated values came before `news`.
        news: repeated values that no earlier question had.
        schema: the digest of the estimated schema by which rows are encoded; empty where it was declared, or is not
            known yet.
        call: of a stream, the number of the call whose rows are asked for; otherwise 1.
    """

    session: bytes
    round: int
    attempt: int
    live: tuple[int, ...]
    draw: OwnersDraw
    is_choice: bool
    packed: bytes
    known: int
    news: tuple[bytes, ...]
    schema: bytes = b""
    call: int = 1

    def __post_init__(self) -> None:
        _validate.count("call", self.call, "calls", minimum=1)

    def digest(self, values: bytes) -> bytes:
        """SHA-256 of what is asked, 32 bytes: owners that are asked different things have no mask in common.

        Args:
            values: the digest of all repeated values so far.
        """
        from ledgerwood.federation.codec import pack

        asked = pack((self.draw, self.is_choice, self.packed, self.schema, self.call))
        return hashlib.sha256(b"ledgerwood question 1|" + values + asked).digest()


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Uploaded:
    """Reply to `Ask`: masked sums.

    Args:
        upload: with the sealed shares.
        shape: of the sums.
    """

    upload: Upload
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        upload: object = self.upload
        shape: object = self.shape
        if not (
            isinstance(upload, Upload)
            and isinstance(upload.shares, dict)
            and upload.values.dtype == np.uint64
            and upload.values.ndim == 1
            and isinstance(shape, tuple)
            and all(type(size) is int and size >= 0 for size in shape)
            and math.prod(shape) == len(upload.values)
        ):
            raise BadMessage("an upload is a vector of 64-bit words of a shape, with shares by number")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Survivors:
    """Tell who answered, and ask for an endorsement of it, for the keys of pairs with who did not, or for shares.

    Args:
        session, round, attempt: of the question.
        kind: what is asked for.
        live: who was asked.
        uploaded: who answered.
        shares: sealed, of the owner's surviving neighbours, by number; "unmask" only.
        endorsements: of an active session, the owners' signatures of these survivors, by number.
        question: `Ask.digest` of what was asked.
    """

    session: bytes
    round: int
    attempt: int
    kind: Literal["endorse", "recover", "unmask"]
    live: tuple[int, ...]
    uploaded: tuple[int, ...]
    shares: dict[int, bytes]
    endorsements: dict[int, bytes]
    question: bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """Reply to `Survivors`: keys of the pairs, or opened shares, by number of the owner that they are about."""

    opened: dict[int, bytes]

    def __post_init__(self) -> None:
        opened: object = self.opened
        if not isinstance(opened, dict) or not all(type(each) is bytes for each in opened.values()):
            raise BadMessage("what an owner opens are bytes by number")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Endorsed:
    """Reply to `Survivors` of kind "endorse": the owner's signature that it was shown these survivors."""

    signature: bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The owner does not answer, and why; no word of it depends on a row.

    Args:
        reason: for the people at the server.
    """

    reason: str

    @classmethod
    def of(cls, error: PrivacyError) -> Self:
        """What a server learns of an error: nothing of an owner's other budgets, files and sessions, or of its labels.

        The owner's log has the whole text.
        """
        name = type(error).__name__
        if isinstance(error, BudgetExceeded):
            return cls(reason=f"{name}: the plan does not fit into what is left of this owner's budget")
        if isinstance(error, LedgerError):
            return cls(reason=f"{name}: this owner's ledger refuses; its log says why")
        if isinstance(error, DrawRefused):  # it names an entry of the ledger
            return cls(reason=f"{name}: the plan that this owner has paid for holds no such draw any more")
        return cls(reason=_WIDTHS.sub("text", f"{name}: {error}"))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NotTold:
    """The owner's process was not told of the session, or not of all repeated values: it asks to be told.

    Args:
        known: how many repeated values it has; -1: nothing of the session.
    """

    known: int


Request = Describe | Hello | Begin | Ask | Survivors
Reply = ColumnNames | Willing | Ready | Uploaded | Endorsed | Opened | Refusal | NotTold
