"""Private choices: one of several candidates, a quantile, the queries above a threshold, the best of several runs."""
