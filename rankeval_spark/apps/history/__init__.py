"""What earlier nights say about a new one: volume, drift, changes, and which runs were published."""
