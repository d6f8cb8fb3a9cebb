"""Statistically valid lower bounds on the privacy leakage of a trained model."""
