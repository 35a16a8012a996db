import ledgerwood as lw
from ledgerwood.trainers import SGBDTRegressor
from ledgerwood.verification.errata.sgbdt.exported_counts import ExportedCounts


def test_the_output_is_the_number_of_rows():
    specimen = ExportedCounts()
    assert [specimen.output(dataset) for dataset in specimen.pair] == [(4.0,), (3.0,)]


def test_the_librarys_model_holds_no_count(public_part):
    # Trees of neighbouring data sets differ in their released leaf values only.
    schema = lw.Schema.uniform(0.0, 1.0, target=lw.Numeric("y", 0.0, 1.0))
    models = [
        public_part(
            SGBDTRegressor(epsilon=1.0, schema=schema, n_estimators=5, random_state=1), rows[:, None] * 0.5, rows
        )
        for rows in ExportedCounts().pair
    ]
    assert models[0] == models[1]
    assert models[0][1] == ["initial_score", "values"]
