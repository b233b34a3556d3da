"""Measures that compare scores with gains: errors of ratings, areas under curves, correlations."""
