from collections.abc import Sequence
from typing import Literal, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from leakbound._base.types import CountOptions, FdpTest, TailOptions

__all__ = [
    "Allowance",
    "Bound",
    "Cells",
    "JointCertificate",
    "KeyCounts",
    "LogOddsSet",
    "LogisticModel",
    "OffsetBound",
    "OutsideIn",
    "Path",
    "Pilot",
    "PooledLaw",
    "PropensityRows",
    "Ranking",
    "Reference",
    "TradeOff",
    "__version__",
    "_panic",
    "approx_epsilon",
    "approx_joint_epsilon",
    "approx_joint_largest",
    "approx_p_value",
    "balanced_scores",
    "binomial_tail",
    "clopper_pearson",
    "convex_hull",
    "fdp_critical_laplace",
    "fdp_critical_mu",
    "fdp_least_rejected",
    "fdp_p_value",
    "fdp_rejects",
    "hashed_ids",
    "kl_curve",
    "kl_scan",
    "kl_scan_offset_rows",
    "kl_scan_offset_rows_lowest",
    "kl_scan_offsets",
    "linear_log_odds",
    "log_normal_cdf",
    "matched_counts",
    "normal_cdf",
    "normal_quantile",
    "play",
    "poisson_binomial_epsilon",
    "poisson_binomial_tail",
    "replicated_epsilon",
    "set_threads",
    "simd",
    "threads",
    "union_bound",
    "union_curve",
    "ville_bound_of_moments",
    "weighted_epsilon",
]

_Floats: TypeAlias = NDArray[np.float64]
_Counts: TypeAlias = NDArray[np.int64]
_Grid: TypeAlias = Literal["all", "auto", "geometric"] | Sequence[int]
_Test: TypeAlias = Literal["exact", "hoeffding"] | TailOptions
_Order: TypeAlias = Literal["member", "member_half", "nonmember_half", "interleaved", "ends"]

__version__: str

@final
class Ranking:
    """Membership in order of score, highest first; ties never broken by labels."""

    def __new__(cls, scores: _Floats, member: NDArray[np.bool_]) -> Ranking: ...
    @staticmethod
    def in_order(member: NDArray[np.bool_], block_end: NDArray[np.bool_] | None = None) -> Ranking:
        """Rank examples that are in order, the likeliest member first, none or blocks tied."""
    @staticmethod
    def of_rows(
        scores: _Floats, members: NDArray[np.uint32], others: NDArray[np.uint32]
    ) -> Ranking:
        """Rank the scores of some rows, and no others."""
    @staticmethod
    def of_blocks(examples: _Counts, members: _Counts, *, seed: int | None) -> Ranking:
        """Rank counted examples, the highest score first; a seed breaks ties at random."""
    @property
    def examples(self) -> int: ...
    @property
    def members(self) -> int: ...
    @property
    def blocks(self) -> int:
        """Number of distinct scores."""
    @property
    def tied(self) -> int:
        """Number of examples that share their score with another."""
    @property
    def auc(self) -> float: ...
    def path(self, order: _Order) -> Path:
        """Guesses in visiting order; all but "member" use the role boundary."""
    def roc(self, points: int) -> tuple[_Counts, _Counts]:
        """Examples above, and members among them, at label-free cuts from both ends."""

@final
class Path:
    """Right and wrong guesses in visiting order, with the cuts that scores allow."""

    @staticmethod
    def from_successes(successes: NDArray[np.bool_]) -> Path: ...
    @staticmethod
    def correct_first(guesses: int, correct: int) -> Path:
        """Return a path with every cut allowed, right guesses first; of any length."""
    @property
    def guesses(self) -> int: ...
    @property
    def correct(self) -> int: ...
    def count(self, guesses: int) -> tuple[int, int]:
        """Guesses and right ones at the first allowed cut with at least `guesses`."""
    def prefix(self, guesses: int) -> Path:
        """Return the path to its last allowed cut of at most so many guesses, or to its first."""
    def sample(self, points: int) -> tuple[_Counts, _Counts]:
        """Guesses and right ones at no more than `points` allowed cuts."""

