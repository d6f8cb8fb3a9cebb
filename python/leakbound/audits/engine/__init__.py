"""One ranking audited: trials, cuts, curves and what is said about them."""
