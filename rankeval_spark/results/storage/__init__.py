"""Delta tables, files and locks of a results root."""
