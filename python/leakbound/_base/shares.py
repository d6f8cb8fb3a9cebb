"""Every place where an error probability is shared: audits read their part of it here.

A level, the chance that a bound is false, is divided among whatever may be false: several attacks,
paths of a ranking, a confidence set and the test at its members. A row says what has which part,
and why that is enough. Code takes its part as ``shares.ATTACKS.of(level, attacks)``, or multiplies
a p-value by ``shares.ATTACKS.price(attacks)``, and divides no level elsewhere.

To add a row, name it below and read it where the level is shared. `tests/python/validity/
test_shares.py` then asks for an exact test that fails when the row's part is doubled.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """A part of an error probability, of one thing or of several equal ones together."""

    whole: str
    """What is shared: the parts of rows with the same whole add up to 1 at most."""
    part: float
    """The part of the whole, of all equal ones together."""
    between: str
    """What has this part; where there are several, they have equal parts of it."""
    theorem: str
    """Why the whole is not exceeded."""

    def of(self, whole: float, parts: int = 1) -> float:
        """Return the part that each of so many equal ones has of a whole."""
        return self.part * whole / parts

    def price(self, parts: int = 1) -> float:
        """Return the factor of a p-value, or of evidence, that stands for dividing the level."""
        return parts / self.part


_UNION = "union bound: one of several events is no likelier than all of them added up"
_TWO_SIDES = "union bound: the smaller one of two tails, doubled (Bonferroni)"
_VILLE = "the mean of nonnegative supermartingales that begin at 1 is another one (Ville 1939)"
_BERGER_BOOS = "p-values maximised over a confidence set (Berger and Boos 1994)"

# Of a ranking
ATTACKS = Share("level of an audit", 1.0, "attacks that are audited together", _UNION)
PATHS = Share("level of an attack", 1.0, "paths of a ranking", _UNION)
PARTS = Share("level of an attack, by default", 1.0, "tests of a second look, unequal", _UNION)
GRID = Share("level of a path", 1.0, "thresholds of a union bound, in the compiled core", _UNION)
FAMILY_GRID = Share("level of a path, of a family", 1.0, "thresholds of a union bound", _UNION)
JOINT = Share(
    "level of a path, outside in",
    1.0,
    "counts and failures of (ε, δ)-DP: φ of it is for failures, in the compiled core",
    "the joint certificate: κ and what failures add (leakbound_core::outside_in::joint_tail)",
)
EXPOSED = Share(
    "rate of false discoveries",
    1.0,
    "attacks whose lists of exposed members the coins choose from",
    "the false share of the list chosen is at most the sum of those of all lists",
)

# Of trials and streams
RANKS = Share("level of trials, (ε, δ)", 0.2, "the test of ranks", _UNION)
RANKED_COINS = Share("level of trials, (ε, δ)", 1 - RANKS.part, "the bound for coins", _UNION)
FIXED_RUNS = Share(
    "level times the chance that runs suffice",
    1.0,
    "trials whose coins were tossed after runs of fixed numbers",
    "given an event, an error is likelier than without it by one over the event's chance at most",
)
SEQUENCES = Share("level of a stream", 1.0, "sequences of guesses, in the compiled core", _VILLE)
BETS = Share("level of a stream of trials", 1.0, "bets at several odds on sequences", _VILLE)

# Of the design
MEMBER_SIDES = Share("p-value of a number of members", 1.0, "too many and too few", _TWO_SIDES)
CANDIDATES = Share("p-value of a draw of candidates", 1.0, "candidates of a secret", _UNION)
CHALLENGERS = Share("p-value of a challenge", 0.1, "models that bet against a split", _UNION)
CLOSE_PAIRS = Share("p-value of a challenge", 0.3, "pairs of rows that resemble each other", _UNION)
USUAL_ROWS = Share("p-value of a challenge", 0.3, "members among usual and unusual rows", _UNION)
LABELS = Share("p-value of a challenge", 0.3, "members among rows with surprising labels", _UNION)
REFERENCE_SIDES = Share("p-value of a reference", 1.0, "members and non-members", _TWO_SIDES)

# Of PANORAMIA and Zero-Run
RANKINGS = Share("level of PANORAMIA", 1.0, "the limits on c and on c + ε", _UNION)
FOLDS = Share("level of Zero-Run", 1.0, "folds, each by the model that did not see it", _UNION)
SET = Share("level of learnt log-odds", 0.2, "the confidence set of log-odds", _BERGER_BOOS)
AT_MEMBER = Share("level of learnt log-odds", 1 - SET.part, "tests at its members", _BERGER_BOOS)
DRAW = Share(
    "level at a member of a set",
    0.5,
    "one draw of what is kept, where a share of all draws, up to a half, must agree",
    "Markov's inequality, the share needed being uniform (Ramdas and Manole 2023)",
)
SET_NUMBERS = Share("level at a member, offsets", 1.0, "numbers of guesses", _UNION)
PERCENTILE = Share("level of replicates", 0.5, "the percentile of bounds of refits", _UNION)
AT_REPLICATE = Share("level of replicates", 1 - PERCENTILE.part, "tests at replicates", _UNION)
OFFSET_PATHS = Share("level of unlike odds", 1.0, "paths of a ranking", _UNION)
FAILURES = Share("level of unlike odds, (ε, δ)", 0.5, "guesses right by failures", _UNION)
COUNT = Share("level of unlike odds, (ε, δ)", 1 - FAILURES.part, "the other guesses", _UNION)

# Of tests of propensities
SCEPTICS = Share("p-value of propensities", 1.0, "sceptics that bet against them", _UNION)
TERMS = Share("p-value of a form", 1.0, "terms that the model may lack", _UNION)
SIGNS = Share("p-value of a term", 1.0, "scores above and below 0", _TWO_SIDES)

# Of DP-SGD
DP_SGD_PARTS = Share(
    "level at which a run is refuted", 1.0, "membership, steps and sampling", _UNION
)
RATE = Share("level of the steps' ε", 0.5, "the lower limit of the sampling rate", _UNION)
STEPS = Share("level of the steps' ε", 1 - RATE.part, "bounds on the noise of steps", _UNION)
NOISE = Share("level of steps", 0.5, "squares of the noise", _UNION)
COINS = Share("level of steps", 1 - NOISE.part, "coins of steps", _UNION)
FAVOURED = Share("level of coins", 0.9, "bets or one game: what is planned to prove more", _UNION)
OTHER = Share("level of coins", 1 - FAVOURED.part, "the other one of these", _UNION)
SIZES = Share("p-value of sampling", 0.96, "mean and variance of batch sizes", _UNION)
DISTINCT_SIZES = Share("p-value of sampling", 1 - SIZES.part, "how many sizes there are", _UNION)
MEAN_SIDES = Share("p-value of the mean size", 1.0, "too large and too small", _TWO_SIDES)
VARIANCE_SIDES = Share("p-value of the variance", 1.0, "too large and too small", _TWO_SIDES)
RATE_SIDES = Share("level of limits of the rate", 1.0, "the lower and the upper one", _UNION)

# Of what is shown
DESCRIBED_SIDES = Share("level of an interval", 1.0, "its lower and its upper end", _UNION)
SUMMARY_LINES = Share("family-wise level of a benchmark", 1.0, "lines of its summary", _UNION)


def table() -> dict[str, Share]:
    """Return all rows by name."""
    return {name: row for name, row in globals().items() if isinstance(row, Share)}
