"""Public schemas of the classification sets of PrivaTree's tables, from their published descriptions.

As in `benchmarks.data_sets`, no bound was computed from the rows: lists are those of the attribute lists (which have
categories that no row has), counts and ages get round numbers.
"""

from ledgerwood import Categorical, Numeric, Schema

MEDIAN_HOUSE_VALUE = 179_700
"""Dollars: the published median of the 1990 census table, which halves it into classes; ties below."""


def compas_schema() -> Schema:
    """ProPublica's two-year table (Broward County, 2013 and 2014): what was known of a defendant at screening.

    Sex, race, the degree of the charge (felony, misdemeanour), and counts: 20 juvenile and 40 earlier charges are round
    numbers. The scores that the table judges, dates, and the age groups (a function of age) are left out.
    """
    races = ("African-American", "Caucasian", "Hispanic", "Asian", "Native American", "Other")
    return Schema(
        features=(
            Categorical("sex", ("Male", "Female")),
            Numeric("age", 18, 100),
            Categorical("race", races),
            *(Numeric(f"juv_{kind}_count", 0, 20) for kind in ("fel", "misd", "other")),
            Numeric("priors_count", 0, 40),
            Categorical("c_charge_degree", ("F", "M")),
        ),
        target=Categorical("two_year_recid", (0, 1)),
    )


def breast_w_schema() -> Schema:
    """UCI Breast Cancer Wisconsin (Original): nine marks of 1 to 10 each."""
    names = (
        "Clump_Thickness", "Cell_Size_Uniformity", "Cell_Shape_Uniformity", "Marginal_Adhesion",
        "Single_Epi_Cell_Size", "Bare_Nuclei", "Bland_Chromatin", "Normal_Nucleoli", "Mitoses",
    )  # fmt: skip
    return Schema(
        features=tuple(Numeric(name, 1, 10) for name in names),
        target=Categorical("class", ("benign", "malignant")),
    )


def mushroom_schema() -> Schema:
    """The attribute list of `agaricus-lepiota.names`, letter by letter (some are not in the rows)."""
    letters = {
        "cap-shape": "bcxfks", "cap-surface": "fgys", "cap-color": "nbcgrpuewy", "bruises?": "tf", "odor": "alcyfmnps",
        "gill-attachment": "adfn", "gill-spacing": "cwd", "gill-size": "bn", "gill-color": "knbhgropuewy",
        "stalk-shape": "et", "stalk-root": "bcuezr", "stalk-surface-above-ring": "fyks",
        "stalk-surface-below-ring": "fyks", "stalk-color-above-ring": "nbcgopewy",
        "stalk-color-below-ring": "nbcgopewy", "veil-type": "pu", "veil-color": "nowy", "ring-number": "not",
        "ring-type": "ceflnpsz", "spore-print-color": "knbhrouwy", "population": "acnsvy", "habitat": "glmpuwd",
    }  # fmt: skip
    return Schema(
        features=tuple(Categorical(name, tuple(codes)) for name, codes in letters.items()),
        target=Categorical("class", ("e", "p")),
    )


NURSERY_CLASSES = ("not_recom", "recommend", "very_recom", "priority", "spec_prior")


def nursery_schema() -> Schema:
    """The attribute list of `nursery.names`: every combination of categories is one row of the table."""
    return Schema(
        features=(
            Categorical("parents", ("usual", "pretentious", "great_pret")),
            Categorical("has_nurs", ("proper", "less_proper", "improper", "critical", "very_crit")),
            Categorical("form", ("complete", "completed", "incomplete", "foster")),
            Categorical("children", ("1", "2", "3", "more")),
            Categorical("housing", ("convenient", "less_conv", "critical")),
            Categorical("finance", ("convenient", "inconv")),
            Categorical("social", ("nonprob", "slightly_prob", "problematic")),
            Categorical("health", ("recommended", "priority", "not_recom")),
        ),
        target=Categorical("class", NURSERY_CLASSES),
    )


def nursery_binary_schema() -> Schema:
    """Whether a child is recommended at all: the paper's table says two classes with a larger share of .667."""
    return Schema(features=nursery_schema().features, target=Categorical("class", ("not_recom", "other")))


def vote_schema() -> Schema:
    """Sixteen votes of 1984 in `house-votes-84.names`, each yea or nay."""
    names = (
        "handicapped-infants", "water-project-cost-sharing", "adoption-of-the-budget-resolution",
        "physician-fee-freeze", "el-salvador-aid", "religious-groups-in-schools", "anti-satellite-test-ban",
        "aid-to-nicaraguan-contras", "mx-missile", "immigration", "synfuels-corporation-cutback",
        "education-spending", "superfund-right-to-sue", "crime", "duty-free-exports",
        "export-administration-act-south-africa",
    )  # fmt: skip
    return Schema(
        features=tuple(Categorical(name, ("n", "y")) for name in names),
        target=Categorical("party", ("democrat", "republican")),
    )


def diabetes_schema() -> Schema:
    """The attribute list of UCI's Pima Indians Diabetes: women of 21 years and more; round numbers above its units."""
    bounds = {
        "preg": (0, 20), "plas": (0, 200), "pres": (0, 150), "skin": (0, 100), "insu": (0, 900), "mass": (0, 75),
        "pedi": (0, 2.5), "age": (21, 100),
    }  # fmt: skip
    return Schema(
        features=tuple(Numeric(name, *bound) for name, bound in bounds.items()),
        target=Categorical("class", ("tested_negative", "tested_positive")),
    )


def pol_schema() -> Schema:
    """Pole telecommunication: the 26 of its 48 columns that the tabular benchmark keeps, whole numbers up to 200.

    The others have one value. The label is a percentage in tens; the class is whether it is 30 or more.
    """
    columns = (*range(5, 10), *range(13, 34))
    return Schema(
        features=tuple(Numeric(f"f{column}", 0, 200) for column in columns),
        target=Categorical("class", ("N", "P")),
    )


def california_median_schema(census: Schema) -> Schema:
    """The census table's features without missing bedrooms; the class is whether a value is above the median."""
    features = tuple(
        Numeric(feature.name, feature.low, feature.high) if isinstance(feature, Numeric) else feature
        for feature in census.features
    )
    return Schema(features=features, target=Categorical("above_median", (0, 1)))
