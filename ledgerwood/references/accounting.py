"""Papers on what a release costs: divergences, composition, sampling, filters."""

from ledgerwood.references.reference import Reference

DWORK_2006 = Reference(
    key="dwork2006calibrating",
    kind="inproceedings",
    authors=("Dwork, Cynthia", "McSherry, Frank", "Nissim, Kobbi", "Smith, Adam"),
    title="Calibrating Noise to Sensitivity in Private Data Analysis",
    year=2006,
    venue="Third Theory of Cryptography Conference (TCC 2006)",
    pages="265-284",
)
MCSHERRY_2009 = Reference(
    key="mcsherry2009privacy",
    kind="inproceedings",
    authors=("McSherry, Frank",),
    title="Privacy Integrated Queries: An Extensible Platform for Privacy-Preserving Data Analysis",
    year=2009,
    venue="Proceedings of the 2009 ACM SIGMOD International Conference on Management of Data",
    doi="10.1145/1559845.1559850",
)
KAIROUZ_2015 = Reference(
    key="kairouz2015composition",
    kind="inproceedings",
    authors=("Kairouz, Peter", "Oh, Sewoong", "Viswanath, Pramod"),
    title="The Composition Theorem for Differential Privacy",
    year=2015,
    venue="32nd International Conference on Machine Learning, ICML 2015",
    pages="1376-1385",
    eprint="1311.0776",
)
BUN_STEINKE_2016 = Reference(
    key="bun2016concentrated",
    kind="misc",
    authors=("Bun, Mark", "Steinke, Thomas"),
    title="Concentrated Differential Privacy: Simplifications, Extensions, and Lower Bounds",
    year=2016,
    eprint="1605.02065",
)
ROGERS_2016 = Reference(
    key="rogers2016odometers",
    kind="inproceedings",
    authors=("Rogers, Ryan", "Roth, Aaron", "Ullman, Jonathan", "Vadhan, Salil"),
    title="Privacy Odometers and Filters: Pay-as-you-Go Composition",
    year=2016,
    venue="Neural Information Processing Systems",
    eprint="1605.08294",
)
MIRONOV_2017 = Reference(
    key="mironov2017renyi",
    kind="inproceedings",
    authors=("Mironov, Ilya",),
    title="Rényi Differential Privacy",
    year=2017,
    venue="30th IEEE Computer Security Foundations Symposium (CSF)",
    pages="263-275",
    eprint="1702.07476",
)
BALLE_WANG_2018 = Reference(
    key="balle2018improving",
    kind="inproceedings",
    authors=("Balle, Borja", "Wang, Yu-Xiang"),
    title="Improving the Gaussian Mechanism for Differential Privacy: Analytical Calibration and Optimal Denoising",
    year=2018,
    venue="International Conference on Machine Learning (ICML)",
    eprint="1805.06530",
)
BALLE_BARTHE_GABOARDI_2018 = Reference(
    key="balle2018subsampling",
    kind="inproceedings",
    authors=("Balle, Borja", "Barthe, Gilles", "Gaboardi, Marco"),
    title="Privacy Amplification by Subsampling: Tight Analyses via Couplings and Divergences",
    year=2018,
    venue="Advances in Neural Information Processing Systems (NeurIPS)",
    eprint="1807.01647",
)
MIRONOV_TALWAR_ZHANG_2019 = Reference(
    key="mironov2019sampled",
    kind="misc",
    authors=("Mironov, Ilya", "Talwar, Kunal", "Zhang, Li"),
    title="Rényi Differential Privacy of the Sampled Gaussian Mechanism",
    year=2019,
    eprint="1908.10530",
)
CANONNE_2020 = Reference(
    key="canonne2020discrete",
    kind="inproceedings",
    authors=("Canonne, Clément L.", "Kamath, Gautam", "Steinke, Thomas"),
    title="The Discrete Gaussian for Differential Privacy",
    year=2020,
    venue="Advances in Neural Information Processing Systems 33 (NeurIPS 2020)",
    pages="15676-15688",
    eprint="2004.00010",
)
FELDMAN_ZRNIC_2021 = Reference(
    key="feldman2021individual",
    kind="inproceedings",
    authors=("Feldman, Vitaly", "Zrnic, Tijana"),
    title="Individual Privacy Accounting via a Rényi Filter",
    year=2021,
    venue="Advances in Neural Information Processing Systems (NeurIPS)",
    eprint="2008.11193",
)
DONG_2022 = Reference(
    key="dong2022gaussian",
    kind="article",
    authors=("Dong, Jinshuo", "Roth, Aaron", "Su, Weijie J."),
    title="Gaussian Differential Privacy",
    year=2022,
    venue="Journal of the Royal Statistical Society: Series B (Statistical Methodology)",
    volume="84",
    number="1",
    pages="3-37",
    eprint="1905.02383",
)
DOROSHENKO_2022 = Reference(
    key="doroshenko2022connect",
    kind="misc",
    authors=("Doroshenko, Vadym", "Ghazi, Badih", "Kamath, Pritish", "Kumar, Ravi", "Manurangsi, Pasin"),
    title="Connect the Dots: Tighter Discrete Approximations of Privacy Loss Distributions",
    year=2022,
    eprint="2207.04380",
    note="PETS 2022",
)
ZHU_2022 = Reference(
    key="zhu2022optimal",
    kind="misc",
    authors=("Zhu, Yuqing", "Dong, Jinshuo", "Wang, Yu-Xiang"),
    title="Optimal Accounting of Differential Privacy via Characteristic Function",
    year=2022,
    eprint="2106.08567",
    note="First version: 2021",
)
SMITH_THAKURTA_2022 = Reference(
    key="smith2022fully",
    kind="misc",
    authors=("Smith, Adam", "Thakurta, Abhradeep"),
    title="Fully Adaptive Composition for Gaussian Differential Privacy",
    year=2022,
    eprint="2210.17520",
)
KOSKELA_2023 = Reference(
    key="koskela2023individual",
    kind="inproceedings",
    authors=("Koskela, Antti", "Tobaben, Marlon", "Honkela, Antti"),
    title="Individual Privacy Accounting with Gaussian Differential Privacy",
    year=2023,
    venue="The Eleventh International Conference on Learning Representations (ICLR)",
    eprint="2209.15596",
)
WHITEHOUSE_2023 = Reference(
    key="whitehouse2023fully",
    kind="inproceedings",
    authors=("Whitehouse, Justin", "Ramdas, Aaditya", "Rogers, Ryan", "Wu, Zhiwei Steven"),
    title="Fully-Adaptive Composition in Differential Privacy",
    year=2023,
    venue="Proceedings of the 40th International Conference on Machine Learning, PMLR 202",
    pages="36990-37007",
)
GANESH_2024 = Reference(
    key="ganesh2024tight",
    kind="misc",
    authors=("Ganesh, Arun",),
    title="Tight Group-Level DP Guarantees for DP-SGD with Sampling via Mixture of Gaussians Mechanisms",
    year=2024,
    eprint="2401.10294",
)
FELDMAN_SHENFELD_2025 = Reference(
    key="feldman2025allocation",
    kind="misc",
    authors=("Feldman, Vitaly", "Shenfeld, Moshe"),
    title="Privacy Amplification by Random Allocation",
    year=2025,
    eprint="2502.08202",
)
