"""The first config of a user, written by looking at their tables."""
