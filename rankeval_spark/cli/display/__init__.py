"""How results, progress and messages are laid out on a terminal."""
