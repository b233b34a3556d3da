"""Java, the Delta jars and the files that a local Spark is started with."""
