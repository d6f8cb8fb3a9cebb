"""Tallies of scores: records counted by key."""
