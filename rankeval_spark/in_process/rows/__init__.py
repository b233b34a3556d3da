"""Rows of users in buckets, and the threads that work on them."""
