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
SUBGROUPS = Share(
    whole="level of an audit by subgroups",
    part=1.0,
    between="subgroups that labels tell apart",
    theorem=_UNION,
)
ATTACKS = Share(
    whole="level of an audit", part=1.0, between="attacks that are audited together", theorem=_UNION
)
PATHS = Share(whole="level of an attack", part=1.0, between="paths of a ranking", theorem=_UNION)
PARTS = Share(
    whole="level of an attack, by default",
    part=1.0,
    between="tests of a second look, unequal",
    theorem=_UNION,
)
GRID = Share(
    whole="level of a path",
    part=1.0,
    between="thresholds of a union bound, in the compiled core",
    theorem=_UNION,
)
FAMILY_GRID = Share(
    whole="level of a path, of a family",
    part=1.0,
    between="thresholds of a union bound",
    theorem=_UNION,
)
JOINT = Share(
    whole="level of a path, outside in",
    part=1.0,
    between="counts and failures of (ε, δ)-DP: φ of it is for failures, in the compiled core",
    theorem="the joint certificate: κ and what failures add "
    "(leakbound_core::outside_in::joint_tail)",
)
EXPOSED = Share(
    whole="rate of false discoveries",
    part=1.0,
    between="attacks whose lists of exposed members the coins choose from",
    theorem="the false share of the list chosen is at most the sum of those of all lists",
)

# Of the three questions about a synthetic table
RISK_COUNTS = Share(
    whole="level of risks",
    part=0.5,
    between="certified counts of risks",
    theorem=_UNION,
)
RISK_LIMITS = Share(
    whole="level of risks",
    part=1 - RISK_COUNTS.part,
    between="upper limits of the rates of others",
    theorem=_UNION,
)

# Of trials and streams
ALLOWANCE = Share(
    whole="level of trials, (ε, δ)",
    part=1.0,
    between="numbers of trials that fail, each as likely as it is, in the compiled core",
    theorem="total probability over failures (leakbound_core::outside_in::allowance)",
)
FIXED_RUNS = Share(
    whole="level times the chance that runs suffice",
    part=1.0,
    between="trials whose coins were tossed after runs of fixed numbers",
    theorem="given an event, an error is likelier than without it by one over the event's chance "
    "at most",
)
SEQUENCES = Share(
    whole="level of a stream",
    part=1.0,
    between="sequences of guesses, in the compiled core",
    theorem=_VILLE,
)
BETS = Share(
    whole="level of a stream of trials",
    part=1.0,
    between="bets at several odds on sequences",
    theorem=_VILLE,
)

# Of the design
MEMBER_SIDES = Share(
    whole="p-value of a number of members",
    part=1.0,
    between="too many and too few",
    theorem=_TWO_SIDES,
)
CANDIDATES = Share(
    whole="p-value of a draw of candidates",
    part=1.0,
    between="candidates of a secret",
    theorem=_UNION,
)
CHALLENGERS = Share(
    whole="p-value of a challenge",
    part=0.1,
    between="models that bet against a split",
    theorem=_UNION,
)
CLOSE_PAIRS = Share(
    whole="p-value of a challenge",
    part=0.3,
    between="pairs of rows that resemble each other",
    theorem=_UNION,
)
USUAL_ROWS = Share(
    whole="p-value of a challenge",
    part=0.3,
    between="members among usual and unusual rows",
    theorem=_UNION,
)
LABELS = Share(
    whole="p-value of a challenge",
    part=0.3,
    between="members among rows with surprising labels",
    theorem=_UNION,
)
REFERENCE_SIDES = Share(
    whole="p-value of a reference", part=1.0, between="members and non-members", theorem=_TWO_SIDES
)

# Of PANORAMIA and Zero-Run
RANKINGS = Share(
    whole="level of PANORAMIA", part=1.0, between="the limits on c and on c + ε", theorem=_UNION
)
FOLDS = Share(
    whole="level of Zero-Run",
    part=1.0,
    between="folds, each by the model that did not see it",
    theorem=_UNION,
)
HALVES = Share(
    whole="level of a confidence set",
    part=1.0,
    between="draws of the halves that predict each other, in the compiled core",
    theorem="the mean of e-values is another one; Markov's inequality",
)
SET = Share(
    whole="level of learnt log-odds",
    part=0.2,
    between="the confidence set of log-odds",
    theorem=_BERGER_BOOS,
)
AT_MEMBER = Share(
    whole="level of learnt log-odds",
    part=1 - SET.part,
    between="tests at its members",
    theorem=_BERGER_BOOS,
)
DRAW = Share(
    whole="level at a member of a set",
    part=0.5,
    between="one draw of what is kept, where a share of all draws, up to a half, must agree",
    theorem="Markov's inequality, the share needed being uniform (Ramdas and Manole 2023)",
)
SET_NUMBERS = Share(
    whole="level at a member, offsets", part=1.0, between="numbers of guesses", theorem=_UNION
)
PERCENTILE = Share(
    whole="level of replicates",
    part=0.5,
    between="the percentile of bounds of refits",
    theorem=_UNION,
)
AT_REPLICATE = Share(
    whole="level of replicates",
    part=1 - PERCENTILE.part,
    between="tests at replicates",
    theorem=_UNION,
)
OFFSET_PATHS = Share(
    whole="level of unlike odds", part=1.0, between="paths of a ranking", theorem=_UNION
)
FAILURES = Share(
    whole="level of unlike odds, (ε, δ)",
    part=0.5,
    between="guesses right by failures",
    theorem=_UNION,
)
COUNT = Share(
    whole="level of unlike odds, (ε, δ)",
    part=1 - FAILURES.part,
    between="the other guesses",
    theorem=_UNION,
)

