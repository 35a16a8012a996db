"""What a server sees besides the sum is uniform, and does not depend on who contributed what to the sum."""

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from ledgerwood.secure_aggregation import SumTerms
from ledgerwood.secure_aggregation.graph import neighbours
from ledgerwood.secure_aggregation.keys import self_mask_key
from ledgerwood.secure_aggregation.masks import Masker, pair_sign
from ledgerwood.secure_aggregation.shares import combined

# ---- the pairwise mask lemma, by all masks of a small ring of integers


def views(n, modulus, values, edges):
    """How often each view of unmasked uploads occurs over all masks of the pairs: the exact distribution."""
    found = Counter()
    for masks in itertools.product(range(modulus), repeat=len(edges)):
        view = list(values)
        for (i, j), mask in zip(edges, masks, strict=True):
            view[i] += pair_sign(i, j) * mask
            view[j] += pair_sign(j, i) * mask
        found[tuple(part % modulus for part in view)] += 1
    return found


GRAPHS = {
    "complete 3": (3, [(0, 1), (0, 2), (1, 2)]),
    "complete 4": (4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
    "path": (4, [(0, 1), (1, 2), (2, 3)]),
    "ring": (5, [(i, j) for i in range(5) for j in neighbours(i, 5, 2, b"seed") if i < j]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_inputs_of_equal_sum_give_equal_views_where_the_graph_is_connected(name):
    n, edges = GRAPHS[name]
    one, two = [3, 1, 2, 0, 1][:n], [0] * n
    two[-1] = sum(one)
    first, second = views(n, 4, one, edges), views(n, 4, two, edges)
    assert first == second
    assert len(first) == 4 ** (n - 1), "every view with this sum occurs"
    assert len(set(first.values())) == 1, "equally often"
    assert {sum(view) % 4 for view in first} == {sum(one) % 4}


def test_a_graph_in_two_parts_tells_two_sums_apart():
    edges = [(0, 1), (2, 3)]
    one, two = views(4, 4, [1, 0, 0, 0], edges), views(4, 4, [0, 0, 1, 0], edges)
    assert not set(one) & set(two), "the test can see a graph that is not connected"


# ---- the uploads of the real protocol


def unmasked_views(session, values, rounds):
    """What the server has of each client once self-masks are open: the vector and the masks of pairs."""
    terms, roster = session.terms, session.roster
    found = []
    for number in range(1, rounds + 1):
        context, live = session.context(round=number), session.everyone
        uploads = {i: session.upload(i, context, live, values[i]) for i in range(session.n)}
        server = session.server(context, length=len(values[0]))
        for i, upload in uploads.items():
            server.add(i, upload)
        server.close()
        for i in range(session.n):
            session.unmask(i, server)
        row = []
        for i in range(session.n):
            view = uploads[i].values.copy()
            secret = combined(server._opened[i], terms.threshold).to_bytes(16, "big")
            Masker(view).add(self_mask_key(secret, context.digest(roster.setting(terms)), i), -1)
            row.append(view)
        assert (sum(row) == sum(values)).all(), "the masks of pairs cancel"
        found.append((row, [uploads[i].values for i in range(session.n)]))
    return found


def uniform(words, level=1e-6):
    """Chi-square tests of every byte of these words and of pairs of bits: all of them pass at this level."""
    words = np.ascontiguousarray(words, dtype="<u8")
    bytes_of = words.view(np.uint8).reshape(-1, 8)
    tests = [stats.chisquare(np.bincount(bytes_of[:, place], minlength=256)).pvalue for place in range(8)]
    return min(tests) > level / len(tests)


@pytest.fixture(scope="module", params=[None, 2], ids=["complete", "ring"])
def seen(request, session_of):
    """40 rounds of 400 integers of four clients: once of one, once of others with the same sum."""
    terms = SumTerms(n_clients=4, degree=request.param or 3, threshold=3 if request.param is None else 2)
    small = np.arange(400, dtype=np.uint64) % np.uint64(5)
    zero = np.zeros(400, dtype=np.uint64)
    one, two = [small, zero, zero, zero], [zero, zero, small - np.uint64(7), zero + np.uint64(7)]
    return [unmasked_views(session_of(terms=terms, seed=seed), values, 40) for seed, values in ((1, one), (2, two))]


def test_uploads_are_uniform_and_independent_of_each_other(seen):
    for side in seen:
        uploads = [np.concatenate([row[1][i] for row in side]) for i in range(4)]
        assert all(uniform(words) for words in uploads)
        assert all(uniform(a + b) and uniform(a - b) for a, b in itertools.combinations(uploads, 2))
        assert uniform(sum(uploads)), "before self-masks are open, not even the sum is seen"


def test_unmasked_uploads_are_uniform_but_for_their_sum(seen):
    """Any three of four are uniform together, for either of two inputs with equal sums; all four have that sum."""
    for side in seen:
        views = [np.concatenate([row[0][i] for row in side]) for i in range(4)]
        assert all(uniform(words) for words in views)
        assert all(uniform(a + b) and uniform(a - b) for a, b in itertools.combinations(views, 2))
        assert all(uniform(a + b + c) for a, b, c in itertools.combinations(views, 3))
        assert not uniform(sum(views)), "and the test can tell what is not uniform"


def test_two_inputs_of_equal_sum_have_views_of_one_distribution(seen):
    """A homogeneity test of joint bins of three clients' views: top bits of each, 512 cells."""
    tables = []
    for side in seen:
        views = [np.concatenate([row[0][i] for row in side]) >> np.uint64(61) for i in range(3)]
        cells = (views[0] * np.uint64(64) + views[1] * np.uint64(8) + views[2]).astype(np.int64)
        tables.append(np.bincount(cells, minlength=512))
    assert stats.chi2_contingency(np.array(tables)).pvalue > 1e-6


def test_the_upload_of_a_dropped_client_stays_masked_though_its_pairs_are_revealed(session_of):
    """A late upload: all keys of its pairs are known to the server, and its self-mask still hides it."""
    session = session_of(4)
    late = []
    for number in range(1, 41):
        context = session.context(round=number)
        server = session.server(context, length=400)
        upload = session.upload(3, context, session.everyone, np.zeros(400, dtype=np.uint64))
        for i in range(3):
            server.add(i, session.upload(i, context, session.everyone, np.zeros(400, dtype=np.uint64)))
        server.close()
        view = upload.values.copy()
        for i in range(3):
            keys = session.clients[i].pair_keys(context, server.live, server.uploaded)
            Masker(view).add(keys[3], pair_sign(i, 3))
        late.append(view)
    assert uniform(np.concatenate(late))


def test_masks_of_rounds_and_attempts_are_independent(session_of):
    """Differences of one client's uploads, of equal values, over rounds and attempts."""
    session = session_of(3)
    values = np.zeros(4_000, dtype=np.uint64)
    contexts = [session.context(round=r, attempt=a) for r in (1, 2) for a in (1, 2)]
    found = [session.upload(0, context, session.everyone, values).values for context in contexts]
    assert all(uniform(a - b) and uniform(a + b) for a, b in itertools.combinations(found, 2))
