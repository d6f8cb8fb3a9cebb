"""Games of a long run of a row, by what one game costs."""

__all__ = ["CHEAP", "COSTLY", "DEAR", "DEAREST", "FUTILE", "MODERATE"]

CHEAP, MODERATE, DEAR, COSTLY, DEAREST = 20_000, 4_000, 2_000, 400, 100
"""Where one takes at most 0.7 ms, 1.5 ms, 6 ms, 60 ms or more of one core."""
FUTILE = 1_000
"""Of what is offered as wrong, and fails in many of them."""
