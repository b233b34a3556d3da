"""A team's own package, which this project does not install."""
