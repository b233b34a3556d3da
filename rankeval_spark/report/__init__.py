"""Figures of result frames, and the report of a night as one page."""
