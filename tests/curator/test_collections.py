"""Dask collections of a fit: their partitions, without a cluster."""

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd

import ledgerwood as lw
from ledgerwood.curator.places.collections import collections_of


class Session:
    """Takes the partitions and encodes them here."""

    def watch(self, files):
        self.files = files

    def place(self, partitions, shape):
        self.rows = dask.compute(*partitions(), scheduler="synchronous")


def test_the_label_alone_of_many_columns_keeps_its_partitions(tmp_path):
    """Dask reads several files at once where few of their columns are asked for."""
    columns = [f"x{place}" for place in range(10)]
    frame = pd.DataFrame(np.random.default_rng(0).random((60, 11)), columns=[*columns, "y"])
    for place in range(6):
        frame[10 * place : 10 * (place + 1)].to_parquet(tmp_path / f"{place}.parquet")
    rows = dd.read_parquet(tmp_path)
    assert rows["y"].optimize().npartitions < rows.npartitions == 6
    session = Session()
    schema = lw.Schema.uniform(0, 1, n_features=10, target=lw.Numeric("y", 0, 1))
    collections_of(rows[columns], rows["y"], None).table(session, schema, loss="squared", bins=32)
    assert [part.n_rows for part in session.rows] == [10] * 6
    targets = np.concatenate([part.targets for part in session.rows])
    np.testing.assert_array_equal(targets, 2 * frame["y"] - 1)
