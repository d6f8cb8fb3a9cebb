"""What a reader of a result should know; nothing here changes a bound."""

from collections.abc import Callable

from leakbound._base.formatting import down

_CROWDED = 2 / 3
"""Share of its ceiling above which c_lb leaves little room for ε̃."""


def delta_warnings(delta: float, examples: int) -> tuple[str, ...]:
    """Say that a δ is no small one for so many examples."""
    if delta < 1 / examples:
        return ()
    note = (
        f"delta = {delta:g} is not below 1/m = {1 / examples:.3g}: a mechanism that gives one "
        "example away entirely satisfies the claim, and large ε are hard to refute"
    )
    return (note,)


def saturation_warnings(c_lb: float, ceiling: Callable[[], float]) -> tuple[str, ...]:
    """Say that a generator is so easily told from real data that ε̃ has little room."""
    if c_lb <= 0 or c_lb <= _CROWDED * (reached := ceiling()):
        return ()
    room = down(reached - c_lb)
    note = (
        f"the generator is easily told from real data: c_lb = {down(c_lb)}, and a perfect attack "
        f"on these examples reaches {down(reached)}, so that ε̃ cannot exceed {room} whatever the "
        "model leaks; use a better generator, or more examples"
    )
    return (note,)
