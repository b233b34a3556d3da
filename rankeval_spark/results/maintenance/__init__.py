"""Maintenance of a results root: small files, old rows, forgotten users."""
