"""What is wrong with the inputs, counted by Spark."""
