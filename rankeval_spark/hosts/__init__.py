"""Where a request is computed: in this process, or on Spark."""
