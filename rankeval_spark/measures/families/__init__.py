"""The measures themselves: a module for each family, found by itself."""
