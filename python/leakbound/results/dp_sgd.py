"""What a white-box audit of DP-SGD returns; the public names are those of the package."""

import html
import math
import os
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from leakbound._base.checks import choice, instance, integer, real
from leakbound._base.formatting import down, number, percent, up
from leakbound._base.records import IF_ANY, Record
from leakbound._base.types import Kind, Relation, Verdict
from leakbound.claims import SubsampledGaussianDP
from leakbound.claims.families import checked_rate
from leakbound.errors import IncompatibleOptionsError
from leakbound.report import write
from leakbound.report.contents import Figure, Levels, Meaning, Metric, Section, Summary, Terms
from leakbound.report.parts import Assumption, Provenance
from leakbound.results.checks import named
from leakbound.results.one_run import AuditResult
from leakbound.results.words import DELTA

Part: TypeAlias = Literal["membership", "steps", "sampling", "accounting"]
"""What may refute the accountant: three audits, and its own arithmetic."""
RateSource: TypeAlias = Literal["lower limit", "stated"]
CoinRanking: TypeAlias = Literal["each step", "across steps"]
"""Guesses follow what a step released, or how it differs from the noise of the steps before."""

STEPS_THEOREM = (
    "Given the batches of the user's own examples and all other coins, the coin of a canary in one "
    "step leaves the law of what came before as it is, moves the sum of that step by at most one "
    "clipped gradient, and what follows depends on it through what was released only. So no test "
    "tells its two sides apart better than N(0, s²) and N(1, s²), s the noise multiplier of that "
    "step, and the coins of all canaries in all steps are one game with a trade-off function."
)
BETTING_THEOREM = (
    "Given everything before a step, the coins of its canaries are fair and no test tells the two "
    "sides of one better than N(0, s²) and N(1, s²). So of r guesses about m coins the mean number "
    "of correct ones is at most w = m Φ(1/s - a), a the number with Φ(-a) + Φ(1/s - a) = r/m, "
    "however the coins hang together within the step. A bet that multiplies what it has by "
    "1 - b + b W / w, W the correct guesses and b its stake, gains nothing on average if the step "
    "has noise multiplier s or more, so that with probability at most p it ever reaches 1/p times "
    "what it began with. Guesses, stakes and the share of each bet are fixed before training."
)
_MEANS = (
    "No guarantee whose ε is below what is proved holds for the run that was watched, all noisy "
    "gradients released, at the stated confidence."
)
_NOT_MEANT = (
    "It does not say that ε is this number: no upper limit follows from any audit.",
    "It is about a run whose noisy gradients are all released: the final model may leak less.",
    (
        "It sees what happens to gradients once there is one for each example. Whatever mixes "
        "examples before that, or treats parameters of the model unlike the watcher's, is not seen."
    ),
)


@dataclass(frozen=True, kw_only=True)
class Accounted(Record):
    """What an accountant says of a training run.

    Parameters
    ----------
    epsilon : float
        ε, in nats, at least 0.
    delta : float
        The δ that it is stated at, in (0, 1).
    source : str
        Which accountant.
    sampling_rate, steps, noise_multiplier : float, int and float, optional
        What it was computed from.
    relation : {"add_remove", "replace"}
        What the guarantee compares. Audits of DP-SGD are on adding or removing one example.

    Raises
    ------
    OptionError, OptionTypeError
        If a value is outside its range or of the wrong type.

    Examples
    --------
    >>> Accounted(epsilon=8.0, delta=1e-5, source="opacus prv").epsilon
    8.0
    """

    epsilon: float
    delta: float
    source: str = ""
    sampling_rate: float | None = None
    steps: int | None = None
    noise_multiplier: float | None = None
    relation: Relation = field(default="add_remove", metadata=IF_ANY)

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("epsilon", real(self.epsilon, "epsilon", least=0))
        put("delta", real(self.delta, "delta", above=0, below=1))
        instance(self.source, "source", str)
        choice(self.relation, "relation", Relation)
        if self.sampling_rate is not None:
            put("sampling_rate", checked_rate(self.sampling_rate))
        if self.steps is not None:
            put("steps", integer(self.steps, "steps", least=1))
        if self.noise_multiplier is not None:
            put("noise_multiplier", real(self.noise_multiplier, "noise_multiplier", above=0))

    @property
    def name(self) -> str:
        """How reports call it."""
        by = f" ({self.source})" if self.source else ""
        return f"ε = {self.epsilon:.4g} at δ = {self.delta:g}{by}"


