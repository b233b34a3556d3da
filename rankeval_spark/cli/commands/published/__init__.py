"""The commands that read published results."""
