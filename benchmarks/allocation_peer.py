"""One price of PLD_accounting, in an environment that has it: reads a case as JSON from standard input, prints one.

Run by benchmarks.allocation, with the seconds of a core after which the system stops it. Laplace noise goes in as
dp-accounting's pessimistic loss distribution of one step, which gives an upper end only.
"""

import json
import resource
import sys
import time

from dp_accounting.pld import privacy_loss_distribution
from PLD_accounting import (
    AllocationSchemeConfig,
    dp_accounting_pmf_to_pld_realization,
    gaussian_allocation_epsilon_range,
    general_allocation_epsilon,
)

resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), int(sys.argv[1]) + 5))
case = json.load(sys.stdin)
counts = {"num_steps": case["steps"], "num_selected": case["selected"], "num_epochs": case["epochs"]}
low = None
start = time.process_time()
if case["noise"] == "gaussian":
    high, low = gaussian_allocation_epsilon_range(delta=case["delta"], sigma=case["multiplier"], **counts)
else:
    one = privacy_loss_distribution.from_laplace_mechanism(case["multiplier"], value_discretization_interval=1e-3)
    remove, add = (dp_accounting_pmf_to_pld_realization(pmf=pmf) for pmf in (one._pmf_remove, one._pmf_add))
    high = general_allocation_epsilon(
        delta=case["delta"], remove_realization=remove, add_realization=add, config=AllocationSchemeConfig(), **counts
    )
print(json.dumps({"low": low, "high": high, "seconds": time.process_time() - start}))
