"""The five papers, by the name that the command line has for them."""

from benchmarks.reproduce.papers import dpboost, dpxgboost, federated, privatree, sgbdt

PAPERS = {module.PAPER.key: module.PAPER for module in (sgbdt, dpboost, dpxgboost, federated, privatree)}
