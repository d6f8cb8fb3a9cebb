"""What leakbound raises: one base class, each child also the builtin that one would expect.

Every message says what was wrong, where, and what to do about it.
"""

__all__ = [
    "AbstentionError",
    "DesignError",
    "DeviceMemoryError",
    "FitError",
    "FormatError",
    "InputError",
    "InputTypeError",
    "InternalError",
    "LeakboundError",
    "MissingExtraError",
    "OptionError",
]


class LeakboundError(Exception):
    """Base of every error that leakbound raises on purpose.

    `option` is the name of the option that the message begins with, if it is about one: the
    command line writes it as its flag.
    """

    def __init__(self, message: str = "", *, option: str = "") -> None:
        super().__init__(message)
        self.option = option


class InternalError(LeakboundError, RuntimeError):
    """A defect of leakbound itself: please report it."""


class InputError(LeakboundError, ValueError):
    """Data that cannot be audited: shapes, lengths, ids, NaN, labels; the message says where."""


class InputTypeError(LeakboundError, TypeError):
    """An input or an option of a type that is not accepted."""


class OptionError(LeakboundError, ValueError):
    """An option outside its allowed values, or an invalid combination of options."""


class DesignError(LeakboundError, ValueError):
    """Data that contradict the design of the audit; the message names designs that may fit."""


class AbstentionError(LeakboundError, ValueError):
    """Scores that are all equal, so that nothing can be guessed."""


class FitError(LeakboundError, RuntimeError):
    """A propensity model without a finite, unique fit; the message says why and what to change."""


class FormatError(LeakboundError, ValueError):
    """A file or a text that is not what it should be, or is damaged."""


class DeviceMemoryError(LeakboundError, RuntimeError):
    """A batch that does not fit in the memory of the device."""


class MissingExtraError(LeakboundError, ImportError):
    """An optional dependency that is not installed; the message names the extra to install."""