@dataclass(frozen=True, kw_only=True, eq=False)
class SamplingResult(Record):
    """What the sizes of the batches say about how they were drawn.

    Parameters
    ----------
    sampling_rate : float
        q, as the watch was told.
    batches : int
        Batches seen.
    least_examples, most_examples : int
        Training examples, between which the size of the data lies; 0 if unknown.
    largest : int
        Examples in the largest batch.
    mean, variance : float
        Of the sizes of the batches.
    expected_variance : float
        What Poisson sampling gives at that mean; of all sizes of the data, what is nearest.
    p_mean : float
        Probability of a mean so far from N q, under Poisson sampling at rate q; 1 if not tested.
    p_variance : float
        Probability of a variance so far from that of Poisson sampling, whatever its rate, given
        the mean; 1 if not tested.
    lower_rate, upper_rate : float or None
        Limits of the rate, each at half of the probability of error, under Poisson sampling; None
        where the number of examples is not known, so that the rate is just stated.
    confidence : float
        One minus the probability that batches drawn as claimed are refuted.
    reason : str
        Why nothing was tested; empty if something was.
    """

    sampling_rate: float
    batches: int
    least_examples: int
    most_examples: int
    largest: int
    mean: float
    variance: float
    expected_variance: float
    p_mean: float
    p_variance: float
    lower_rate: float | None = field(default=None, metadata=IF_ANY)
    upper_rate: float | None = field(default=None, metadata=IF_ANY)
    confidence: float
    reason: str

    @property
    def p_value(self) -> float:
        """Probability of batches so unlike what is claimed: both tests together."""
        return min(1.0, 2 * min(self.p_mean, self.p_variance))

    @property
    def refutes(self) -> bool:
        """Whether the batches are not Poisson samples at the claimed rate, at this confidence."""
        return self.p_value <= 1 - self.confidence

    def sentence(self) -> str:
        """Return what the sizes of the batches say.

        Returns
        -------
        str
            One sentence or two.
        """
        if self.reason:
            return f"Sizes of batches were not tested: {self.reason}."
        low, high = self.least_examples, self.most_examples
        examples = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        seen = (
            f"{self.batches:,} batches of {self.mean:.1f} examples on average, variance "
            f"{self.variance:.1f}; Poisson samples of {examples} examples at rate "
            f"{self.sampling_rate:g} have {self._expected}, variance {self.expected_variance:.1f}"
        )
        if not self.refutes:
            stated = "" if self.limits else "; the rate is only stated: pass examples=len(dataset)"
            return f"{seen}: nothing speaks against it{stated}."
        wrong = []
        if self.largest > high:
            wrong.append(f"a batch has {self.largest:,} examples, more than there are")
        elif 2 * self.p_mean <= 1 - self.confidence:
            limits = f"; it is {self.limits}, if samples are Poisson" if self.limits else ""
            wrong.append(f"the rate is not {self.sampling_rate:g} (p = {self.p_mean:.2g}{limits})")
        if 2 * self.p_variance <= 1 - self.confidence:
            how = "too much alike" if self.variance < self.expected_variance else "too unlike"
            wrong.append(f"sizes are {how} for Poisson sampling (p = {self.p_variance:.2g})")
        return f"{seen}. Refuted: {', and '.join(wrong)}."

    @property
    def limits(self) -> str:
        """The limits of the rate; empty where it is just stated."""
        if self.reason or self.lower_rate is None or self.upper_rate is None:
            return ""
        return f"{self.lower_rate:.4g} to {self.upper_rate:.4g}"

    @property
    def _expected(self) -> str:
        low = self.sampling_rate * self.least_examples
        high = self.sampling_rate * self.most_examples
        return f"{low:.1f}" if low == high else f"{low:.1f} to {high:.1f}"

    def _flaw(self) -> str:
        limits = (self.lower_rate, self.upper_rate)
        shares = (self.p_mean, self.p_variance, *limits)
        if not all(share is None or 0 <= share <= 1 for share in shares):
            return "p_mean, p_variance, lower_rate and upper_rate do not all lie in [0, 1]"
        if limits != (None, None) and self.least_examples != self.most_examples:
            return "there are limits of the rate, though the number of examples is not known"
        return _confidence_flaw(self.confidence)