@final
class Bound:
    """A lower bound on the probability of a correct guess, and the cut that gave it."""

    @property
    def p(self) -> float: ...
    @property
    def logit(self) -> float: ...
    @property
    def cut(self) -> int: ...
    @property
    def successes(self) -> int: ...
    @property
    def statistic(self) -> float: ...

@final
class OffsetBound:
    """A lower bound on ε where every guess has odds of its own, and the cut that gave it."""

    @property
    def epsilon(self) -> float: ...
    @property
    def cut(self) -> int: ...
    @property
    def successes(self) -> int: ...
    @property
    def statistic(self) -> float: ...

@final
class TradeOff:
    """A trade-off function of any family."""

    @staticmethod
    def gaussian(mu: float, delta: float) -> TradeOff: ...
    @staticmethod
    def laplace(epsilon: float) -> TradeOff: ...
    @staticmethod
    def approx(epsilon: float, delta: float) -> TradeOff: ...
    @staticmethod
    def tabulated(alpha: _Floats, f: _Floats) -> TradeOff: ...
    @staticmethod
    def profile(epsilon: _Floats, delta: _Floats) -> TradeOff: ...
    def f(self, alpha: _Floats) -> _Floats: ...
    def inverse(self, x: _Floats) -> _Floats: ...
    def delta(self, epsilon: _Floats) -> _Floats: ...
    def epsilon(self, delta: _Floats) -> _Floats: ...

def convex_hull(x: _Floats, y: _Floats) -> tuple[_Floats, _Floats]:
    """Corners of the largest convex function below points, by increasing x."""

@final
class PooledLaw:
    """How many members the share with the largest likelihood ratios of a curve holds."""

    def __new__(cls, level: _Floats, missed: _Floats) -> PooledLaw: ...
    @property
    def share(self) -> _Floats:
        """Shares of both laws together, between which the members held are linear."""
    @property
    def mass(self) -> _Floats:
        """The mass of members in these shares."""

@final
class Reference:
    """The statistic of a ranking of trials whose reference is a law."""

    def ratios(self, members: NDArray[np.uint64]) -> _Floats:
        """Return logarithms of the ratios of the shift, then of excesses by place and size."""

@final
class Cells:
    """A ranking of trials between fixed ranks: 1, 2, 3, 4, 6, 8, 11, … from either end."""

    def __new__(cls, trials: int) -> Cells: ...
    @property
    def ends(self) -> list[int]:
        """The numbers of trials at an end."""
    @property
    def edges(self) -> list[int]:
        """The ranks after which cells end, and 0."""
    def perfect(self, members: NDArray[np.uint64]) -> bool:
        """Whether all members are above all others, as far as cells tell."""
    def reference(self, law: PooledLaw) -> Reference: ...
    def draw(self, law: PooledLaw, number: int, seed: int) -> NDArray[np.uint64]:
        """Members in the cells of rankings drawn from a law, a row for each ranking."""
    def reaching(
        self,
        law: PooledLaw,
        reached: Sequence[tuple[Reference, float]],
        *,
        number: int,
        most: int,
        seed: int,
    ) -> int:
        """How many drawn rankings reach one of some statistics, or are perfect.

        It is `most` + 1 if more than `most` do; the same on any number of threads.
        """

def fdp_rejects(counts: CountOptions, curve: TradeOff, tau: float, test: FdpTest) -> bool: ...
def fdp_p_value(counts: CountOptions, curve: TradeOff, test: FdpTest) -> float: ...
def fdp_least_rejected(
    levels: Sequence[CountOptions], curve: TradeOff, tau: Sequence[float]
) -> list[int]:
    """Return the least count that the recursion rejects at each level, whatever was counted."""

@final
class Allowance:
    """Levels for each number of independent trials that may fail under (ε, δ)-DP."""

    def __new__(cls, trials: int, delta: float, level: float) -> Allowance: ...
    @property
    def kappas(self) -> list[tuple[int, float]]:
        """Numbers of failures, and the level of each and of those after the one before it."""
    def limit(self, guesses: int, correct: int) -> float:
        """Return the largest epsilon refuted whatever was chosen, -inf if there is none."""

