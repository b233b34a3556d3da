"""Rows of a table at one version, read by this process or by Spark."""
