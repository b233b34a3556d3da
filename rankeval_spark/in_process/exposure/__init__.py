"""Measures of all lists together, on Arrow tables."""
