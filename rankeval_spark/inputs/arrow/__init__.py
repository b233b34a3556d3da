"""Inputs of pandas, polars, pyarrow and DuckDB, read without Spark into canonical columns."""
