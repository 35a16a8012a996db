"""Terms and graphs: probabilities beside enumeration and beside a plain count of what random permutations do."""

import hashlib
import itertools
import math
import random
import re
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledgerwood.errors import InvalidParameter
from ledgerwood.secure_aggregation import Roster, SumTerms, terms
from ledgerwood.secure_aggregation.graph import neighbours


def adjacent(n, degree, seed=b"seed"):
    return [neighbours(i, n, degree, seed) for i in range(n)]


def connected(members, graph):
    members = set(members)
    if not members:
        return True
    seen, frontier = set(), [min(members)]
    while frontier:
        here = frontier.pop()
        if here not in seen:
            seen.add(here)
            frontier.extend(graph[here] & members)
    return seen == members


@pytest.mark.parametrize(("n", "degree"), [(2, 1), (3, 2), (5, 4), (6, 5), (5, 2), (9, 4), (30, 8), (101, 60), (7, 4)])
def test_the_graph_is_symmetric_regular_and_connected(n, degree):
    graph = adjacent(n, degree)
    assert all(len(found) == degree and i not in found for i, found in enumerate(graph))
    assert all(i in graph[j] for i in range(n) for j in graph[i])
    assert connected(range(n), graph)


def test_the_permutation_is_of_the_seed_and_near_to_uniform():
    assert adjacent(20, 4, b"a") == adjacent(20, 4, b"a") != adjacent(20, 4, b"b")
    # pairs of 6 clients are neighbours on a ring of degree 2 with probability 2/5: 4,000 rings, 5 standard deviations
    counts = dict.fromkeys(itertools.combinations(range(6), 2), 0)
    for seed in range(4_000):
        graph = adjacent(6, 2, seed.to_bytes(4, "big"))
        for i, j in counts:
            counts[i, j] += j in graph[i]
    spread = 5 * math.sqrt(4_000 * 0.4 * 0.6)
    assert all(abs(count - 1_600) < spread for count in counts.values())


def test_only_two_gaps_can_split_a_ring():
    """The lemma behind the bound, by all subsets of a ring: a split needs two disjoint stretches of degree / 2."""
    n, degree = 11, 4
    order = sorted(range(n), key=lambda i: hashlib.sha256(b"seed" + i.to_bytes(8, "big")).digest())
    graph, side, splits = adjacent(n, degree), degree // 2, 0
    for size in range(n + 1):
        for gone in itertools.combinations(range(n), size):
            left = set(range(n)) - set(gone)
            if not connected(left, graph):
                splits += 1
                starts = [p for p in range(n) if all(order[(p + s) % n] in gone for s in range(side))]
                assert any(side <= (b - a) % n <= n - side for a in starts for b in starts)
    assert splits > 0


def ring_counts(n, degree, threshold, corrupt, lost):
    """Over all placements of colluders and dropouts on a small ring: how often each failure happens."""
    side = degree // 2
    near = [{(p + s) % n for s in range(-side, side + 1)} - {p} for p in range(n)]
    exposed = split = short = total = 0
    for bad in itertools.combinations(range(n), corrupt):
        for gone in itertools.combinations(sorted(set(range(n)) - set(bad)), lost):
            total += 1
            exposed += any(len(near[p] & set(bad)) >= threshold for p in range(n) if p not in bad)
            split += not connected(set(range(n)) - set(bad) - set(gone), near)
            short += any(len((near[p] | {p}) - set(gone)) < threshold for p in range(n))
    return Fraction(exposed, total), Fraction(split, total), Fraction(short, total)


