"""Shared foundations: types, checks, records, files, random streams."""
