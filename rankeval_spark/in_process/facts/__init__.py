"""What the training data and the catalogue say about items and users, as Arrow tables."""
