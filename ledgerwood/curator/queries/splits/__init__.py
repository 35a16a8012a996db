"""The splits of a tree's level, chosen privately: by gains, by gains of all thresholds, and by the Gini impurity."""
