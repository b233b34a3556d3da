"""The engine in this process: Arrow tables in, Arrow tables out; neither Spark nor a JVM."""
