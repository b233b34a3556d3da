"""The inputs of an evaluation: their columns, and how each host reads them."""
