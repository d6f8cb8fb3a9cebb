"""How each claim pays for its cuts, and what a ranking then proves."""