@final
class JointCertificate:
    """A bound on the probability that a level chosen from the outside in has so many right."""

    def __new__(cls, levels: Sequence[CountOptions], curve: TradeOff) -> JointCertificate: ...
    def made_at(self, curve: TradeOff) -> JointCertificate:
        """Return a certificate of the same levels made at another curve."""
    def bound_for(self, curve: TradeOff) -> float:
        """Return the bound for another curve too, rounded up; 1 if there is no proof."""

@final
class OutsideIn:
    """Levels fixed before labels are seen, and the rule that stops at one of them."""

    def __new__(
        cls,
        examples: int,
        level: float,
        *,
        k: int,
        roles: Literal["both", "member", "either"],
        form: Literal["pure", "approximate", "family", "trials"],
        delta: float,
        share: float,
        levels: Sequence[int] | None,
    ) -> OutsideIn: ...
    @property
    def levels(self) -> list[int]: ...
    @property
    def shares(self) -> list[float]:
        """The share of the level at which each of them is weighed against the others."""
    def worth(self, index: int, correct: float) -> float:
        """Return about what correct guesses at a level prove: for choices, not for claims."""
    def choose(self, path: Path) -> int:
        """Return the index of the level to test, from labels beyond it."""
    def choose_ends(self, top: Path, bottom: Path) -> tuple[int, int]:
        """Return the index of the level, and how many guesses of "member" are among its guesses."""

@final
class Pilot:
    """Blocks of ranks of the ends of a ranking, of which a quarter of the labels is seen."""

    def __new__(cls, ends: Sequence[Path]) -> Pilot: ...
    @staticmethod
    def weighted(path: Path, weights: _Floats) -> Pilot:
        """Look at labels of ranks of a path, each with its weight in [0, 1]."""
    @staticmethod
    def seen_of(guesses: int) -> list[tuple[int, int]]:
        """Return first rank and the rank after the last one of those that `weighted` looks at."""
    @property
    def numbers(self) -> list[int]:
        """How many examples the best block leaves to be tested, the best two, and so on."""
    def accuracy(self, guesses: Sequence[int], caution: float) -> list[float]:
        """Return the accuracy of so many guesses of the best blocks, less standard errors."""
    def tested(self, guesses: int) -> list[tuple[int, int, int]]:
        """Return end, first rank and the rank after the last one of what is tested."""
    def correct(self, guesses: int) -> int:
        """Return how many of so many guesses of the best blocks are right."""

def approx_joint_epsilon(counts: CountOptions, delta: float, level: float, share: float) -> float:
    """Return the largest epsilon refuted whatever the level chosen, -inf if there is none."""

def approx_joint_largest(
    counts: Sequence[CountOptions], delta: float, level: float, shares: Sequence[float]
) -> list[float]:
    """Return the largest limit of some counts at each share of the level for failures."""

def fdp_critical_mu(counts: CountOptions, delta: float, tau: float, test: FdpTest) -> float | None:
    """Return the largest mu rejected, None if there is none."""

def fdp_critical_laplace(counts: CountOptions, tau: float, test: FdpTest) -> float | None: ...
def play(
    value: float, *, fraction: float | None, examples: int, seed: int, first: int, count: int
) -> list[Ranking]:
    """Play games: Gaussian of μ = `value`, or with a fraction randomised response of ε."""

def kl_scan(
    path: Path,
    *,
    beta: float,
    kappa: float | None,
    min_guesses: int,
    grid: _Grid,
    failures: float = 0.0,
    least: float = ...,
) -> Bound:
    """Return the best cut, calibrated; `failures` is E F/(1 - p) of rare failures.

    Where its log-odds are sure to be below `least` it is 0, and not computed.
    """

