"""Who shares masks with whom: all with all, or a ring of neighbours on a public random permutation.

Bell, Bonawitz, Gascon, Lepoint, Raykova (2020), "Secure single-server aggregation with (poly)logarithmic overhead",
section 3: a Harary graph whose vertices are permuted. docs/explanation/secure-aggregation.md#graph.
"""

import functools
import hashlib


@functools.lru_cache(maxsize=8)
def _ring(n: int, seed: bytes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the clients in their order on the ring, and each client's place in it."""
    order = tuple(sorted(range(n), key=lambda client: hashlib.sha256(seed + client.to_bytes(8, "big")).digest()))
    places = [0] * n
    for place, client in enumerate(order):
        places[client] = place
    return order, tuple(places)


def neighbours(client: int, n: int, degree: int, seed: bytes) -> frozenset[int]:
    """Returns the neighbours of a client: `degree` of them, and never itself.

    Args:
        client: its number, in 0 .. n - 1.
        n: the number of clients.
        degree: n - 1 for the complete graph; otherwise even: half on each side of the client's place on the ring.
        seed: public; it decides the permutation.
    """
    if degree == n - 1:
        return frozenset(range(n)) - {client}
    order, places = _ring(n, seed)
    here, side = places[client], degree // 2
    return frozenset(order[(here + step) % n] for distance in range(1, side + 1) for step in (distance, -distance))
