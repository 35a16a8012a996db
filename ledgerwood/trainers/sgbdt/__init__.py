"""S-GBDT (Kirschte and others): boosting with totally random trees."""
