"""Published rows that are deleted or changed, and the files that hold them."""
