"""DP-XGBoost's rows for figures and headlines: what is printed, and how stored values are judged."""

from collections.abc import Callable
from dataclasses import replace

from benchmarks.dpxgboost import AS_PRINTED
from benchmarks.reproduce import judging
from benchmarks.reproduce.items import Found, Item, Reading, Verdict
from benchmarks.reproduce.judging import text
from benchmarks.reproduce.papers.dpboost.readings import above, means, table_means

Read = Callable[[Found], Reading]
FULL_SIZE = "1,000,000 x 400, four fifths for training; both sound, with their papers' settings."
POINTS = "The figure's points are not printed as numbers; the text's claim is judged."
POINT = 1.0
CODE = "official code, live (its accounting)"
ADULT = {"eps 1": "24", "eps 2": "18", "eps 4": "19", "eps 6": "19", "eps 8": "18", "eps 10": "18"}
ABALONE = {"eps 1": "6", "eps 2": "5.5", "eps 4": "3.2", "eps 6": "2.7", "eps 8": "2.6", "eps 10": "2.4"}
CLASSES = {1.0: 12.0, 10.0: 8.0}
NUMBERS = {1.0: 86.4, 10.0: 60.0}
NUMBERS_PLAIN = 24.1
"""Printed RMSE without privacy."""


def marginal(name: str) -> Read:
    """Figure 1: accuracy by bins is at most a point, and two standard errors, below exact quantiles."""

    def read(found: Found) -> Reading:
        entry = found[name]
        exact = judging.cell_mean(entry["exact"], 1, entry["splits"])
        cells, far = [], []
        for bins, cell in zip(entry["bins"], entry["cells"], strict=True):
            own = judging.cell_mean(cell, 1, entry["splits"])
            cells.append(f"{bins} bins: {own}")
            error = (own.error**2 + exact.error**2) ** 0.5
            far.append(100.0 * (exact.value - own.value - judging.ERRORS * error) > POINT)
        said = f"accuracy {'; '.join(cells)}; exact quantiles {exact}"
        return Reading(ours=said, verdict="does not hold" if any(far) else "holds")

    return read


def better_leaves(sound: bool) -> Read:
    """Figure 2: minimum weights (and NoisyAverage) have a lower error than the noise for any leaf."""

    def read(found: Found) -> Reading:
        entry = found["electricity"]
        first, *others = entry["methods"]
        own = means(entry["methods"][first], entry)
        gaps, cells = {}, {}
        for other in (name for name in others if name.startswith("UNSOUND") is not sound):
            rival = means(entry["methods"][other], entry)
            for point, gap in means(entry["first less"][other], entry).items():
                gaps[f"{point}, {other}"] = gap
                cells[f"{point}, {other}"] = f"{rival[point]} / {own[point]}"
        return judging.paired(gaps, higher=True, cells=cells, names=("test error, %: that", first))

    return read


def table(name: str, points: dict[str, str]) -> Read:
    """Figure 4: the paper's settings, sound and as printed, beside each printed error."""

    def read(found: Found) -> Reading:
        own, unsound = (table_means(found[name], method) for method in ("paper", AS_PRINTED))
        reading = judging.reached(points, own, higher=False, as_printed=unsound)
        code = "; ".join(f"{point}: {mean}" for point, mean in table_means(found[name], CODE).items())
        return replace(reading, as_printed=f"{reading.as_printed}. The released code, by its accounting: {code}")

    return read


def defaults(name: str, points: dict[str, str]) -> Read:
    """The same with our defaults."""
    return lambda found: judging.reached(points, table_means(found[name], "defaults"), higher=False)


def whole(kind: str, points: dict[float, float], measure: str) -> Read:
    """Figure 4, synthetic sets at their size: one fit each, judged within half a unit of the printed values.

    Numbers have another scale of labels perhaps, so that both are taken over what is not private.
    """

    def read(found: Found) -> Reading:
        entry = found[kind]
        cells = [f"eps {c['epsilon']:g}: {text(c['error'])}" for c in entry["methods"]["DP-XGBoost"]]
        plain = entry["not private"]
        ours, theirs = (plain["error"], NUMBERS_PLAIN) if measure == "RMSE" else (1.0, 1.0)
        reached = all(
            c["error"] / ours <= (points[c["epsilon"]] + 0.5) / theirs for c in entry["methods"]["DP-XGBoost"]
        )
        said = f"; not private, {plain['rows']:,} rows: {text(plain['error'])}; trivial {text(entry['trivial'])}"
        memory = f"; {entry['anonymous bytes'] / 2**30:.2f} GiB"
        seconds = [c["seconds a tree"] for c in entry["methods"]["DP-XGBoost"]]
        times = f"; {min(seconds):.1f} s a tree"
        return Reading(
            ours=f"{measure}: " + "; ".join(cells) + said + memory + times,
            verdict="holds" if reached else "does not hold",
        )

    return read