def kl_scan_offsets(
    path: Path,
    offsets: _Floats,
    *,
    beta: float,
    kappa: float | None,
    min_guesses: int,
    floor: float = ...,
) -> OffsetBound: ...
def kl_scan_offset_rows(
    path: Path,
    offsets: _Floats,
    *,
    beta: float,
    kappa: float | None,
    min_guesses: int,
    floors: _Floats,
) -> _Floats:
    """Return one epsilon for each row of as many offsets as guesses, laid end to end.

    It may be -inf if it is below the floor of its row.
    """

def kl_scan_offset_rows_lowest(
    right: NDArray[np.bool_],
    offsets: _Floats,
    *,
    halves: bool,
    beta: float,
    kappa: float | None,
    min_guesses: int,
    rank: int,
) -> float:
    """Return the epsilon of a rank, from 1 for the smallest, over rows of offsets, at least 0.

    The epsilon of a row is the largest of all guesses and, if `halves`, of every other one.
    """

def matched_counts(
    scores: _Floats,
    member: NDArray[np.bool_],
    log_odds: _Floats,
    uniforms: _Floats,
    *,
    guesses: int,
    one_sided: bool,
    residual: bool,
) -> tuple[_Counts, _Counts, _Counts]:
    """Return kept, guesses and correct for each row of log-odds and, within, of uniforms."""

def union_bound(path: Path, *, beta: float, grid: _Grid, ratio: float, tail: _Test) -> Bound: ...
def kl_curve(
    path: Path,
    *,
    beta: float,
    kappa: float | None,
    min_guesses: int,
    grid: _Grid,
    points: int,
    failures: float = 0.0,
) -> tuple[_Counts, _Counts, _Floats]:
    """Guesses, correct guesses and logit of the bound, cut by cut."""

def union_curve(
    path: Path,
    *,
    beta: float,
    grid: _Grid,
    ratio: float,
    tail: _Test,
    points: int,
) -> tuple[_Counts, _Counts, _Floats]: ...
def ville_bound_of_moments(
    guesses: _Counts, correct: _Counts, *, sequences: int, beta: float
) -> tuple[int, float] | None:
    """Return the best moment by the mean of the mixtures of all sequences, and its logit.

    Both arrays hold a count for each sequence, one moment after the other; None if no moment
    stands out.
    """

def approx_p_value(correct: int, guesses: int, epsilon: float, options: TailOptions) -> float: ...
def approx_epsilon(correct: int, guesses: int, beta: float, options: TailOptions) -> float: ...
def normal_cdf(x: _Floats) -> _Floats: ...
def normal_quantile(p: _Floats) -> _Floats: ...
def log_normal_cdf(x: _Floats) -> _Floats: ...
def binomial_tail(
    v: NDArray[np.uint64], n: NDArray[np.uint64], p: _Floats, *, log: bool
) -> _Floats: ...
def clopper_pearson(v: NDArray[np.uint64], n: NDArray[np.uint64], *, beta: _Floats) -> _Floats: ...
def poisson_binomial_tail(
    values: _Floats,
    v: _Counts,
    epsilon: _Floats,
    *,
    counts: NDArray[np.uint64] | None,
    offsets: bool,
) -> tuple[_Floats, _Floats, _Floats]:
    """Tails, their logarithms and relative errors; `values` are probabilities or offsets."""

def poisson_binomial_epsilon(
    offsets: _Floats, v: _Counts, *, beta: float, counts: NDArray[np.uint64] | None
) -> _Floats: ...
def replicated_epsilon(
    offsets: _Floats,
    v: _Counts,
    *,
    beta: float,
    counts: NDArray[np.uint64] | None,
    terms: int,
) -> _Floats:
    """One epsilon for each row of `terms` offsets or counts, laid end to end."""

def weighted_epsilon(
    offsets: _Floats, v: _Counts, *, beta: float, weights: NDArray[np.uint64]
) -> _Floats: ...

@final
class KeyCounts:
    """Scores counted by key: the first `bits` bits of a float32, in the order of scores."""

    def __new__(cls, bits: int) -> KeyCounts: ...
    def add(self, scores: _Floats | NDArray[np.float32], member: NDArray[np.bool_]) -> int | None:
        """Count rows; return the first that is NaN, if there is one."""
    def counts(self) -> tuple[_Counts, _Counts, _Counts]:
        """Return keys, examples of each, and members among them."""

