"""``evaluate``: the arguments, the choice of a host, and the evaluation on Spark."""
