"""Values of lists become partial aggregates of every slice, which merge."""
