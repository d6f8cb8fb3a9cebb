"""Models of a PANORAMIA run: its target and its attacks."""
