"""How each claim corrects for its thresholds, and what a ranking then proves."""
