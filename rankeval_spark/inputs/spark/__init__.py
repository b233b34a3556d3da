"""Inputs on Spark: the only place where its tables are read."""
