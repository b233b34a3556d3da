"""Whether this machine and a running session are fit for a run."""
