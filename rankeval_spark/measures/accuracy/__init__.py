"""Measures of what is relevant: hits, their ranks and gains."""