@dataclass(frozen=True, kw_only=True, eq=False)
class Wager(Record):
    """A bet on the coins of each step, and how its guesses went.

    Parameters
    ----------
    ranking : {"each step", "across steps"}
        Where guesses come from: what a step released, or how it differs from the mean noise that
        each canary had in the steps before.
    guesses : int
        Guesses about each step.
    stake : float
        Share of what the bet has that is staked in each step, in (0, 1].
    weight : float
        Share of all that is bet, in (0, 1].
    correct : int
        Correct guesses, of all steps.
    """

    ranking: CoinRanking
    guesses: int
    stake: float
    weight: float
    correct: int


@dataclass(frozen=True, kw_only=True, eq=False)
class BettingResult(Record):
    """What bets on the coins, one step after the other, prove about the noise that was added.

    Parameters
    ----------
    bound : float
        Some step's noise multiplier is at most this; inf if nothing is proved.
    coins : int
        Coins of each step.
    steps : int
        Steps that were bet on.
    wagers : tuple of Wager
        The bets, which share what is bet.
    confidence : float
        Of the bound by itself.
    """

    bound: float
    coins: int
    steps: int
    wagers: tuple[Wager, ...]
    confidence: float

    @property
    def guesses(self) -> int:
        """Guesses of the first bet, about all steps."""
        return self.wagers[0].guesses * self.steps

    @property
    def correct(self) -> int:
        """Correct guesses of the first bet."""
        return self.wagers[0].correct

    def sentence(self) -> str:
        """Return how the guesses went.

        Returns
        -------
        str
            One sentence.
        """
        first = self.wagers[0]
        return (
            f"Of {first.guesses:,} guesses about the {self.coins:,} coins of each of "
            f"{self.steps:,} steps {percent(self.correct / self.guesses)} were correct."
        )

    def _flaw(self) -> str:
        if not self.bound > 0 or self.steps < 1 or not self.wagers:
            return "bound must be above 0, steps at least 1, and wagers not empty"
        for one in self.wagers:
            choice(one.ranking, "ranking", CoinRanking)
            if not 1 <= one.guesses <= self.coins:
                return f"guesses ({one.guesses}) must be between 1 and coins ({self.coins})"
            if not 0 <= one.correct <= one.guesses * self.steps:
                return f"correct ({one.correct}) must be at most guesses in all steps"
            if not (0 < one.stake <= 1 and 0 < one.weight <= 1):
                return "stakes and weights must be in (0, 1]"
        if sum(one.weight for one in self.wagers) > 1 + 1e-9:
            return "weights of wagers sum to more than 1"
        return _confidence_flaw(self.confidence)