def hashed_ids(prefix: str, ids: _Counts | list[str]) -> NDArray[np.uint64]:
    """Return the first 8 bytes of the MD5 of the prefix and each id, the first most significant."""

def threads() -> int: ...
def set_threads(count: int) -> None: ...
def simd() -> Literal["avx512", "avx2", "portable"]:
    """Name the vector instructions in use."""

def _panic(place: Literal["in place", "on the pool", "in a task"]) -> None:
    """Panic, to test that a defect ends in `InternalError`."""

@final
class PropensityRows:
    """The rows a propensity model learns from."""

    def __new__(
        cls,
        features: _Floats,
        member: NDArray[np.bool_],
        *,
        folds: NDArray[np.uint8] | None,
        l2: float,
    ) -> PropensityRows: ...
    def fit(self) -> LogisticModel: ...
    def coefficients(self, model: LogisticModel) -> _Floats:
        """Return intercept and slopes of a fit of these rows, calibrated."""

    def resamples(self, *, seed: int, first: int, count: int) -> NDArray[np.uint32]:
        """Return how often each row occurs in `count` resamples, one row of counts for each."""

    def bootstrap(self, model: LogisticModel, *, seed: int, first: int, count: int) -> _Floats:
        """Return intercept and slopes of the refits of `count` resamples, one row for each."""

@final
class LogisticModel:
    """A fitted propensity model."""

def linear_log_odds(coefficients: _Floats, features: _Floats) -> _Floats:
    """Return log-odds of rows of features, one row for each row of coefficients."""

@final
class LogOddsSet:
    """A confidence set of the coefficients of a logistic model of membership."""

    def __new__(
        cls,
        features: _Floats,
        member: NDArray[np.bool_],
        offsets: _Floats,
        *,
        reference: int,
        own_intercept: bool,
        level: float,
        seed: int,
    ) -> LogOddsSet: ...
    @property
    def squared_radius(self) -> float: ...
    def estimate(self) -> _Floats:
        """Return intercept, slopes, and the difference of intercepts where there is one."""

    def contains(self, coefficients: _Floats) -> bool: ...
    def leaves(self, direction: _Floats) -> _Floats:
        """Return where the ray from the estimate in a direction leaves the set."""

    def least_epsilon(
        self, rows: _Counts, guesses: _Counts, *, level: float
    ) -> tuple[float, _Floats, _Floats]:
        """Return the least epsilon refuted over the set, with coefficients and log-odds."""

    def largest_log_tail(self, rows: _Counts, guesses: _Counts) -> float: ...
    def least_matched(
        self,
        rows: _Counts,
        guesses: _Counts,
        *,
        inside: int,
        made: int,
        share: float,
        prices: tuple[float, float],
    ) -> tuple[_Floats, _Floats]:
        """Return coefficients and log-odds, a row for the estimate and for each of the lowest."""

    def matched(
        self,
        log_odds: _Floats,
        rows: _Counts,
        guesses: _Counts,
        *,
        inside: int,
        made: int,
        share: float,
    ) -> _Floats:
        """Return kept, guesses and correct ones that a share of draws reaches, by row."""

    def members_near(
        self, coefficients: _Floats, *, reach: float, count: int, draw: int
    ) -> tuple[_Floats, _Floats]:
        """Return coefficients and log-odds of members at random steps from one, a row for each."""

    def least_surviving(
        self, rows: _Counts, guesses: _Counts, *, epsilon: float
    ) -> tuple[float, _Floats, _Floats]:
        """Return the least mean number of surviving guesses, with coefficients and log-odds."""

    def largest_shift(self) -> float: ...

def balanced_scores(
    scores: _Floats,
    features: _Floats,
    weights: _Floats,
    odd: _Floats,
    counts: _Floats,
    *,
    guesses: float,
    labels: float,
    one_sided: bool,
) -> _Floats:
    """Return scores less a linear function of features, chosen without labels."""
