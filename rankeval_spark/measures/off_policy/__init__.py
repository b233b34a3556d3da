"""Measures of a policy that was not in charge, from a log of another one that knew its propensities."""
