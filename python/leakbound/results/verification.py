"""What came of verifying a result or a bundle: each check, and whether all passed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Parameters
    ----------
    name : str
        What was looked at.
    passed : bool or None
        Whether it is as it should be; None if there was nothing to look at.
    words : str
        What was found.
    """

    name: str
    passed: bool | None
    words: str


@dataclass(frozen=True)
class Verification:
    """The checks of a result or a bundle, in order; the first that fails is the last.

    Parameters
    ----------
    checks : tuple of Check
        What was looked at, at least one.
    """

    checks: tuple[Check, ...]

    @property
    def valid(self) -> bool:
        """Whether no check failed."""
        return all(check.passed is not False for check in self.checks)

    @property
    def why(self) -> str:
        """Why it is invalid; empty if it is valid."""
        failed = (f"{one.name}: {one.words}" for one in self.checks if one.passed is False)
        return next(failed, "")

    def __str__(self) -> str:
        """Return the verdict in a line."""
        return "VALID" if self.valid else f"INVALID: {self.why}"
