"""Rows of measures of all lists together, with jackknife intervals."""