@dataclass(frozen=True, kw_only=True, eq=False)
class StepsResult(Record):
    """What the noisy gradients, step by step, prove about the noise that was added.

    Parameters
    ----------
    bound : float
        Some step's noise multiplier is at most this; inf if nothing is proved.
    noise_multiplier, largest_noise_multiplier : float
        The smallest one that the optimizer stated, and the largest: if they differ no ε follows.
    steps : int
        Steps seen.
    sampling_rate : float
        The rate that ε is converted at: a lower confidence limit, where the number of examples is
        known.
    rate_source : {"lower limit", "stated"}
        Whether it is such a limit, or just what was claimed.
    confidence : float
        Probability that bound and rate both are on the safe side.
    game : AuditResult
        The audit of all coins as one game, of Gaussian DP with μ = 1/σ.
    betting : BettingResult or None
        Bets on the coins, one step after the other; None in results of earlier versions.

    Notes
    -----
    `epsilon` holds *if* the run is so many steps of one constant noise multiplier on Poisson
    samples at this rate or more, all noisy gradients released. Nothing checks that they are: a few
    quiet steps among loud ones give the same bound, and less leakage.
    """

    bound: float
    noise_multiplier: float
    largest_noise_multiplier: float
    steps: int
    sampling_rate: float
    rate_source: RateSource
    confidence: float
    game: AuditResult
    betting: BettingResult | None = field(default=None, metadata=IF_ANY)

    @property
    def varies(self) -> bool:
        """Whether the optimizer stated several noise multipliers."""
        return self.largest_noise_multiplier > self.noise_multiplier

    @property
    def reason(self) -> str:
        """Why nothing is proved; empty if something is."""
        return self.game.reason if math.isinf(self.bound) else ""

    @property
    def counted(self) -> tuple[int, int, int]:
        """Correct guesses, guesses and coins of what gives the bound: bets, or one game."""
        bets, game = self.betting, self.game
        if bets is not None and bets.bound <= self.bound < math.inf:
            return bets.correct, bets.guesses, bets.coins * bets.steps
        return game.correct, game.guesses, game.m

    def grounds(self) -> tuple[Section, ...]:
        """Return why the bound holds, for bets and for one game of all coins.

        Returns
        -------
        tuple of Section
            Theorems, what they assume, and figures.
        """
        game = self.game.grounds(
            "Steps: why one game of all coins holds", STEPS_THEOREM, figures=self.game.figures()
        )
        if self.betting is None:
            return (game,)
        bets = Section(
            "Steps: why bets hold",
            (self.betting.sentence(), BETTING_THEOREM),
            _betting_assumptions(),
        )
        return bets, game

    @property
    def refutes(self) -> bool:
        """Whether some step added less noise than the optimizer stated, at this confidence."""
        return self.bound < self.noise_multiplier

    def epsilon(self, delta: float) -> float:
        """Return the ε of the whole training that the bound converts to.

        Parameters
        ----------
        delta : float
            δ, in (0, 1), of adding or removing one example.

        Returns
        -------
        float
            ε, in nats, that tests of so many steps at this noise and rate attain; 0 if nothing is
            proved.

        Raises
        ------
        OptionError, OptionTypeError
            If `delta` is not in (0, 1).
        IncompatibleOptionsError
            If the noise multiplier varied: no ε follows from its smallest value.
        """
        checked = real(delta, "delta", above=0, below=1)
        if self.varies:
            message = (
                "the noise multiplier varied from step to step: the bound is on its smallest "
                "value, and no ε of the whole training follows"
            )
            raise IncompatibleOptionsError(message)
        if math.isinf(self.bound) or not self.sampling_rate:
            return 0.0
        family = SubsampledGaussianDP(sampling_rate=self.sampling_rate, steps=self.steps)
        return float(family.attained(self.bound, "both").epsilon(checked))

    def sentence(self, delta: float) -> str:
        """Return what is proved: about noise, and about ε if the noise is constant.

        Parameters
        ----------
        delta : float
            δ, in (0, 1).

        Returns
        -------
        str
            One sentence or two.
        """
        if math.isinf(self.bound):
            return "Nothing is proved about the noise of any step."
        noise = (
            f"With {percent(self.confidence)} confidence some step's noise multiplier is at most "
            f"{up(self.bound)}; the optimizer stated {self.noise_multiplier:.4g}"
        )
        if self.varies:
            return f"{noise} at least, and several values, so that no ε follows."
        return (
            f"{noise}. If the run is {self.steps:,} steps of one noise multiplier on Poisson "
            f"samples at {self.rate}, all noisy gradients released, then "
            f"ε ≥ {number(self.epsilon(delta))} at δ = {delta:g}, adding or removing one example."
        )

    @property
    def rate(self) -> str:
        """The rate that ε is converted at, and whether it is just what was claimed."""
        said = "the stated rate of" if self.rate_source == "stated" else "rate"
        return f"{said} {self.sampling_rate:.4g} or more"

    def _flaw(self) -> str:
        if not self.bound > 0 or not self.noise_multiplier > 0:
            return f"bound ({self.bound:g}) and noise_multiplier must be above 0"
        if self.largest_noise_multiplier < self.noise_multiplier:
            return "noise_multiplier <= largest_noise_multiplier does not hold"
        if self.steps < 1 or not 0 <= self.sampling_rate <= 1:
            return "steps must be at least 1, and sampling_rate in [0, 1]"
        return self._disagreement() or _confidence_flaw(self.confidence)

    def _disagreement(self) -> str:
        """Return where the bound is not that of bets and game together."""
        proved, spent = self.game.bound, 1 - self.game.confidence
        if self.betting is not None:
            if self.betting.steps != self.steps:
                return f"steps are {self.steps}, and those bet on {self.betting.steps}"
            proved = max(proved, 1 / self.betting.bound)
            spent += 1 - self.betting.confidence
            if spent > (1 - self.confidence) * (1 + 1e-9):
                return "bets and game have more of the level than confidence leaves"
        bound = 1 / proved if proved else math.inf
        if not math.isclose(self.bound, bound, rel_tol=1e-9):
            return f"bound is {self.bound:g}, and μ of the best game {proved:g}, not its inverse"
        return ""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DPSGDAudit(Record):
    """What a watched training run with DP-SGD proves, beside what its accountant says.

    Each of the three audits holds with the stated confidence by itself; `refuted_by` gives each a
    third of the probability of error, so that a correct run is refuted by any of them with no more
    than that.

    Parameters
    ----------
    membership : AuditResult
        The whole run: who was in training.
    steps : StepsResult
        Each step: how much noise was added.
    sampling : SamplingResult
        The batches: how they were drawn.
    accounted : Accounted or None
        What the accountant says.
    attainable : float or None
        The ε that tests attain of the mechanism as stated, at the accountant's δ: an accountant
        that says less is wrong. None without an accountant, or if the noise varied.
    refuted_by : tuple of {"membership", "steps", "sampling", "accounting"}
        What contradicts the mechanism as stated, at joint confidence; "accounting" if the
        accountant's ε is below `attainable`, which needs no confidence.
    max_steps : int
        Steps declared before training.
    confidence : float
        Of each audit, and of `refuted_by`.
    options : dict
        Every option in force.
    warnings : tuple of str
        What a reader should know; none of it changes a bound.
    """

    membership: AuditResult
    steps: StepsResult
    sampling: SamplingResult
    accounted: Accounted | None = field(default=None, metadata=IF_ANY)
    attainable: float | None = field(default=None, metadata=IF_ANY)
    refuted_by: tuple[Part, ...]
    max_steps: int
    confidence: float
    options: dict[str, Any]
    warnings: tuple[str, ...]

    @property
    def kind(self) -> Kind:
        """What the bound on membership is."""
        return self.membership.kind

    @property
    def verdict(self) -> Verdict:
        """Whether the mechanism as stated is refuted, by whichever part."""
        return "refuted" if self.refuted_by else "not refuted"

    @property
    def delta(self) -> float:
        """The δ that ε is stated at: the accountant's, or else that of the claim, or 1e-5."""
        if self.accounted is not None:
            return self.accounted.delta
        return self.membership.claim.delta or DELTA

    @property
    def proved(self) -> float:
        """The ε that the audit of membership proves, at `delta`."""
        return self.membership.epsilon(self.delta)

    @property
    def provenance(self) -> Provenance:
        """Versions, seed and digests of the inputs."""
        return self.membership.provenance

    @property
    def design(self) -> str:
        """How membership was assigned."""
        return self.membership.design

    @property
    def epsilon_ceiling(self) -> float:
        """The ε that a perfect attack on the membership canaries would prove, at `delta`."""
        perfect = self.membership.rejectable
        if not self.membership.is_family:
            return self.membership.ceiling
        return 0.0 if perfect is None else float(perfect.epsilon(self.delta))

    @property
    def _steps_epsilon(self) -> float | None:
        return None if self.steps.varies else self.steps.epsilon(self.delta)

    def headline(self) -> str:
        """Return the verdict in one sentence or two.

        Returns
        -------
        str
            What is refuted, what was accounted, which proved ε to quote, and why.
        """
        sure = f"({percent(self.confidence)} confidence)"
        verdict = "Nothing contradicts the mechanism as stated"
        if self.refuted_by:
            listed = " and ".join(self.refuted_by)
            verdict = f"Refuted, by {listed}: this run is not the mechanism stated {sure}"
        accounted = "" if self.accounted is None else f", accounted {self.accounted.name}"
        quoted = f"Quote ε ≥ {number(self.proved)} at δ = {self.delta:g}{self._within} {sure}"
        said = f"{verdict}{accounted}. {quoted}: membership, which is measured end to end."
        if not self._steps_epsilon:
            return said
        return (
            f"{said} The steps' ε ≥ {number(self._steps_epsilon)} at that δ is computed, and needs "
            f"one noise multiplier for all steps and Poisson samples at {self.steps.rate}."
        )

    @property
    def _within(self) -> str:
        return f" within {self.membership.claim.name}" if self.membership.is_family else ""

    def evidence(self) -> tuple[str, ...]:
        """Return what each part says, one paragraph each.

        Returns
        -------
        tuple of str
            Membership, steps, sampling, and the accountant's arithmetic where it is wrong.
        """
        return (
            f"Membership: {self._counted}",
            f"Steps: {self.steps.sentence(self.delta)}",
            f"Sampling: {self.sampling.sentence()}",
            *self._arithmetic(),
        )

    @property
    def _counted(self) -> str:
        found = self.membership
        said = (
            f"of {found.guesses:,} guesses about {found.m:,} canaries {found.correct:,} were "
            f"correct, which proves ε ≥ {number(self.proved)} at δ = {self.delta:g}{self._within}."
        )
        return said if not found.reason else f"{said} Nothing, because {found.reason}."

    def _arithmetic(self) -> tuple[str, ...]:
        if "accounting" not in self.refuted_by or self.accounted is None:
            return ()
        return (
            (
                f"Accounting: the accountant says {self.accounted.name}, and a test of the "
                f"mechanism as stated attains ε = {number(self.attainable or 0.0)} at that δ."
            ),
        )

    def answer(self, *, epsilon: float, c: float | None = None) -> str:  # noqa: ARG002 (none here)
        """Return what the audit says about a claimed ε, in one sentence.

        Parameters
        ----------
        epsilon : float
            The claimed ε, at least 0, at `delta`.
        c : None
            Nothing here.

        Returns
        -------
        str
            The verdict and what it means.
        """
        claimed = real(epsilon, "epsilon", least=0)
        sure = f"({percent(self.confidence)} confidence)"
        if self.proved > claimed:
            return f"ε = {claimed:.4g} at δ = {self.delta:g} is refuted{self._within} {sure}."
        within = (
            "" if self.epsilon_ceiling > claimed else ", and these canaries could not refute it"
        )
        return f"ε = {claimed:.4g} at δ = {self.delta:g} is not refuted by membership{within}."

    @property
    def answered(self) -> str:
        """What the audit says about the accountant's ε; empty if none was stated."""
        return "" if self.accounted is None else self.answer(epsilon=self.accounted.epsilon)

    def summary(self) -> Summary:
        """Return the result in a few values, for tables of several.

        Returns
        -------
        Summary
            The bound on membership, and whether anything is refuted.
        """
        found, refuted = self.membership, bool(self.refuted_by)
        at = f" at δ = {self.delta:g}"
        return Summary(
            claim=f"DP-SGD, {found.claim.name}",
            terms=Terms(
                guarantee=f"guarantee of {found.claim.name}",
                family=found.claim.name,
                bound=f"ε < {number(self.proved)}",
                at=at,
            ),
            epsilon=self.proved,
            formula=f"ε ≥ {number(self.proved)}",
            verdict=self.verdict,
            refutes=self.proved > 0,
            leaks=refuted,
            guesses=found.guesses,
            correct=found.correct,
            auc=found.auc,
            text=" ".join((self.headline(), *filter(None, [self.answered]), *self.evidence())),
        )

    def levels(self) -> Levels:
        """Return what the bar from 0 to the ceiling shows.

        Returns
        -------
        Levels
            Proved by membership, and by a perfect attack on the same canaries.
        """
        first, at = self.proved, f" at δ = {self.delta:g}"
        second = max(first, self.epsilon_ceiling)
        low, high = number(first), number(second)
        return Levels(
            first,
            second,
            (
                f"ruled out: ε below {low}{at}",
                f"not ruled out, though within reach: up to {high}",
                f"out of reach of these canaries: ε of {high} and more",
            ),
        )

    def meaning(self) -> Meaning:
        """Return what the number says, and what it does not.

        Returns
        -------
        Meaning
            Sentences.
        """
        family = (
            (f"The ε of membership is a conversion, within {self.membership.claim.name}.",)
            if self.membership.is_family
            else ()
        )
        return Meaning((_MEANS, *family), _NOT_MEANT)

    def metrics(self) -> tuple[Metric, ...]:
        """Return the key numbers, each with a note.

        Returns
        -------
        tuple of Metric
            Accounted and proved ε, noise, and rate.
        """
        at = f" at δ = {self.delta:g}"
        steps, sampling, found = self.steps, self.sampling, self.membership
        correct, guesses, coins = steps.counted
        accounted = self.accounted
        stated = (
            ()
            if accounted is None
            else (
                Metric(
                    f"ε accounted{at}", f"{accounted.epsilon:.4g}", accounted.source or "stated"
                ),
            )
        )
        whole = self._steps_epsilon
        by_steps = (
            ()
            if whole is None
            else (
                Metric(
                    f"ε from steps{at}",
                    number(whole),
                    f"computed, if the noise is constant, at {steps.rate}",
                ),
            )
        )
        return (
            *stated,
            Metric(f"ε from membership{at}", number(self.proved), "to quote: measured end to end"),
            *by_steps,
            Metric(
                "Noise multiplier at most",
                up(steps.bound),
                f"of some step; {steps.noise_multiplier:.4g} stated",
            ),
            Metric(
                "Sampling rate",
                sampling.limits or "not tested",
                f"{sampling.sampling_rate:.4g} stated",
            ),
            Metric("Correct guesses", f"{found.correct:,} of {found.guesses:,}", "membership"),
            Metric(
                "Correct guesses, steps",
                f"{correct:,} of {guesses:,}",
                f"of {coins:,} coins",
            ),
            Metric("Steps", f"{steps.steps:,}", f"{self.max_steps:,} declared"),
        )

    def figures(self) -> tuple[Figure, ...]:
        """Return the figures of the audit of membership, none of them drawn yet.

        Returns
        -------
        tuple of Figure
            Those that every audit has.
        """
        return self.membership.figures()

    def sections(self) -> tuple[Section, ...]:
        """Return the grounds of membership, steps and sampling.

        Returns
        -------
        tuple of Section
            Why each holds, and what it assumes.
        """
        return (
            self.membership.grounds("Membership: why it holds"),
            *self.steps.grounds(),
            Section("Sampling", (self.sampling.sentence(),), _sampling_assumptions(self.sampling)),
        )

    def __str__(self) -> str:
        """Return the paragraph of the page: the verdict and the evidence."""
        return self.summary().text

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str = "Audit of a training run with DP-SGD",
        model: str = "",
        auditor: str = "",
        date: str = "",
        signal: str = "",
        notes: str = "",
    ) -> None:
        """Write a self-contained HTML report, all of it or nothing.

        Parameters
        ----------
        path : str or os.PathLike
            File to write.
        title : str
            Title of the page.
        model, auditor, date, signal : str
            What was audited, by whom, when, and what scores measure; below the title, where they
            are given.
        notes : str
            A paragraph at the end of the page.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        OSError
            If the file cannot be written.
        """
        epsilon = None if self.accounted is None else self.accounted.epsilon
        about = named(model=model, auditor=auditor, date=date, signal=signal)
        write(path, self, title=title, epsilon=epsilon, about=about, notes=notes)

    def _flaw(self) -> str:
        if len(set(self.refuted_by)) < len(self.refuted_by):
            return f"refuted_by names a part twice: {', '.join(self.refuted_by)}"
        for part in self.refuted_by:
            choice(part, "refuted_by", Part)
        if ("accounting" in self.refuted_by) and (
            self.accounted is None
            or self.attainable is None
            or self.accounted.epsilon >= self.attainable
        ):
            return "refuted_by has accounting, and the accountant's ε is not below attainable"
        if self.steps.rate_source == "lower limit" and not self.sampling.limits:
            return "rate_source is 'lower limit', and there are no limits of the rate"
        if self.steps.steps > self.max_steps:
            return f"steps ({self.steps.steps}) <= max_steps ({self.max_steps}) does not hold"
        return _confidence_flaw(self.confidence)

    def __repr__(self) -> str:
        accounted = "" if self.accounted is None else f"accounted {self.accounted.epsilon:.4g}, "
        refuted = f", refuted by {' and '.join(self.refuted_by)}" if self.refuted_by else ""
        return (
            f"DPSGDAudit({accounted}epsilon >= {down(self.proved)} @ {percent(self.confidence)}, "
            f"delta={self.delta:g}, noise multiplier <= {up(self.steps.bound)}{refuted})"
        )

    def _repr_html_(self) -> str:
        said = (self.headline(), *self.evidence(), *self.warnings)
        return "".join(f"<p>{html.escape(text)}</p>" for text in said)


def _betting_assumptions() -> tuple[Assumption, ...]:
    return (
        Assumption(
            "coins of steps",
            "Each canary has a fair coin of its own for each step, drawn from a seed that training "
            "does not know; before that step's sum nothing depends on it.",
            "declared",
        ),
    )


def _sampling_assumptions(found: SamplingResult) -> tuple[Assumption, ...]:
    return (
        Assumption(
            "Poisson sampling",
            f"Every example is in every batch with probability {found.sampling_rate:g}, by itself. "
            "Sizes of batches show fixed sizes, and a wrong rate where the number of examples is "
            "known; which examples are in them is not seen.",
            "contradicted" if found.refutes else "checked" if found.limits else "unverifiable",
        ),
        Assumption(
            "number of steps",
            "The number of steps does not depend on the sizes of batches.",
            "declared",
        ),
    )


def _confidence_flaw(confidence: float) -> str:
    return "" if 0 < confidence < 1 else f"confidence is {confidence:g}, outside (0, 1)"


PARTS: tuple[Part, ...] = get_args(Part)
"""The parts in the order in which `DPSGDAudit.refuted_by` names them."""