# Of tests of propensities
SCEPTICS = Share(
    whole="p-value of propensities",
    part=1.0,
    between="sceptics that bet against them",
    theorem=_UNION,
)
TERMS = Share(
    whole="p-value of a form", part=1.0, between="terms that the model may lack", theorem=_UNION
)
SIGNS = Share(
    whole="p-value of a term", part=1.0, between="scores above and below 0", theorem=_TWO_SIDES
)

# Of DP-SGD
DP_SGD_PARTS = Share(
    whole="level at which a run is refuted",
    part=1.0,
    between="membership, steps and sampling",
    theorem=_UNION,
)
RATE = Share(
    whole="level of the steps' ε",
    part=0.5,
    between="the lower limit of the sampling rate",
    theorem=_UNION,
)
STEPS = Share(
    whole="level of the steps' ε",
    part=1 - RATE.part,
    between="bounds on the noise of steps",
    theorem=_UNION,
)
NOISE = Share(whole="level of steps", part=0.5, between="squares of the noise", theorem=_UNION)
COINS = Share(whole="level of steps", part=1 - NOISE.part, between="coins of steps", theorem=_UNION)
FAVOURED = Share(
    whole="level of coins",
    part=0.9,
    between="bets or one game: what is planned to prove more",
    theorem=_UNION,
)
OTHER = Share(
    whole="level of coins", part=1 - FAVOURED.part, between="the other one of these", theorem=_UNION
)
SIZES = Share(
    whole="p-value of sampling",
    part=0.96,
    between="mean and variance of batch sizes",
    theorem=_UNION,
)
DISTINCT_SIZES = Share(
    whole="p-value of sampling",
    part=1 - SIZES.part,
    between="how many sizes there are",
    theorem=_UNION,
)
MEAN_SIDES = Share(
    whole="p-value of the mean size",
    part=1.0,
    between="too large and too small",
    theorem=_TWO_SIDES,
)
VARIANCE_SIDES = Share(
    whole="p-value of the variance", part=1.0, between="too large and too small", theorem=_TWO_SIDES
)
RATE_SIDES = Share(
    whole="level of limits of the rate",
    part=1.0,
    between="the lower and the upper one",
    theorem=_UNION,
)

# Of recorded batches
BATCHES = Share(
    whole="p-value of recorded batches",
    part=1.0,
    between="few in common, many in common, and counts",
    theorem=_UNION,
)
COUNT_SIDES = Share(
    whole="p-value of counts", part=1.0, between="too even and too uneven", theorem=_TWO_SIDES
)

# Of a probed step of DP-SGD
STEP_TENSORS = Share(
    whole="level of a probe",
    part=0.25,
    between="upper limits of the noise of tensors",
    theorem=_UNION,
)
STEP_JOINT = Share(
    whole="level of a probe",
    part=0.25,
    between="the joint region of the noise of all tensors",
    theorem=_UNION,
)
STEP_DIRECTION = Share(
    whole="level of a probe",
    part=0.1,
    between="the noise along the longest difference",
    theorem=_UNION,
)
STEP_NORMAL = Share(
    whole="level of a probe", part=0.1, between="the test of normal noise", theorem=_UNION
)
STEP_INDEPENDENT = Share(
    whole="level of a probe", part=0.1, between="the test of independent noise", theorem=_UNION
)
STEP_FRESH = Share(
    whole="level of a probe",
    part=0.2,
    between="tests of fresh noise, at lags of steps in a row",
    theorem=_UNION,
)

# Of what is shown
DESCRIBED_SIDES = Share(
    whole="level of an interval", part=1.0, between="its lower and its upper end", theorem=_UNION
)
SUMMARY_LINES = Share(
    whole="family-wise level of a benchmark",
    part=1.0,
    between="lines of its summary",
    theorem=_UNION,
)


def table() -> dict[str, Share]:
    """Return all rows by name."""
    return {name: row for name, row in globals().items() if isinstance(row, Share)}
