"""Demonstrations, and reproductions of the figures of the papers."""
