"""Specimens of published mechanisms that lose more than they claim: docs/errata.md, as data.

`SPECIMENS` is the closed list. A specimen is a value of a small final class in the module of its paper:

* `name`, `source`, `anchor` (its entry of docs/errata.md), `verdict` and `adjacency` say what it is;
* `claim` is an event, a budget or a function from epsilon to delta;
* `pair` is the pair of data sets on which the claim fails, and `sampler(dataset, n, rng)` draws outputs on either;
* `delta(epsilon)` is the exact loss on that pair, `witness` an epsilon at which it breaks the claim, and `rows()` the
  figures that the page shows.

A new one is written into its paper's module, at its place on the page, and is thereby on the list. Where several share
a shape of output, `outputs` has the sampler and the exact loss. `run_specimen` audits one by its `auditor`, and says in
a `Finding` what was claimed, what holds and what was measured.
"""

from types import ModuleType

from ledgerwood.verification.auditing.claims import Claim as Claim
from ledgerwood.verification.errata import (
    dpboost,
    dpxgboost,
    federated,
    peers,
    privatree,
    sgbdt_accounting,
    sgbdt_training,
)
from ledgerwood.verification.errata.auditors import default_samples as default_samples
from ledgerwood.verification.errata.auditors import find as find
from ledgerwood.verification.errata.auditors import run_specimen as run_specimen
from ledgerwood.verification.errata.base import Auditor as Auditor
from ledgerwood.verification.errata.base import Finding as Finding
from ledgerwood.verification.errata.base import Row as Row
from ledgerwood.verification.errata.base import Specimen as Specimen
from ledgerwood.verification.errata.base import Verdict as Verdict


def _defined_in(*modules: ModuleType) -> tuple[Specimen, ...]:
    """Every specimen that the modules of a paper define, in their order."""
    kinds = ((kind, module) for module in modules for kind in vars(module).values() if isinstance(kind, type))
    return tuple(kind() for kind, module in kinds if issubclass(kind, Specimen) and kind.__module__ == module.__name__)


SGBDT = _defined_in(sgbdt_accounting, sgbdt_training)
DPBOOST = _defined_in(dpboost)
DPXGBOOST = _defined_in(dpxgboost)
FEDERATED = _defined_in(federated)
PRIVATREE = _defined_in(privatree)
PEERS = _defined_in(peers)

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
