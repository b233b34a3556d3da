"""Tests of two or more models, or of two nights, on their users."""
