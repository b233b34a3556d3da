"""The sections of a config file, each a frozen model."""
