"""Rows of the log become ranked lists, matched with their judgements: one compact row per list."""
