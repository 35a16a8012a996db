"""S-GBDT: a row for each definition, theorem, lemma, corollary, remark and algorithm, and their studies."""

from collections.abc import Callable

from benchmarks.reproduce.items import Found, Item, Reading, Study, Verdict
from benchmarks.reproduce.judging import SLACK, covered, refuted, specimens, text
from benchmarks.reproduce.papers.sgbdt import proofs, splits

STUDIES = tuple(
    Study(name=name, run=run, seeds=0)
    for name, run in {
        "specimens": proofs.specimens,
        "neighbours": proofs.neighbours,
        "single-outputs": proofs.single_outputs,
        "renyi-integrals": proofs.renyi_by_quadrature,
        "individual-losses": proofs.individual,
        "exponential-mechanism": proofs.exponential,
        "filter-enumerated": proofs.filtered,
        "subsampling": proofs.sampling,
        "leaf-pair": proofs.leaves,
        "sampled-tree": proofs.trees,
        "post-processing": proofs.post_processing,
        "composition": proofs.adaptive,
        "amplification": proofs.amplification,
        "noise-by-rows": proofs.noise_by_rows,
        "leaf-sign": proofs.average_sign,
        "buckets": splits.buckets,
        "gridless": splits.gridless,
        "uniformity": splits.uniformity,
    }.items()
)


def within(*also: tuple[str, str], equal: bool = False) -> Callable[[Found], Reading]:
    """A reading: no exact value exceeds its printed bound; `also` are further stored values and their names.

    With `equal` none is below it, either.
    """

    def read(found: Found) -> Reading:
        inside = found["largest"] <= 1.0 + SLACK and (not equal or found["smallest"] >= 1.0 - SLACK)
        holds: Verdict = "holds" if inside else "does not hold"
        more = "".join(f"; {name} {text(found[key], 4)}" for key, name in also)
        return Reading(
            ours=f"exact / printed at most {text(found['largest'], 4)} in {found['cases']} cases{more}", verdict=holds
        )

    return read


def unsound(*names: str) -> Callable[[Found], Reading]:
    """A reading that the errata's specimens give: each was caught by an audit, and loses more than is claimed."""

    def read(found: Found) -> Reading:
        if sound := [name for name in names if found[name]["exact"] <= found[name]["claimed"]]:
            raise ValueError(f"these specimens lose no more than is claimed: {', '.join(sound)}")
        return refuted(*names)

    return read


def by_both(*names: str) -> Callable[[Found], Reading]:
    """A corrected bound that holds, beside the specimen of a misprint in the algorithm's lines."""

    def read(found: Found) -> Reading:
        sound = within()(found)
        return Reading(ours=sound.ours, as_printed=specimens(names), verdict=sound.verdict)

    return read


def sign(found: Found) -> Reading:
    """The squared error after 20 leaves, with the minus and as printed; judged as printed."""
    start, minus, printed = found["start"], found["with the minus"], found["as printed"]
    verdict: Verdict = "holds" if printed < start else "does not hold"
    return Reading(
        ours=f"with the minus, squared error {text(start)} to {text(minus)}",
        as_printed=f"{text(start)} to {text(printed)}",
        verdict=verdict,
    )


