"""The demonstration data sets: counts as published, values inside their schema, a clear error without a file."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils import Bunch

import ledgerwood.datasets as datasets
from ledgerwood.errors import DataUnavailable, InvalidParameter
from ledgerwood.schema import Categorical, Numeric

ABALONE = "sex,length,diameter,height,whole,shucked,viscera,shell,target\nM,.4,.3,.1,.5,.2,.1,.15,15\n"


def unknown_categories(data):
    return {
        feature.name: set(data.X[:, j]) - set(feature.categories)
        for j, feature in enumerate(data.schema.features)
        if isinstance(feature, Categorical)
    }


def outside(data):
    """Per numeric column, the share of rows that the schema's bounds would clamp."""
    shares = {}
    for j, feature in enumerate(data.schema.features):
        if isinstance(feature, Numeric):
            column = data.X[:, j].astype(float)
            shares[feature.name] = float(np.mean((column < feature.low) | (column > feature.high)))
    return shares


def test_breast_cancer_is_offline_and_fits_its_schema():
    data = datasets.load("breast_cancer", fetch=False)
    assert data.X.shape == (569, 30)
    assert data.X.dtype == np.float64
    assert data.expected_rows == 569
    assert set(data.y) == set(data.schema.target.categories)
    assert np.mean(data.y == "benign") == pytest.approx(357 / 569)
    assert max(outside(data).values()) < 0.02


def test_breast_cancer_names_its_columns_as_scikit_learn_does():
    from sklearn.datasets import load_breast_cancer

    assert [feature.name for feature in datasets.breast_cancer_schema().features] == list(
        load_breast_cancer().feature_names
    )


@pytest.mark.slow  # several fits
def test_adult_complete_rows(dataset):
    data = dataset("adult")
    assert data.X.shape == (45_222, 14)
    assert data.expected_rows == len(data.y)
    assert np.sum(data.y == ">50K") == 11_208
    assert not any(unknown_categories(data).values())
    assert max(outside(data).values()) == 0.0


@pytest.mark.slow  # reads a data set
def test_adult_with_the_unknown_as_a_category(dataset):
    dataset("adult")
    data = datasets.load("adult", fetch=False, incomplete_rows="category")
    assert data.X.shape == (48_842, 14)
    assert data.expected_rows == len(data.y)
    assert not any(unknown_categories(data).values())


def test_abalone(dataset):
    data = dataset("abalone")
    assert data.X.shape == (4_177, 8)
    assert data.y.min() >= data.schema.target.low
    assert data.y.max() <= data.schema.target.high
    assert not any(unknown_categories(data).values())
    assert max(outside(data).values()) < 0.01


@pytest.mark.parametrize("packed", [True, False])
def test_reads_plain_and_packed_files(tmp_path: Path, monkeypatch, packed):
    if packed:
        (tmp_path / "abalone.csv.gz").write_bytes(gzip.compress(ABALONE.encode()))
    else:
        (tmp_path / "abalone.csv").write_text(ABALONE)
    monkeypatch.setenv("LEDGERWOOD_DATA", str(tmp_path))
    data = datasets.load("abalone", fetch=False)
    assert data.X.tolist() == [["M", 0.4, 0.3, 0.1, 0.5, 0.2, 0.1, 0.15]]
    assert data.y.tolist() == [15.0]


def test_says_where_it_looked(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("LEDGERWOOD_DATA", str(tmp_path))
    with pytest.raises(DataUnavailable, match=r"no adult\.csv\.gz or adult\.csv in LEDGERWOOD_DATA="):
        datasets.load("adult", fetch=False)
    monkeypatch.delenv("LEDGERWOOD_DATA")
    with pytest.raises(DataUnavailable, match="LEDGERWOOD_DATA names no folder"):
        datasets.load("adult", fetch=False)


def test_says_that_openml_is_out_of_reach(monkeypatch):
    def offline(**_):
        raise OSError("no route to host")

    monkeypatch.delenv("LEDGERWOOD_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(DataUnavailable, match=r"OpenML cannot be reached \(no route to host\)"):
        datasets.load("adult")


def test_decodes_what_openml_sends(monkeypatch):
    features = datasets.adult_schema().features
    categories = {feature.name: list(feature.categories) for feature in features if isinstance(feature, Categorical)}
    codes = np.array([[30.0, 1.0] + [0.0] * 12, [40.0, np.nan] + [0.0] * 12])
    bunch = Bunch(
        data=codes,
        target=np.array([">50K", "<=50K"], dtype=object),
        feature_names=[feature.name for feature in features],
        categories=categories,
    )
    monkeypatch.delenv("LEDGERWOOD_DATA", raising=False)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **_: bunch)
    kept = datasets.load("adult", incomplete_rows="category")
    assert kept.X[:, :2].tolist() == [[30.0, "Self-emp-not-inc"], [40.0, "?"]]
    assert kept.y.tolist() == [">50K", "<=50K"]
    assert datasets.load("adult").y.tolist() == [">50K"]


def test_refuses_unknown_names_and_modes():
    with pytest.raises(InvalidParameter, match="name='iris' must be one of breast_cancer, adult, abalone"):
        datasets.load("iris")
    with pytest.raises(InvalidParameter, match="incomplete_rows='keep'"):
        datasets.load("adult", incomplete_rows="keep")
