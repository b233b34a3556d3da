"""How far groups of users are apart, and whether that is chance."""
