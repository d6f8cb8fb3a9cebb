"""What leakbound raises: one base class, each child also the builtin that one would expect.

Every message says what was wrong, where, and what to do about it.
"""

from collections.abc import Sequence

__all__ = [
    "AbstentionError",
    "ArrayTypeError",
    "BundleError",
    "CheckpointError",
    "ClassMissingError",
    "CommitmentError",
    "ConflictingIdsError",
    "DeviceMemoryError",
    "DuplicateIdsError",
    "FeaturesError",
    "GeneratedDuplicatesError",
    "ImplausibleCoinsError",
    "IncompatibleOptionsError",
    "InputFileError",
    "LeakboundError",
    "LengthMismatchError",
    "MembersError",
    "MembershipError",
    "MissingExtraError",
    "NaNScoresError",
    "NoOverlapError",
    "NoPairsError",
    "OptionError",
    "OptionTypeError",
    "OverlappingIdsError",
    "PlanFormatError",
    "PropensityFitError",
    "ReferenceTableError",
    "ResultFormatError",
    "ShapeError",
    "TallyError",
    "TargetError",
    "TiedScoresError",
    "TooFewMembersError",
    "TooFewSamplesError",
    "TradeOffError",
    "UnmatchedIdsError",
    "VisitOrderError",
]


class LeakboundError(Exception):
    """Base of every error that leakbound raises on purpose."""


class InternalError(LeakboundError, RuntimeError):
    """A defect of leakbound itself: please report it."""


class ArrayTypeError(LeakboundError, TypeError):
    """An input that NumPy cannot read as real numbers (objects, strings, complex values)."""


class ShapeError(LeakboundError, ValueError):
    """An array that is empty or not one-dimensional."""


class LengthMismatchError(LeakboundError, ValueError):
    """Arrays that should describe the same examples and differ in length."""


class UnmatchedIdsError(LengthMismatchError):
    """Ids that are to be joined and are not the same on both sides; the message names some."""


class ImplausibleCoinsError(LeakboundError, ValueError):
    """A number of members that the declared coins cannot have given; the message names ways out."""


class NaNScoresError(LeakboundError, ValueError):
    """Scores that are not a number; the message lists the first rows."""


class MembershipError(LeakboundError, ValueError):
    """A membership value outside {False, True}, {0, 1} and {-1, +1}."""


class DuplicateIdsError(LeakboundError, ValueError):
    """An id that occurs twice: the guesses on its rows are not independent."""


class ConflictingIdsError(DuplicateIdsError):
    """An id that is both a member and a non-member."""


class AbstentionError(LeakboundError, ValueError):
    """Scores that order nothing: every example abstains."""


class NoOverlapError(LeakboundError, ValueError):
    """Members and non-members that have no features in common: nothing can be concluded."""


class NoPairsError(LeakboundError, ValueError):
    """A split without a pair of member and non-member to compare."""


class OptionError(LeakboundError, ValueError):
    """An option outside its allowed values."""


class OptionTypeError(LeakboundError, TypeError):
    """An option of the wrong type."""


class IncompatibleOptionsError(OptionError):
    """Options that are legal alone and make no sense together."""


class ResultFormatError(LeakboundError, ValueError):
    """Stored text that is not a result of this package."""


class PlanFormatError(LeakboundError, ValueError):
    """A stored file that is not an inclusion plan of this package."""


class BundleError(LeakboundError, ValueError):
    """A bundle that cannot be written or read: it would not verify, or is none."""


class CommitmentError(LeakboundError, ValueError):
    """A commitment or its opening that cannot be read, or that do not go together."""


class TallyError(LeakboundError, ValueError):
    """Counts of examples that cannot be, or tallies that do not add up; the message says where."""


class TargetError(LeakboundError, ValueError):
    """A class label that the model's outputs have no column for."""


class TiedScoresError(LeakboundError, ValueError):
    """Scores that lost their differences to rounding; the message names the cure."""


class VisitOrderError(LeakboundError, ValueError):
    """A loader that shuffles, repeats or drops examples: scores would lose their ids."""


class DeviceMemoryError(LeakboundError, RuntimeError):
    """A batch that does not fit in the memory of the device."""


class InputFileError(LeakboundError, ValueError):
    """A file that cannot be read as a table with the columns that an audit needs."""


class MissingExtraError(LeakboundError, ImportError):
    """An optional dependency that is not installed; the message names the extra to install."""


class MembersError(LeakboundError, ValueError):
    """Members that a generator cannot learn from: NaN, or not the shape it takes."""


class TooFewMembersError(MembersError):
    """Fewer members, or fewer of one label, than a distribution can be learnt from."""


class TooFewSamplesError(LeakboundError, ValueError):
    """A pool of generated samples with fewer of them than an audit asks for."""


class ReferenceTableError(LeakboundError, ValueError):
    """A reference table that was chosen by membership: it holds one side of the split only."""


class TradeOffError(LeakboundError, ValueError):
    """A table that is not a trade-off function: not decreasing, not convex, or above 1 - alpha."""


class GeneratedDuplicatesError(LeakboundError, ValueError):
    """Generated samples that are copies of members.

    Parameters
    ----------
    message : str
        What was found.
    indices : sequence of int
        Positions of the copies among the samples.
    """

    def __init__(self, message: str, indices: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.indices = tuple(indices)


class FeaturesError(LeakboundError, ValueError):
    """Features that are NaN or infinite; the message names the first row and column."""


class ClassMissingError(LeakboundError, ValueError):
    """Rows of one class only: the odds of membership cannot be learnt from them."""


class PropensityFitError(LeakboundError, RuntimeError):
    """A propensity model without a finite, unique fit; the message says why and what to change."""


class OverlappingIdsError(LeakboundError, ValueError):
    """Examples that are audited and were learnt from: their propensities know their membership."""


class CheckpointError(LeakboundError, ValueError):
    """A checkpoint of other data, models, options or seeds than the run has, or a damaged one."""
