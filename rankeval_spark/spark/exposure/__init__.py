"""Measures of all lists together, on Spark."""
