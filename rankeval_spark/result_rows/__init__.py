"""Rows of the result tables from merged aggregates, in Arrow, without Spark."""
