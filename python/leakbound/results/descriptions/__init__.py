"""What is said of results: one module, with one function `describe`, for each type."""