@pytest.mark.parametrize(
    ("n", "degree", "threshold", "corrupt", "lost"),
    [
        (9, 4, 3, 2, 2), (9, 4, 3, 3, 2), (10, 4, 4, 4, 1), (8, 2, 2, 2, 2), (9, 6, 5, 3, 3), (10, 4, 3, 1, 4),
        (9, 4, 3, 0, 4),
    ],
)  # fmt: skip
def test_the_bounds_hold_on_rings_by_enumeration(n, degree, threshold, corrupt, lost):
    exposed, split, short = ring_counts(n, degree, threshold, corrupt, lost)
    found = SumTerms(n_clients=n, degree=degree, threshold=threshold).risks(colluding=corrupt / n, dropouts=lost / n)
    assert exposed + split <= found.privacy
    assert exposed <= terms._exposed(n, degree, threshold, corrupt)
    assert split <= terms._split(n, degree, corrupt + lost)
    assert short <= found.correctness
    for true, bound in ((exposed, terms._exposed(n, degree, threshold, corrupt)), (short, found.correctness)):
        assert (true == 0) == (bound == 0)
        assert bound <= n * true  # a union over n clients exceeds by no more than that


def test_the_tail_is_hypergeometric_by_enumeration():
    for population, marked, drawn in [(7, 3, 4), (8, 0, 3), (6, 6, 2), (9, 5, 5)]:
        hits = [len(set(found) & set(range(marked))) for found in itertools.combinations(range(population), drawn)]
        for least in range(-1, drawn + 2):
            expected = Fraction(sum(hit >= least for hit in hits), len(hits))
            assert terms._tail(population, marked, drawn, least) == expected


@pytest.mark.parametrize("n", [101, 300, 1000])
@pytest.mark.parametrize(("colluding", "dropouts"), [(0.0, 0.0), (0.1, 0.1), (0.2, 0.1), (0.02, 0.2)])
def test_rings_keep_both_probabilities_and_a_smaller_degree_does_not(n, colluding, dropouts):
    found = SumTerms.for_clients(n, colluding=colluding, dropouts=dropouts)
    risks = found.risks(colluding=colluding, dropouts=dropouts)
    assert risks.privacy <= Fraction(1, 2**40)
    assert risks.correctness <= Fraction(1, 2**30)
    assert not found.complete
    assert found.min_survivors >= n - int(dropouts * n) or found.min_survivors == found.threshold
    corrupt, lost = round(colluding * n), round(dropouts * n)
    if found.degree > 2:
        smaller = found.degree - 2
        split = terms._split(n, smaller, corrupt + lost)
        assert all(
            terms._exposed(n, smaller, t, corrupt) + split > Fraction(1, 2**40)
            or terms._short(n, smaller, t, lost) > Fraction(1, 2**30)
            for t in range(smaller // 2 + 1, smaller + 2)
        )


def test_a_ring_of_random_permutations_fails_as_rarely_as_bounded():
    """10,000 random placements on a ring whose bounds are large enough to be seen."""
    n, degree, threshold, corrupt = 40, 8, 5, 8
    rng, fails = random.Random(5), 0
    near = [{(p + s) % n for s in range(-4, 5)} - {p} for p in range(n)]
    for _ in range(10_000):
        places = rng.sample(range(n), corrupt)
        fails += any(len(near[p] & set(places)) >= threshold for p in range(n) if p not in places)
    bound = float(terms._exposed(n, degree, threshold, corrupt))
    assert 0 < fails / 10_000 <= bound + 5 * math.sqrt(bound / 10_000)


@pytest.mark.parametrize(("n", "threshold"), [(2, 2), (3, 2), (4, 3), (5, 3), (12, 7), (100, 51)])
def test_few_clients_share_with_everybody(n, threshold):
    found = SumTerms.for_clients(n)
    assert (found.degree, found.threshold, found.min_survivors, found.complete) == (n - 1, threshold, threshold, True)
    assert found.risks() == terms.SumRisks(privacy=Fraction(0), correctness=Fraction(0))


@pytest.mark.parametrize(("n", "colluding", "threshold"), [(3, 0, 3), (4, 0, 3), (6, 0, 5), (10, 0.3, 7), (10, 0.5, 8)])
def test_active_sessions_have_thresholds_above_two_thirds(n, colluding, threshold):
    found = SumTerms.for_clients(n, colluding=colluding, active=True)
    assert found.threshold == threshold
    assert 3 * threshold > 2 * n
    assert 2 * threshold > n + int(colluding * n)
    assert found.risks(colluding=colluding).privacy == 0


def test_colluders_raise_the_threshold():
    assert SumTerms.for_clients(10, colluding=0.7).threshold == 8
    assert SumTerms.for_clients(10, colluding=0.7).risks(colluding=0.8).privacy == 1
    assert SumTerms.for_clients(10, active=True).risks(colluding=0.4).privacy == 1


@pytest.mark.parametrize(
    "options", [{"dropouts": 0.6}, {"colluding": 0.8, "dropouts": 0.3}, {"active": True, "dropouts": 0.4}]
)
def test_what_cannot_be_had_is_refused_with_its_numbers(options):
    with pytest.raises(InvalidParameter, match=r"of 10 clients leave \d who answer, and with .* must"):
        SumTerms.for_clients(10, **options)


@pytest.mark.parametrize(
    "fields",
    [
        {"n_clients": 1}, {"n_clients": 2**20 + 1}, {"degree": 3}, {"degree": 6}, {"degree": 0}, {"threshold": 3},
        {"threshold": 7}, {"active": 1}, {"degree": 4, "threshold": 4, "active": True},
        {"threshold": 4, "active": True}, {"min_survivors": 3}, {"min_survivors": 7}, {"n_clients": True},
        {"threshold": 4.5},
    ],
)  # fmt: skip
def test_terms_outside_their_bounds(fields):
    with pytest.raises(InvalidParameter):
        SumTerms(**{"n_clients": 6, "degree": 5, "threshold": 4} | fields)


@pytest.mark.parametrize("options", [{"colluding": 1.0}, {"dropouts": -0.1}, {"colluding": math.nan}, {"active": 1}])
def test_fractions_outside_their_bounds(options):
    with pytest.raises(InvalidParameter):
        SumTerms.for_clients(10, **options)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 60), st.floats(0, 0.4), st.floats(0, 0.3), st.booleans())
