"""The published systems that the trainers reimplement, and what gradient boosting rests on."""

from ledgerwood.references.reference import Reference

KIRSCHTE_2023 = Reference(
    key="kirschte2023sgbdt",
    kind="misc",
    authors=(
        "Kirschte, Moritz", "Peinemann, Thorsten", "Stock, Joshua", "Cotrini, Carlos", "Mohammadi, Esfandiar",
    ),
    title="S-GBDT: Frugal Differentially Private Gradient Boosting Decision Trees",
    year=2023,
    eprint="2309.12041",
    note="Version 1; from version 3 on: S-BDT: Distributed Differentially Private Boosted Decision Trees",
)  # fmt: skip
LI_2020 = Reference(
    key="li2020dpboost",
    kind="inproceedings",
    authors=("Li, Qinbin", "Wu, Zhaomin", "Wen, Zeyi", "He, Bingsheng"),
    title="Privacy-Preserving Gradient Boosting Decision Trees",
    year=2020,
    venue="The Thirty-Fourth AAAI Conference on Artificial Intelligence (AAAI-20)",
    eprint="1911.04209",
)
GRISLAIN_2021 = Reference(
    key="grislain2021dpxgboost",
    kind="misc",
    authors=("Grislain, Nicolas", "Gonzalvez, Joan"),
    title="DP-XGBoost: Private Machine Learning at Scale",
    year=2021,
    eprint="2110.12770",
)
MADDOCK_2022 = Reference(
    key="maddock2022federated",
    kind="inproceedings",
    authors=("Maddock, Samuel", "Cormode, Graham", "Wang, Tianhao", "Maple, Carsten", "Jha, Somesh"),
    title="Federated Boosted Decision Trees with Differential Privacy",
    year=2022,
    venue="ACM Conference on Computer and Communications Security (CCS)",
    eprint="2210.02910",
)
VOS_2023 = Reference(
    key="vos2023privatree",
    kind="misc",
    authors=("Vos, Daniël", "Vos, Jelle", "Li, Tianyu", "Erkin, Zekeriya", "Verwer, Sicco"),
    title="Differentially-Private Decision Trees and Provable Robustness to Data Poisoning",
    year=2023,
    eprint="2305.15394",
)
FRIEDMAN_2001 = Reference(
    key="friedman2001greedy",
    kind="article",
    authors=("Friedman, Jerome H.",),
    title="Greedy Function Approximation: A Gradient Boosting Machine",
    year=2001,
    venue="Annals of Statistics",
    volume="29",
    number="5",
    pages="1189-1232",
    doi="10.1214/aos/1013203451",
)
CHEN_2016 = Reference(
    key="chen2016xgboost",
    kind="inproceedings",
    authors=("Chen, Tianqi", "Guestrin, Carlos"),
    title="XGBoost: A Scalable Tree Boosting System",
    year=2016,
    venue="Proceedings of the 22nd ACM SIGKDD International Conference on Knowledge Discovery and Data Mining",
    pages="785-794",
    eprint="1603.02754",
)
