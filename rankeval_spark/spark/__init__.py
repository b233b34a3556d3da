"""The host on Spark: plans of an evaluation, and the session that runs them."""
