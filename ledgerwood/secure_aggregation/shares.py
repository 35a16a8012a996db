"""Shamir's sharing of a secret over a prime field. Shamir (1979), "How to share a secret".

A secret is the value at 0 of a polynomial of degree threshold - 1 whose other coefficients are uniform; the share of
client number i is its value at i + 1. Any `threshold` shares determine it, and fewer are independent of it.
docs/explanation/secure-aggregation.md#shares. Python's integers do not take constant time, and none is claimed.
"""

import functools
from collections.abc import Collection, Mapping, Sequence

PRIME = (1 << 128) - 159
"""The largest prime below 2**128: elements of the field have 16 bytes."""
ELEMENT_BYTES = 16
WIDE_BYTES = 32
"""So many uniform bytes modulo the prime are within 2**-128 of a uniform element."""


def element(wide: bytes) -> int:
    """Returns 32 uniform bytes as an element of the field, which is uniform up to 2**-128."""
    return int.from_bytes(wide, "big") % PRIME


def split(coefficients: Sequence[int], holders: Collection[int], prime: int = PRIME) -> dict[int, int]:
    """Returns each holder's share of the secret.

    Args:
        coefficients: the secret, then threshold - 1 uniform elements.
        holders: numbers from 0 on.
        prime: the field's order.
    """
    shares = {}
    downwards = tuple(reversed(coefficients))
    for holder in holders:
        value = 0
        for coefficient in downwards:
            value = (value * (holder + 1) + coefficient) % prime
        shares[holder] = value
    return shares


@functools.lru_cache(maxsize=256)
def _weights(holders: tuple[int, ...], prime: int) -> tuple[int, ...]:
    """Lagrange's weights at 0 for the points holder + 1; the same holders recur for client after client."""
    points = [holder + 1 for holder in holders]
    weights = []
    for here in points:
        above = below = 1
        for other in points:
            if other != here:
                above = above * other % prime
                below = below * (other - here) % prime
        weights.append(above * pow(below, -1, prime) % prime)
    return tuple(weights)


def combined(shares: Mapping[int, int], threshold: int, prime: int = PRIME) -> int:
    """Returns the secret from the shares of the `threshold` lowest holders; there must be as many at least."""
    holders = tuple(sorted(shares))[:threshold]
    if len(holders) < threshold:
        raise ValueError(f"{len(holders)} shares, and {threshold} are needed")
    return (
        sum(weight * shares[holder] for weight, holder in zip(_weights(holders, prime), holders, strict=True)) % prime
    )
