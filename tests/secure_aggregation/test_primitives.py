"""Primitives beside published vectors, and a whole upload beside a second implementation of the protocol.

The second implementation is of this file alone: HKDF from HMAC, X25519 from RFC 7748's ladder in Python's integers,
counter mode from single blocks of AES, shares from powers.
"""

import hashlib
import hmac
import itertools
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.errors import InvalidParameter, PrivacyError, SumRefused
from ledgerwood.secure_aggregation import SessionKeys, SumTerms, keys, masks, sealing, shares
from ledgerwood.secure_aggregation.context import framed

# ---- the second implementation


def hkdf_extract(salt, secret):
    return hmac.new(salt or bytes(32), secret, hashlib.sha256).digest()


def hkdf_expand(key, info, length=32):
    text, block = b"", b""
    for number in range(1, length // 32 + 2):
        block = hmac.new(key, block + info + bytes([number]), hashlib.sha256).digest()
        text += block
    return text[:length]


def hkdf(secret, info, length=32, salt=b""):
    return hkdf_expand(hkdf_extract(salt, secret), info, length)


def x25519(scalar, point):
    """RFC 7748, section 5: the Montgomery ladder."""
    p, a24 = 2**255 - 19, 121665
    k = int.from_bytes(scalar, "little") & ~7 & ~(1 << 255) | 1 << 254
    u = int.from_bytes(point, "little") & ((1 << 255) - 1)
    x2, z2, x3, z3, swap = 1, 0, u, 1, 0
    for t in reversed(range(255)):
        bit = k >> t & 1
        if swap ^ bit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = bit
        a, b, c, d = (x2 + z2) % p, (x2 - z2) % p, (x3 + z3) % p, (x3 - z3) % p
        da, cb = d * a % p, c * b % p
        x3, z3 = (da + cb) ** 2 % p, u * (da - cb) ** 2 % p
        aa, bb = a * a % p, b * b % p
        e = (aa - bb) % p
        x2, z2 = aa * bb % p, e * (aa + a24 * e) % p
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, p - 2, p) % p).to_bytes(32, "little")