GUARANTEES = (
    Item(
        number="Definition 1",
        says="Neighbours: one data set has one row more.",
        printed="X' = X u {x}",
        sentence="Our add-remove; a leaf's pair moves by at most the sensitivity that the plan is charged for.",
        study="neighbours",
        read=within(),
    ),
    Item(
        number="Definition 2",
        says="(epsilon, delta)-differential privacy, for any observation o.",
        printed="Pr[M(X) = o] <= e^epsilon Pr[M(X') = o] + delta",
        sentence=(
            "A misprint: with delta > 0 it must be said of sets of outputs. A row published with one of 1/delta tags "
            "satisfies the printed line at epsilon 0, delta 1e-5."
        ),
        study="single-outputs",
        read=lambda found: covered(found["claimed"], found["exact"], what="delta over sets of outputs, at epsilon 0"),
        errata=("errata-sgbdt-misprints",),
    ),
    Item(
        number="Definition 3",
        says="Renyi divergence of order alpha.",
        printed="log of the integral of P^alpha / Q^(alpha - 1), over alpha - 1",
        sentence=(
            "Our divergences of sampled Gaussians are this integral, both directions (its printed limits are "
            "exchanged)."
        ),
        study="renyi-integrals",
        read=within(("smallest", "and at least"), equal=True),
        errata=("errata-sgbdt-misprints",),
    ),
    Item(
        number="Definition 4",
        says="Renyi differential privacy: the divergence of all neighbours is at most rho(alpha).",
        printed="D_alpha(M(X) || M(X')) <= rho(alpha)",
        sentence="The larger of both directions is what an event states here.",
        study="renyi-integrals",
        read=within(("smallest", "and at least")),
    ),
    Item(
        number="Theorem 5",
        says="The exponential mechanism is epsilon-differentially private.",
        printed="epsilon",
        sentence="Random utilities, and the worst case, which comes to epsilon itself.",
        study="exponential-mechanism",
        read=within(),
    ),
    Item(
        number="Definition 6",
        says="Individual Renyi differential privacy: neighbours that differ in one given row.",
        printed="D_alpha <= rho(alpha) for all neighbours that differ in x_i",
        sentence="Tables of rows' divergences against the exact ones of their own pair.",
        study="individual-losses",
        read=within(),
    ),
    Item(
        number="Theorem 7",
        says="Summing individual divergences and stopping at rho is a valid Renyi filter.",
        printed="rho(alpha)",
        sentence=(
            "Eight adaptive rounds, all outputs enumerated; without the filter the same rounds lose many times the "
            "limit."
        ),
        study="filter-enumerated",
        read=within(("without", "without the filter")),
    ),
    Item(
        number="Theorem 8",
        says="Adaptive composition with individual filters is (alpha, rho(alpha))-Renyi private.",
        printed="rho(alpha)",
        sentence="As Theorem 7, of one row's account: the other rows are the adversary's.",
        study="filter-enumerated",
        read=within(("without", "without the filter")),
    ),
    Item(
        number="Theorem 9",
        says="Poisson subsampling at rate gamma: a bound at whole orders from 2 on, with a factor 3.",
        printed="the formula with 3 times the sum from l = 3",
        sentence="Never below the exact divergence, but loose for a Gaussian, which does not need the 3.",
        study="subsampling",
        read=within(),
        errata=("errata-sgbdt-subsampling",),
    ),
    Item(
        number="Theorem 10",
        says="Gaussian noise with other variances in each coordinate: individual Renyi loss of a row.",
        printed="alpha D (sum of r_d s_d^2) / (2 sigma^2)",
        sentence="Exact. But sigma is not a noise multiplier: that one is sigma / sqrt 2.",
        study="leaf-pair",
        read=within(("smallest", "and at least")),
        errata=("errata-sgbdt-leaf-noise",),
    ),
    Item(
        number="Theorem 11",
        says="S-GBDT is (alpha, rho(alpha))-Renyi private (informal).",
        printed="a rho(alpha) for every alpha",
        sentence=(
            "The trees are; the initial score's noise has a scale that depends on the private number of rows, and no "
            "divergence of order n + 1 or more is finite."
        ),
        study="specimens",
        read=unsound("sgbdt-initial-score-count"),
        errata=("errata-sgbdt-initial-score",),
    ),
    Item(
        number="Theorem 12",
        says="Post-processing preserves Renyi privacy.",
        printed="D(f(M(X)) || f(M(X'))) <= D(M(X) || M(X'))",
        sentence="Random distributions through random channels.",
        study="post-processing",
        read=within(),
    ),
    Item(
        number="Lemma 13",
        says="Renyi privacy implies individual Renyi privacy at the same rho.",
        printed="rho(alpha)",
        sentence="A row's loss never exceeds the one of a maximally contributing row.",
        study="individual-losses",
        read=within(),
    ),
    Item(
        number="Theorem 14",
        says="Theorem 9 again, as the proofs use it.",
        printed="the formula with 3 times the sum from l = 3",
        sentence="As Theorem 9: Gaussian, Laplace and random discrete mechanisms, both directions.",
        study="subsampling",
        read=within(),
        errata=("errata-sgbdt-subsampling",),
    ),
    Item(
        number="Remark 15",
        says="Subsampling amplifies an individual bound alike.",
        printed="Theorem 14 at the row's own rho",
        sentence="Rows below the clip, at every share of count noise.",
        study="sampled-tree",
        read=within(),
    ),
    Item(
        number="Theorem 16",
        says="Adaptive sequential composition: Renyi divergences add up.",
        printed="sum of rho_i(alpha)",
        sentence="A second mechanism chosen by the first one's output; all outputs enumerated.",
        study="composition",
        read=within(),
    ),
    Item(
        number="Corollary 17",
        says="The same of individual divergences.",
        printed="sum of rho_i(alpha)",
        sentence="As Theorem 16, for one pair of neighbours.",
        study="composition",
        read=within(),
    ),
    Item(
        number="Theorem 18",
        says="From Renyi to (epsilon, delta).",
        printed="delta = min over alpha of rho(alpha) - alpha epsilon",
        sentence=(
            "The exponent must be (alpha - 1)(rho - epsilon), and a logarithm is missing. The printed epsilon falls to"
            " rho / alpha as alpha grows, whatever delta is. The authors' code has it right."
        ),
        study="specimens",
        read=unsound("sgbdt-renyi-conversion"),
        errata=("errata-sgbdt-conversion",),
    ),
    Item(
        number="Theorem 19",
        says="Algorithm 8 is (alpha, rho(alpha))-Renyi private.",
        printed="rho(alpha), and in the proof the initial score's divergence beside it",
        sentence="The filtered trees are; the initial score is not, by either printed scale.",
        study="specimens",
        read=unsound("sgbdt-initial-score-scale", "sgbdt-initial-score-count"),
        errata=("errata-sgbdt-initial-score", "errata-sgbdt-misprints"),
    ),
    Item(
        number="Theorem 20",
        says="The initial score has the Renyi divergence of a Laplace pair.",
        printed="scale m* / (|D| epsilon), shift m* / |D|",
        sentence="The proof finds the shift 2 m* / |D| and inserts half of it: the real cost is 2 epsilon.",
        study="specimens",
        read=unsound("sgbdt-initial-score-scale", "sgbdt-initial-score-count"),
        errata=("errata-sgbdt-initial-score",),
    ),
    Item(
        number="Corollary 21",
        says="Theorem 10 for the worst row: Renyi privacy of the pair.",
        printed="alpha D (sum of r_d s_d^2) / (2 sigma^2)",
        sentence="Exact, by quadrature of each coordinate.",
        study="leaf-pair",
        read=within(("smallest", "and at least")),
    ),
    Item(
        number="Corollary 22",
        says="A leaf (Algorithm 4): individual loss of a row with gradient g_i.",
        printed="alpha (r_1 + r_2 |g_i|^2) / sigma^2",
        sentence="Exact up to the clip; beyond it the row is charged for more than it contributes, which is safe.",
        study="leaf-pair",
        read=within(("clipped", "rows beyond the clip at most")),
        errata=("errata-sgbdt-subsampling",),
    ),
    Item(
        number="Theorem 23",
        says="A sampled tree (Algorithm 5): individual loss of a row.",
        printed="a_gamma(alpha, alpha (r_1 + r_2 |g_i|^2) / sigma^2)",
        sentence=(
            "The printed bound takes the divergence of the requested order in every term, which is safe, and loose."
        ),
        study="sampled-tree",
        read=within(),
        errata=("errata-sgbdt-subsampling",),
    ),
    Item(
        number="Corollary 24",
        says="A sampled tree: Renyi privacy.",
        printed="a_gamma(alpha, alpha (r_1 + r_2 g*^2) / sigma^2)",
        sentence="Theorem 23 at the clip.",
        study="sampled-tree",
        read=within(),
    ),
    Item(
        number="Definition 25",
        says="Buckets between the sorted values; the utility is constant on each.",
        printed="B_0 to B_(n+1)",
        sentence=(
            "The n + 1 intervals that it lists cover the range once (under n + 2 indices), and the gain is constant on"
            " each."
        ),
        study="buckets",
        read=within(),
        errata=("errata-sgbdt-misprints",),
    ),
    Item(
        number="Lemma 26",
        says="The grid-less exponential mechanism is epsilon-private.",
        printed="epsilon",
        sentence="Exact densities with Definition 25's buckets. With Algorithm 2's own lines it is not: see there.",
        study="gridless",
        read=within(),
        errata=("errata-sgbdt-misprints",),
    ),
    Item(
        number="Corollary 27",
        says="The improved split selection for DPBoost (Algorithm 3) is epsilon-private.",
        printed="epsilon",
        sentence="With the gain's sensitivity 3 g*^2, and one row against many of the other sign.",
        study="gridless",
        read=within(),
        errata=("errata-dpboost-loose",),
    ),
)

