"""Papers on audits and attacks."""

from ledgerwood.references.reference import Reference

CLOPPER_1934 = Reference(
    key="clopper1934confidence",
    kind="article",
    authors=("Clopper, C. J.", "Pearson, E. S."),
    title="The Use of Confidence or Fiducial Limits Illustrated in the Case of the Binomial",
    year=1934,
    venue="Biometrika",
    volume="26",
    number="4",
    pages="404-413",
    doi="10.1093/biomet/26.4.404",
)
DING_2018 = Reference(
    key="ding2018detecting",
    kind="inproceedings",
    authors=("Ding, Zeyu", "Wang, Yuxin", "Wang, Guanhong", "Zhang, Danfeng", "Kifer, Daniel"),
    title="Detecting Violations of Differential Privacy",
    year=2018,
    venue="2018 ACM SIGSAC Conference on Computer and Communications Security (CCS)",
    eprint="1805.10277",
    doi="10.1145/3243734.3243818",
)
YEOM_2018 = Reference(
    key="yeom2018privacy",
    kind="inproceedings",
    authors=("Yeom, Samuel", "Giacomelli, Irene", "Fredrikson, Matt", "Jha, Somesh"),
    title="Privacy Risk in Machine Learning: Analyzing the Connection to Overfitting",
    year=2018,
    venue="2018 IEEE 31st Computer Security Foundations Symposium (CSF)",
    pages="268-282",
    eprint="1709.01604",
)
BICHSEL_2021 = Reference(
    key="bichsel2021dpsniper",
    kind="inproceedings",
    authors=("Bichsel, Benjamin", "Steffen, Samuel", "Bogunovic, Ilija", "Vechev, Martin"),
    title="DP-Sniper: Black-Box Discovery of Differential Privacy Violations using Classifiers",
    year=2021,
    venue="IEEE Symposium on Security and Privacy (SP)",
)
CARLINI_2022 = Reference(
    key="carlini2022membership",
    kind="inproceedings",
    authors=(
        "Carlini, Nicholas", "Chien, Steve", "Nasr, Milad", "Song, Shuang", "Terzis, Andreas", "Tramèr, Florian",
    ),
    title="Membership Inference Attacks From First Principles",
    year=2022,
    venue="2022 IEEE Symposium on Security and Privacy (SP)",
    pages="1897-1914",
    eprint="2112.03570",
    doi="10.1109/SP46214.2022.9833649",
)  # fmt: skip
NASR_2023 = Reference(
    key="nasr2023tight",
    kind="inproceedings",
    authors=(
        "Nasr, Milad", "Hayes, Jamie", "Steinke, Thomas", "Balle, Borja", "Tramèr, Florian", "Jagielski, Matthew",
        "Carlini, Nicholas", "Terzis, Andreas",
    ),
    title="Tight Auditing of Differentially Private Machine Learning",
    year=2023,
    venue="USENIX Security Symposium",
)  # fmt: skip
STEINKE_2023 = Reference(
    key="steinke2023auditing",
    kind="inproceedings",
    authors=("Steinke, Thomas", "Nasr, Milad", "Jagielski, Matthew"),
    title="Privacy Auditing with One (1) Training Run",
    year=2023,
    venue="Advances in Neural Information Processing Systems (NeurIPS)",
    eprint="2305.08846",
)
ZARIFZADEH_2024 = Reference(
    key="zarifzadeh2024lowcost",
    kind="inproceedings",
    authors=("Zarifzadeh, Sajjad", "Liu, Philippe Cheng-Jie Marc", "Shokri, Reza"),
    title="Low-Cost High-Power Membership Inference Attacks",
    year=2024,
    venue="International Conference on Machine Learning (ICML)",
    eprint="2312.03262",
)
MAHLOUJIFAR_2025 = Reference(
    key="mahloujifar2025auditing",
    kind="inproceedings",
    authors=("Mahloujifar, Saeed", "Melis, Luca", "Chaudhuri, Kamalika"),
    title="Auditing f-Differential Privacy in One Run",
    year=2025,
    venue="Proceedings of the 42nd International Conference on Machine Learning, PMLR 267",
    pages="42615-42641",
    eprint="2410.22235",
)
