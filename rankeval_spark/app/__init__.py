"""The imperative shell: where sessions, inputs, plans and results meet, and where actions and caching live."""