def test_what_is_planned_for_is_tolerated(n, colluding, dropouts, active):
    try:
        found = SumTerms.for_clients(n, colluding=colluding, dropouts=dropouts, active=active)
    except InvalidParameter:
        return
    risks = found.risks(colluding=colluding, dropouts=dropouts)
    assert (risks.privacy, risks.correctness) == (0, 0)


def test_three_tenths_of_ten_clients_are_three():
    assert SumTerms.for_clients(10, dropouts=0.3, colluding=0.6).threshold == 7


def test_a_roster_knows_its_graph():
    found = SumTerms(n_clients=9, degree=4, threshold=3)
    one, two = (Roster(session=b"s", keys=tuple(bytes([i, tag]) * 16 for i in range(9))) for tag in (1, 2))
    assert one.digest != two.digest
    assert one.holders(3, found) == one.neighbours(3, found) | {3}
    assert any(one.neighbours(i, found) != two.neighbours(i, found) for i in range(9))
    assert Roster(session=b"s", keys=(b"", b"k" * 32)).joined == {1}


@pytest.mark.parametrize(
    "fields",
    [
        {"keys": (b"a" * 31,)}, {"keys": (b"a" * 32, b"a" * 32)}, {"session": b""}, {"keys": ("a" * 32,)},
        {"signatures": (b"s" * 64, b"s" * 64)}, {"signatures": (b"s" * 63,)}, {"signatures": (b"",)},
    ],
)  # fmt: skip
def test_a_malformed_roster(fields):
    with pytest.raises(InvalidParameter):
        Roster(**{"session": b"s", "keys": (b"k" * 32,)} | fields)


def test_the_page_s_table_is_what_the_terms_are():
    page = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "secure-aggregation.md"
    rows = re.findall(r"^\| ([\d,]+) \| (\d+) % \| (\d+) % \| (\d+) \| (\d+) \|$", page.read_text(), re.MULTILINE)
    assert len(rows) == 7
    for n, colluding, dropouts, degree, threshold in rows:
        found = SumTerms.for_clients(
            int(n.replace(",", "")), colluding=int(colluding) / 100, dropouts=int(dropouts) / 100
        )
        assert (found.degree, found.threshold) == (int(degree), int(threshold))
