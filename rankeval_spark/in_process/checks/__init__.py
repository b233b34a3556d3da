"""What is wrong with the inputs, counted on Arrow tables."""
