"""Hosts that compute a request: this process, and Spark."""
