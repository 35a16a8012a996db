"""Specimens of published mechanisms that lose more than they claim: docs/errata.md, as data.

`SPECIMENS` is the closed list. A specimen is a value of a small final class, one file each, under the paper's name:

* `name`, `source`, `anchor` (its entry of docs/errata.md), `verdict` and `adjacency` say what it is;
* `claim` is an event, a budget or a function from epsilon to delta;
* `pair` is the pair of data sets on which the claim fails, and `sampler(dataset, n, rng)` draws outputs on either;
* `delta(epsilon)` is the exact loss on that pair, `witness` an epsilon at which it breaks the claim, and `rows()` the
  figures that the page shows.

A new one goes into a file of its own and into its paper's tuple; tests hold every member to the same protocol.
Finitely many outputs, and one number with Laplace noise, have their sampler and their exact loss in `outputs`.
`run_specimen` audits one by its `auditor`, and says in a `Finding` what was claimed, what holds and what was measured.
"""

from ledgerwood.verification.auditing.claims import Claim as Claim
from ledgerwood.verification.errata.auditors import default_samples as default_samples
from ledgerwood.verification.errata.auditors import find as find
from ledgerwood.verification.errata.auditors import run_specimen as run_specimen
from ledgerwood.verification.errata.base import Auditor as Auditor
from ledgerwood.verification.errata.base import Row as Row
from ledgerwood.verification.errata.base import Specimen as Specimen
from ledgerwood.verification.errata.base import Verdict as Verdict
from ledgerwood.verification.errata.dpboost import DPBOOST as DPBOOST
from ledgerwood.verification.errata.dpxgboost import DPXGBOOST as DPXGBOOST
from ledgerwood.verification.errata.federated import FEDERATED as FEDERATED
from ledgerwood.verification.errata.findings import Finding as Finding
from ledgerwood.verification.errata.peers import PEERS as PEERS
from ledgerwood.verification.errata.privatree import PRIVATREE as PRIVATREE
from ledgerwood.verification.errata.sgbdt import SGBDT as SGBDT

PAPERS: dict[str, tuple[Specimen, ...]] = {
    "sgbdt": SGBDT,
    "dpboost": DPBOOST,
    "dpxgboost": DPXGBOOST,
    "federated": FEDERATED,
    "privatree": PRIVATREE,
    "peers": PEERS,
}
"""In the order of docs/errata.md, whose text is in docs/errata/, one file a key."""
SPECIMENS: tuple[Specimen, ...] = tuple(specimen for paper in PAPERS.values() for specimen in paper)
"""Every specimen, paper by paper."""
