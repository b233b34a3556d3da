"""One run from its first row in ``runs`` to its last: stage, audit, publish."""
