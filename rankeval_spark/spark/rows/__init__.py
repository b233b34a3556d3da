"""Usable rows of the inputs, their segments, and the one exchange that moves them to their users."""
