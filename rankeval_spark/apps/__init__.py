"""Applications: each function runs one task from inputs to results; Spark actions and caching are only here."""
