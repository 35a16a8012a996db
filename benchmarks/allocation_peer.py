"""One price of PLD_accounting, in an environment that has it: reads a case as JSON from standard input, prints one.

Run by benchmarks.allocation.
"""

import json
import sys
import time

from PLD_accounting import gaussian_allocation_epsilon_range

case = json.load(sys.stdin)
start = time.perf_counter()
high, low = gaussian_allocation_epsilon_range(
    delta=case["delta"],
    sigma=case["multiplier"],
    num_steps=case["steps"],
    num_selected=case["selected"],
    num_epochs=case["epochs"],
)
print(json.dumps({"low": low, "high": high, "seconds": time.perf_counter() - start}))
