"""Measures of all lists together, and of the lists themselves: coverage, concentration, parity, quality."""
