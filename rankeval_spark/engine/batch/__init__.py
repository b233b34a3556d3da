"""Rows of whole users as coded arrays."""
