"""Measures of what the recommended items are: popular, novel, diverse, unexpected, calibrated, fresh."""
