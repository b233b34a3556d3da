"""Result tables as Arrow: metrics, comparisons, gap tests, values of users."""