ALGORITHMS = (
    Item(
        number="Algorithm 1",
        says="Adaptive composition with individual filtering.",
        printed="(alpha, rho(alpha))",
        sentence="With the active set D_t (lines 6 and 7 print S_t); line 6 may be left out, too.",
        study="filter-enumerated",
        read=within(("without", "without the filter")),
        errata=("errata-sgbdt-misprints",),
    ),
    Item(
        number="Algorithm 2",
        says="Grid-less exponential mechanism.",
        printed="epsilon (Lemma 26)",
        sentence="A misprint with a price: lines 3 to 5 list the last bucket twice, and up to log 2 is lost.",
        study="specimens",
        read=unsound("sgbdt-bucket-indices"),
        errata=("errata-sgbdt-misprints",),
    ),
    Item(
        number="Algorithm 3",
        says="Improved split selection for DPBoost.",
        printed="epsilon (Corollary 27)",
        sentence="Sound with Definition 25's buckets; beside it the specimen of Algorithm 2's lines, which it calls.",
        study="gridless",
        read=by_both("sgbdt-bucket-indices"),
        errata=("errata-sgbdt-misprints",),
    ),
    Item(
        number="Algorithm 4",
        says="A leaf: noisy sum over noisy count.",
        printed="v = s / n with g = prediction - label",
        sentence=(
            "Private (Corollary 22), but a misprint: a minus is missing, and as printed each tree moves away from the "
            "labels. The code has it."
        ),
        study="leaf-sign",
        read=sign,
        errata=("errata-sgbdt-misprints",),
    ),
    Item(
        number="Algorithm 5",
        says="A tree: Poisson sample, random complete structure, leaves.",
        printed="Theorem 23",
        sentence="Sound; its leaves are Algorithm 4's.",
        study="sampled-tree",
        read=within(),
    ),
    Item(
        number="Algorithm 6",
        says="Initial score: mean with Laplace noise of scale 2 m* / (|D| epsilon).",
        printed="epsilon",
        sentence=(
            "Right for a public number of rows. Under add-remove |D| is private, and stands in the noise. Here: a "
            "noisy sum over a noisy count."
        ),
        study="specimens",
        read=unsound("sgbdt-initial-score-count"),
        errata=("errata-sgbdt-initial-score",),
    ),
    Item(
        number="Algorithm 7",
        says="Order, noise and bound for a budget.",
        printed="exp(rho(alpha) - alpha epsilon) = delta",
        sentence=(
            "Line 6 has Theorem 18's conversion. It asks for 3.57 where 11.53 is needed (epsilon .5, delta 5e-8, 150 "
            "trees at rate .1): see the column of the headlines that is named as printed."
        ),
        study="specimens",
        read=unsound("sgbdt-renyi-conversion"),
        errata=("errata-sgbdt-conversion",),
    ),
    Item(
        number="Algorithm 8",
        says="The whole training.",
        printed="Theorem 19",
        sentence="Its filter, trees and leaves are sound; lines 2 and 3 call Algorithms 7 and 6.",
        study="specimens",
        read=unsound("sgbdt-renyi-conversion", "sgbdt-initial-score-count"),
        errata=("errata-sgbdt-conversion", "errata-sgbdt-initial-score"),
    ),
)