def margin(found: Found) -> Reading:
    """DP-XGBoost against DPBoost, both sound, on each set that was measured."""
    readings = [above(name, "DPBoost")(found) for name in found]
    verdicts = {reading.verdict for reading in readings}
    verdict: Verdict = "cannot be judged"
    if verdicts == {"holds"} or "does not hold" in verdicts:
        verdict = "does not hold" if "does not hold" in verdicts else "holds"
    said = "; ".join(f"{name}, {reading.ours}" for name, reading in zip(found, readings, strict=True))
    return Reading(ours=said, verdict=verdict)


def runtime(found: Found) -> Reading:
    """Seconds a tree of all rows beside plain xgboost's: 1 to .7 in the paper."""
    own = found["DP-XGBoost, private sketch, all rows, 1,000,000 x 50"]["seconds"]
    plain = found["xgboost hist, not private, 1,000,000 x 50"]["seconds"]
    ratio = own / plain
    return Reading(
        ours=f"{own:.3f} s beside {plain:.3f} s: {ratio:.1f} times, 1,000,000 x 50",
        verdict="holds" if ratio <= 1.0 / 0.7 * 1.05 else "does not hold",
    )


def cluster(found: Found) -> Reading:
    """The same model bit for bit on a cluster, and a tree in at most twice the time of one process.

    Other systems' fits can show that it fails, and not that it holds of DP-XGBoost's.
    """
    cells = [
        f"{name}: {'the same model' if each['same models'] else 'another model'}, a tree takes {each['ratio']:.2f} "
        f"times"
        for name, each in found.items()
    ]
    holds = all(each["same models"] and each["ratio"] <= 2.0 for each in found.values())
    verdict: Verdict = "does not hold" if not holds else "holds" if "DP-XGBoost" in found else "cannot be judged"
    return Reading(ours="; ".join(cells), verdict=verdict)


def worth(found: Found) -> Reading:
    """How many of the printed errors of Figure 4 are reached by us, and as printed."""
    counts, most = {}, len(ABALONE) + len(ADULT)
    for method in ("paper", AS_PRINTED):
        counts[method] = sum(
            judging.is_reached(printed, table_means(found[name], method)[point], higher=False)
            for name, points in (("abalone", ABALONE), ("adult", ADULT))
            for point, printed in points.items()
        )
    less: Verdict = "holds with less noise" if counts[AS_PRINTED] == most else "does not hold"
    return Reading(
        ours=f"preset paper: {counts['paper']} of {most} points",
        as_printed=f"{counts[AS_PRINTED]} of {most}",
        verdict="holds" if counts["paper"] == most else less,
    )


