"""Demonstrations: real targets trained on the spot and audited, without any download."""
