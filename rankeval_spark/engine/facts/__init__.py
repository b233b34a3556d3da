"""What is known of items: facts that follow from counts of the training data, and facts of the catalogue."""
