"""Result tables as DataFrames: metrics, comparisons, gap tests, values of users."""