ITEMS = (
    *(
        Item(
            number=f"Figure 1, {name} in place of its set",
            says="The error that a private histogram adds to the sketch is marginal.",
            printed="marginal",
            study="figure1",
            read=marginal(name),
            sentence=f"{POINTS} At most one point of accuracy at any number of bins. The set of the figure is not "
            f"named.",
        )
        for name in ("electricity",)
    ),
    Item(
        number="Figure 2, sound, electricity in place of covtype",
        says="Minimum child weights have a lower error than the noise for any leaf.",
        printed="we can drastically improve this worst-case bound",
        study="figure2",
        read=better_leaves(True),
        sentence=f"{POINTS} Minimum weights are compared with released numbers of rows.",
    ),
    Item(
        number="Figure 2, as printed, electricity in place of covtype",
        says="The same with the noise of equation 7, and with NoisyAverage.",
        printed="we can drastically improve this worst-case bound",
        study="figure2",
        read=better_leaves(False),
        errata=("errata-dpxgboost-leaf-noise", "errata-dpxgboost-noisy-average"),
        sentence="UNSOUND, on public rows: it shows that the effect is there, not that it is private.",
    ),
    Item(
        number="Figure 4, abalone",
        says="RMSE by epsilon.",
        printed="; ".join(f"{p}: {v}" for p, v in ABALONE.items()),
        study="utility",
        read=table("abalone", ABALONE),
        errata=("claims-dpxgboost",),
        sentence="At 6 and 8 the printed values are those of the released code, whose noise is less than the paper's. "
        "Nothing reaches 2.4 at 10 but our defaults.",
    ),
    Item(
        number="Figure 4, adult",
        says="Test error in percent by epsilon.",
        printed="; ".join(f"{p}: {v}" for p, v in ADULT.items()),
        study="utility",
        read=table("adult", ADULT),
        errata=("claims-dpxgboost",),
        sentence="From epsilon 4 on the printed values are about those of the released code, whose noise is less "
        "than the "
        "paper's; 18 at epsilon 2 is reached by neither.",
    ),
    *(
        Item(
            number=f"Figure 4, {name}, our defaults",
            says="The same points by our defaults, which are not the paper's.",
            printed="; ".join(f"{p}: {v}" for p, v in points.items()),
            study="utility",
            read=defaults(name, points),
            sentence="No sketch, no sample, damping by the known noise.",
        )
        for name, points in (("abalone", ABALONE), ("adult", ADULT))
    ),
    Item(
        number="Figure 4, synthetic cls",
        says="Test error at 1,000,000 x 400.",
        printed="eps 1: 12; eps 10: 8",
        study="whole-synthetic",
        read=whole("synthetic_classification", CLASSES, "test error, %"),
        sentence="scikit-learn's defaults, since the parameters are not printed; one fit each, rows in a file.",
    ),
    Item(
        number="Figure 4, synthetic reg",
        says="RMSE at 1,000,000 x 400.",
        printed="eps 1: 86.4; eps 10: 60",
        study="whole-synthetic",
        read=whole("synthetic_regression", NUMBERS, "RMSE"),
        sentence="Labels of another scale perhaps: judged on how many times the error is what is not private, printed "
        "24.1.",
    ),
    Item(
        number="Figure 4, covtype",
        says="Test error.",
        printed="22 at epsilon 1, 15 at 10",
        sentence="The data cannot be had here.",
    ),
    Item(
        number="Figure 5a",
        says="Covtype, beside DPBoost.",
        printed="almost half the test classification error on the Covtype dataset for epsilon=1",
        sentence="The data cannot be had here.",
    ),
    Item(
        number="Figure 5b",
        says="Synthetic cls: a lower error than DPBoost.",
        printed="very encouraging especially for the higher privacy-regimes",
        study="beside-synthetic",
        read=above("synthetic_classification", "DPBoost"),
        sentence=FULL_SIZE,
    ),
    Item(
        number="Figure 6a",
        says="Abalone: a lower RMSE than DPBoost, above all at epsilon 1.",
        printed="very encouraging especially for the higher privacy-regimes",
        study="beside",
        read=above("abalone", "DPBoost"),
        sentence=f"{POINTS} Both sound, with their papers' settings.",
    ),
    Item(
        number="Figure 6b",
        says="Synthetic reg: a lower RMSE than DPBoost.",
        printed="the same",
        study="beside-synthetic",
        read=above("synthetic_regression", "DPBoost"),
        sentence=FULL_SIZE,
    ),
    Item(
        number="Headline: beats previous attempts by a large margin",
        says="Abstract.",
        printed="by a large margin",
        study="beside",
        read=margin,
        sentence="Against DPBoost, the only one that the paper compares with; both sound.",
    ),
    Item(
        number="Headline: the printed errors",
        says="Whether Figure 4's values for abalone and adult rest on sound noise.",
        printed="the table of figure 4: 12 values of these two sets",
        study="utility",
        read=worth,
        errata=("claims-dpxgboost",),
        sentence="Not all of them. Sound code reaches some, on adult within wide errors. From epsilon 6 on for abalone "
        "and from 4 on for adult most are about those of the released code, whose exact tests and shared noise cost "
        "more than it accounts for; the mechanism that the paper describes has larger errors there.",
    ),
    Item(
        number="Headline: almost half the error on covtype",
        says="Section 5, epsilon 1.",
        printed="almost half",
        sentence="The data cannot be had here.",
    ),
    Item(
        number="Headline: no significant runtime overhead",
        says="Section 5: 1 second a tree beside .7.",
        printed="1 s / .7 s",
        study="speed",
        read=runtime,
        sentence="Our implementation, not theirs, whose time was not measured. All rows in every tree, two threads, "
        "beside xgboost's `hist`; the paper's trees see a tenth of the rows.",
    ),
    Item(
        number="Headline: runs distributed",
        says="Abstract: scales to big data on Kubernetes, Dask or Spark.",
        printed="Dask",
        study="systems",
        read=cluster,
        sentence="Our trainers on a Dask cluster of two workers, ten million rows; DP-XGBoost's trees have the same "
        "place, but were not timed. Spark is not here.",
    ),
)