def keystream(key, length):
    """Counter mode, block by block."""
    cipher = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
    return b"".join(cipher.update(i.to_bytes(16, "big")) for i in range(length // 16 + 1))[:length]


def words(key, length):
    stream = keystream(key, 8 * length)
    return [int.from_bytes(stream[8 * i : 8 * i + 8], "little") for i in range(length)]


def frame(label, *parts):
    text = b"ledgerwood secure sums 1"
    for part in (label, *parts):
        text += len(part).to_bytes(8, "big") + part
    return text


def numbers(*found):
    return b"".join(n.to_bytes(8, "big") for n in found)


PRIME = 2**128 - 159


class Reference:
    """The protocol once more, for a complete graph."""

    def __init__(self, identities, session, plan, round, attempt, threshold):  # noqa: A002
        self.identities, self.session, self.n, self.threshold = identities, session, len(identities), threshold
        base = (9).to_bytes(32, "little")
        self.publics = [x25519(self.private(i), base) for i in range(self.n)]
        roster = hashlib.sha256(frame(b"roster", session, *self.publics)).digest()
        fields = numbers(self.n, self.n - 1, threshold, threshold, 0)
        terms = hashlib.sha256(frame(b"terms", fields)).digest()
        setting = hashlib.sha256(frame(b"setting", roster, terms)).digest()
        self.bound = hashlib.sha256(frame(b"context", session, plan, numbers(round, attempt), setting)).digest()

    def private(self, i):
        return hkdf(self.identities[i], frame(b"agreement", self.session))

    def own(self, i):
        return hkdf(self.identities[i], frame(b"own", self.session))

    def pair(self, i, j):
        both = sorted((self.publics[i], self.publics[j]))
        return hkdf(x25519(self.private(i), self.publics[j]), frame(b"pair", self.session, *both))

    def mask(self, i, j):
        return hkdf_expand(self.pair(i, j), frame(b"mask", self.bound, numbers(min(i, j), max(i, j))))

    def upload(self, i, values, randomness):
        stream = keystream(hkdf_expand(self.own(i), frame(b"randomness", randomness, self.bound)), 1 << 14)
        take = iter(stream)
        drawn = [bytes(itertools.islice(take, 32)) for _ in range(self.threshold)]
        coefficients = [int.from_bytes(text, "big") % PRIME for text in drawn]
        sealed = {}
        for j in range(self.n):
            share = sum(c * (j + 1) ** power for power, c in enumerate(coefficients)) % PRIME
            key = hkdf_expand(self.own(i) if i == j else self.pair(i, j), frame(b"seal", self.bound, numbers(i, j)))
            nonce = bytes(itertools.islice(take, 12))
            sealed[j] = nonce + AESGCM(key).encrypt(nonce, share.to_bytes(16, "big"), None)
        secret = coefficients[0].to_bytes(16, "big")
        total = list(values)
        own_mask = words(hkdf(secret, frame(b"self mask", self.bound, numbers(i))), len(values))
        total = [(a + b) % 2**64 for a, b in zip(total, own_mask, strict=True)]
        for j in set(range(self.n)) - {i}:
            sign = 1 if i < j else -1
            total = [(a + sign * b) % 2**64 for a, b in zip(total, words(self.mask(i, j), len(values)), strict=True)]
        return total, sealed


def test_an_upload_is_what_the_second_implementation_makes(session_of):
    session = session_of(4)
    identities = [hashlib.sha256(repr((0, "identity", i)).encode()).digest() for i in range(4)]
    context = session.context(round=7, attempt=3)
    reference = Reference(identities, b"session", context.plan, 7, 3, session.terms.threshold)
    assert list(session.roster.keys) == reference.publics
    for i in range(4):
        randomness = hashlib.sha256(bytes([i])).digest()
        found = session.clients[i].masked(context, session.everyone, session.values(i, 9), randomness)
        total, sealed = reference.upload(i, session.values(i, 9).tolist(), randomness)
        assert found.values.tolist() == total
        assert dict(found.shares) == sealed
        others = session.everyone - {i}
        dropped = min(others)
        revealed = session.clients[i].pair_keys(context, session.everyone, session.everyone - {dropped})
        assert revealed == {dropped: reference.mask(i, dropped)}


# ---- published vectors


class TestRFC7748:
    """Section 6.1."""

    ALICE = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
    ALICE_PUBLIC = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    BOB = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    BOB_PUBLIC = bytes.fromhex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f")
    SECRET = bytes.fromhex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742")

    def test_the_second_implementation(self):
        assert x25519(self.ALICE, (9).to_bytes(32, "little")) == self.ALICE_PUBLIC
        assert x25519(self.ALICE, self.BOB_PUBLIC) == x25519(self.BOB, self.ALICE_PUBLIC) == self.SECRET

    def test_the_library(self):
        alice = X25519PrivateKey.from_private_bytes(self.ALICE)
        assert alice.public_key().public_bytes_raw() == self.ALICE_PUBLIC
        assert alice.exchange(X25519PublicKey.from_public_bytes(self.BOB_PUBLIC)) == self.SECRET

    def test_the_key_of_a_pair_is_derived_from_it(self):
        made = SessionKeys.derived(bytes(32), b"s")
        made._agreement, made.public = X25519PrivateKey.from_private_bytes(self.ALICE), self.ALICE_PUBLIC
        info = frame(b"pair", b"s", self.ALICE_PUBLIC, self.BOB_PUBLIC)
        assert made.pair_key(self.BOB_PUBLIC) == hkdf(self.SECRET, info)


@pytest.mark.parametrize(
    ("secret", "salt", "info", "length", "expected"),
    [
        ("0b" * 22, "000102030405060708090a0b0c", "f0f1f2f3f4f5f6f7f8f9", 42,
         "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"),
        ("0b" * 22, "", "", 42,
         "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"),
    ],
)  # fmt: skip
def test_rfc5869_test_cases_1_and_3(secret, salt, info, length, expected):
    secret, salt, info = (bytes.fromhex(text) for text in (secret, salt, info))
    assert hkdf(secret, info, length, salt) == bytes.fromhex(expected)
    if not salt:
        assert keys.extracted(secret, info) == bytes.fromhex(expected)[:32]
        assert keys.expanded(hkdf_extract(b"", secret), info) == bytes.fromhex(expected)[:32]


def test_sp800_38a_f_5_5_counter_mode_of_aes_256():
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    counter = bytes.fromhex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
    plain = bytes.fromhex("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51")
    cipher = bytes.fromhex("601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5")
    assert Cipher(algorithms.AES256(key), modes.CTR(counter)).encryptor().update(plain) == cipher
    blocks = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
    follow = [counter, (int.from_bytes(counter, "big") + 1).to_bytes(16, "big")]
    assert bytes(a ^ b for a, b in zip(plain, blocks.update(b"".join(follow)), strict=True)) == cipher


def test_rfc8032_first_test_of_ed25519():
    secret = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
    public = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
    signature = bytes.fromhex(
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
    )
    key = Ed25519PrivateKey.from_private_bytes(secret)
    assert key.public_key().public_bytes_raw() == public
    assert key.sign(b"") == signature


# ---- masks


@settings(max_examples=30, deadline=None)
@given(st.binary(min_size=32, max_size=32), st.integers(0, 40), st.sampled_from([1, -1]))
def test_a_mask_is_the_keystream_added_modulo_2_64(key, length, sign):
    before = np.arange(length, dtype=np.uint64) * np.uint64(2**60 + 1)
    total = before.copy()
    masks.Masker(total).add(key, sign)
    assert total.tolist() == [(a + sign * b) % 2**64 for a, b in zip(before.tolist(), words(key, length), strict=True)]


def test_a_mask_goes_on_over_the_buffer_s_end():
    length = 2 * (1 << 15) + 3
    total = np.zeros(length, dtype=np.uint64)
    masker = masks.Masker(total)
    masker.add(bytes(32), 1)
    assert total.tolist() == words(bytes(32), length)
    masker.add(bytes(32), -1)
    assert not total.any()


# ---- shares


def test_shamir_s_scheme_on_a_published_example():
    """Secret 1234 modulo 1613 with coefficients 166 and 94: the shares of the textbook example, and all subsets."""
    found = shares.split([1234, 166, 94], range(6), 1613)
    assert found == {0: 1494, 1: 329, 2: 965, 3: 176, 4: 1188, 5: 775}
    for size in range(3, 7):
        for holders in itertools.combinations(range(6), size):
            assert shares.combined({i: found[i] for i in holders}, 3, 1613) == 1234


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_any_threshold_of_shares_rebuilds_the_secret(data):
    threshold = data.draw(st.integers(1, 8))
    coefficients = data.draw(st.lists(st.integers(0, PRIME - 1), min_size=threshold, max_size=threshold))
    holders = data.draw(st.sets(st.integers(0, 2**20), min_size=threshold, max_size=threshold + 4))
    found = shares.split(coefficients, holders)
    assert found == {i: sum(c * (i + 1) ** k for k, c in enumerate(coefficients)) % PRIME for i in holders}
    chosen = data.draw(st.permutations(sorted(holders)))[: data.draw(st.integers(threshold, len(holders)))]
    assert shares.combined({i: found[i] for i in chosen}, threshold) == coefficients[0]


def test_fewer_shares_than_the_threshold_say_nothing():
    """Over a small field, all polynomials: whatever two shares are, each secret is equally likely."""
    prime = 7
    seen = {}
    for coefficients in itertools.product(range(prime), repeat=3):
        found = shares.split(coefficients, (0, 3), prime)
        seen.setdefault((found[0], found[3]), []).append(coefficients[0])
    assert len(seen) == prime**2
    assert all(sorted(secrets) == list(range(prime)) for secrets in seen.values())
    with pytest.raises(ValueError, match="2 shares, and 3 are needed"):
        shares.combined({0: 1, 1: 2}, 3)


def test_the_field():
    """The order is prime (Fermat to 40 bases), it is the largest below 2**128, and 32 bytes are near to uniform."""
    assert all(pow(base, PRIME - 1, PRIME) == 1 for base in range(2, 42))
    assert shares.PRIME == PRIME
    assert not any(pow(3, n - 1, n) == 1 for n in range(PRIME + 2, 2**128, 2))
    assert Fraction(PRIME, 2**256) < Fraction(1, 2**127)
    assert shares.element((PRIME + 5).to_bytes(32, "big")) == 5


def test_sealed_shares_open_under_their_own_key_only():
    key, nonce = b"k" * 32, b"n" * 12
    text = sealing.sealed(PRIME - 1, key, nonce)
    assert len(text) == 44 == sealing.SEALED_BYTES
    assert sealing.unsealed(text, key) == PRIME - 1
    assert sealing.unsealed(text, b"j" * 32) is None
    for place in range(44):
        assert sealing.unsealed(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :], key) is None
    assert sealing.unsealed(b"", key) is None
    beyond = nonce + AESGCM(key).encrypt(nonce, PRIME.to_bytes(16, "big"), None)
    assert sealing.unsealed(beyond, key) is None


# ---- keys


def test_keys_follow_from_identity_and_session_alone():
    made = SessionKeys.derived(b"i" * 32, b"one")
    again, other, someone = (
        SessionKeys.derived(*parts) for parts in ((b"i" * 32, b"one"), (b"i" * 32, b"two"), (b"j" * 32, b"one"))
    )
    assert made.public == again.public
    assert made.signature == again.signature
    assert len({made.public, other.public, someone.public}) == 3
    assert made.verifying_key == other.verifying_key != someone.verifying_key
    assert made.pair_key(someone.public) == someone.pair_key(made.public) != other.pair_key(someone.public)


def test_secrets_do_not_leave_by_accident():
    import copy
    import pickle

    made = SessionKeys.derived(b"i" * 32, b"one")
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(PrivacyError, match="neither copied nor pickled"):
            attempt(made)
    assert repr(made) == "SessionKeys(<secret>)"
    with pytest.raises(InvalidParameter) as caught:
        SessionKeys.derived(b"secret!", b"one")
    assert "secret!" not in str(caught.value)


@pytest.mark.parametrize("point", [bytes(32), (1).to_bytes(32, "little"), (2**255 - 20).to_bytes(32, "little")])
def test_public_keys_of_low_order_are_refused(point):
    with pytest.raises(SumRefused, match="low order"):
        SessionKeys.derived(b"i" * 32, b"one").pair_key(point)


def test_no_two_lists_of_parts_have_one_frame():
    lists = [(), (b"",), (b"", b""), (b"a",), (b"a", b""), (b"", b"a"), (b"a" + bytes(8),), (b"a", bytes(8))]
    assert len({framed(b"x", *parts) for parts in lists}) == len(lists)
    assert framed(b"x", b"ab") == frame(b"x", b"ab")


def test_terms_with_other_numbers_have_other_digests():
    found = [
        SumTerms(n_clients=6, degree=5, threshold=4),
        SumTerms(n_clients=6, degree=4, threshold=4),
        SumTerms(n_clients=6, degree=5, threshold=5),
        SumTerms(n_clients=6, degree=5, threshold=4, min_survivors=5),
        SumTerms(n_clients=6, degree=5, threshold=5, active=True),
    ]
    assert len({terms.digest() for terms in found}) == 5
