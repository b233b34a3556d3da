"""Every measure at every cutoff, the facts that measures read, and who enters the mean."""
