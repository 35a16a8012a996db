"""Papers on how noise is made and choices are drawn."""

from ledgerwood.references.reference import Reference

WARNER_1965 = Reference(
    key="warner1965randomized",
    kind="article",
    authors=("Warner, Stanley L.",),
    title="Randomized Response: A Survey Technique for Eliminating Evasive Answer Bias",
    year=1965,
    venue="Journal of the American Statistical Association",
    volume="60",
    number="309",
    pages="63-69",
)
MCSHERRY_TALWAR_2007 = Reference(
    key="mcsherry2007mechanism",
    kind="inproceedings",
    authors=("McSherry, Frank", "Talwar, Kunal"),
    title="Mechanism Design via Differential Privacy",
    year=2007,
    venue="48th Annual IEEE Symposium on Foundations of Computer Science (FOCS)",
    pages="94-103",
)
GHOSH_2009 = Reference(
    key="ghosh2009universally",
    kind="misc",
    authors=("Ghosh, Arpita", "Roughgarden, Tim", "Sundararajan, Mukund"),
    title="Universally Utility-Maximizing Privacy Mechanisms",
    year=2009,
    eprint="0811.2841",
    note="SIAM Journal on Computing 41(6), pages 1673-1693, 2012",
)
KOROLOVA_2009 = Reference(
    key="korolova2009releasing",
    kind="inproceedings",
    authors=("Korolova, Aleksandra", "Kenthapadi, Krishnaram", "Mishra, Nina", "Ntoulas, Alexandros"),
    title="Releasing Search Queries and Clicks Privately",
    year=2009,
    venue="18th International World Wide Web Conference",
    pages="171",
)
SMITH_2011 = Reference(
    key="smith2011privacy",
    kind="inproceedings",
    authors=("Smith, Adam",),
    title="Privacy-Preserving Statistical Estimation with Optimal Convergence Rates",
    year=2011,
    venue="Proceedings of the Forty-Third Annual ACM Symposium on Theory of Computing (STOC)",
    pages="813-822",
)
DWORK_ROTH_2014 = Reference(
    key="dwork2014algorithmic",
    kind="article",
    authors=("Dwork, Cynthia", "Roth, Aaron"),
    title="The Algorithmic Foundations of Differential Privacy",
    year=2014,
    venue="Foundations and Trends in Theoretical Computer Science",
    volume="9",
    number="3-4",
    pages="211-407",
    doi="10.1561/0400000042",
)
GENG_2014 = Reference(
    key="geng2014optimal",
    kind="inproceedings",
    authors=("Geng, Quan", "Viswanath, Pramod"),
    title="The Optimal Mechanism in Differential Privacy",
    year=2014,
    venue="IEEE International Symposium on Information Theory (ISIT)",
    doi="10.1109/isit.2014.6875258",
)
BUN_NISSIM_STEMMER_2016 = Reference(
    key="bun2016simultaneous",
    kind="inproceedings",
    authors=("Bun, Mark", "Nissim, Kobbi", "Stemmer, Uri"),
    title="Simultaneous Private Learning of Multiple Concepts",
    year=2016,
    venue="Proceedings of the 2016 ACM Conference on Innovations in Theoretical Computer Science",
    pages="369-380",
    eprint="1511.08552",
)
KAIROUZ_2016 = Reference(
    key="kairouz2016discrete",
    kind="inproceedings",
    authors=("Kairouz, Peter", "Bonawitz, Keith", "Ramage, Daniel"),
    title="Discrete Distribution Estimation under Local Privacy",
    year=2016,
    venue="Proceedings of the 33rd International Conference on Machine Learning",
    eprint="1602.07387",
)
LYU_2017 = Reference(
    key="lyu2017understanding",
    kind="article",
    authors=("Lyu, Min", "Su, Dong", "Li, Ninghui"),
    title="Understanding the Sparse Vector Technique for Differential Privacy",
    year=2017,
    venue="Proceedings of the VLDB Endowment",
    volume="10",
    number="6",
    pages="637-648",
    eprint="1603.01699",
    doi="10.14778/3055330.3055331",
)
DURFEE_2019 = Reference(
    key="durfee2019practical",
    kind="inproceedings",
    authors=("Durfee, David", "Rogers, Ryan M."),
    title="Practical Differentially Private Top-k Selection with Pay-what-you-get Composition",
    year=2019,
    venue="Advances in Neural Information Processing Systems 32 (NeurIPS 2019)",
    pages="3532-3542",
)
LIU_2019 = Reference(
    key="liu2019private",
    kind="inproceedings",
    authors=("Liu, Jingcheng", "Talwar, Kunal"),
    title="Private Selection from Private Candidates",
    year=2019,
    venue="Proceedings of the 51st Annual ACM SIGACT Symposium on Theory of Computing",
    pages="298-309",
    eprint="1811.07971",
)
DONG_DURFEE_ROGERS_2020 = Reference(
    key="dong2020optimal",
    kind="inproceedings",
    authors=("Dong, Jinshuo", "Durfee, David", "Rogers, Ryan"),
    title="Optimal Differential Privacy Composition for Exponential Mechanisms",
    year=2020,
    venue="International Conference on Machine Learning (ICML)",
    pages="2597-2606",
    eprint="1909.13830",
)
GENG_2020 = Reference(
    key="geng2020tight",
    kind="inproceedings",
    authors=("Geng, Quan", "Ding, Wei", "Guo, Ruiqi", "Kumar, Sanjiv"),
    title="Tight Analysis of Privacy and Utility Tradeoff in Approximate Differential Privacy",
    year=2020,
    venue="Proceedings of the 23rd International Conference on Artificial Intelligence and Statistics, PMLR 108",
    pages="89-99",
    eprint="1810.00877",
)
MCKENNA_2020 = Reference(
    key="mckenna2020permute",
    kind="inproceedings",
    authors=("McKenna, Ryan", "Sheldon, Daniel R."),
    title="Permute-and-Flip: A New Mechanism for Differentially Private Selection",
    year=2020,
    venue="Advances in Neural Information Processing Systems 33 (NeurIPS 2020)",
    eprint="2010.12603",
)
AGARWAL_2021 = Reference(
    key="agarwal2021skellam",
    kind="inproceedings",
    authors=("Agarwal, Naman", "Kairouz, Peter", "Liu, Ziyu"),
    title="The Skellam Mechanism for Differentially Private Federated Learning",
    year=2021,
    venue="Advances in Neural Information Processing Systems (NeurIPS)",
    eprint="2110.04995",
)
GILLENWATER_2021 = Reference(
    key="gillenwater2021quantiles",
    kind="inproceedings",
    authors=("Gillenwater, Jennifer", "Joseph, Matthew", "Kulesza, Alex"),
    title="Differentially Private Quantiles",
    year=2021,
    venue="International Conference on Machine Learning (ICML)",
    eprint="2102.08244",
)
PAPERNOT_2022 = Reference(
    key="papernot2022hyperparameter",
    kind="inproceedings",
    authors=("Papernot, Nicolas", "Steinke, Thomas"),
    title="Hyperparameter Tuning with Renyi Differential Privacy",
    year=2022,
    venue="International Conference on Learning Representations (ICLR)",
    eprint="2110.03620",
)
