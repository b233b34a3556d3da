"""Paired differences of models, as partial aggregates that merge."""
