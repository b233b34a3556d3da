"""Rows that compare groups of users or items, and tests of the gaps between them."""
