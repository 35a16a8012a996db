"""Released trees in the formats of others: XGBoost's boosters and ONNX graphs, and the rows that both take."""
