"""The nightly run: read, check, compute once into staging, audit, publish; one date or several."""
