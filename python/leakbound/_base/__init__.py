"""What every room stands on: types, checks, records, files, random streams."""
