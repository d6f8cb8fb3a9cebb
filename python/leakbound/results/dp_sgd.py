"""What a white-box audit of DP-SGD returns; the public names are those of the package."""

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from leakbound._base import shares
from leakbound._base.checks import choice, instance, integer, real
from leakbound._base.formatting import down, percent, up
from leakbound._base.messages import OF_PARAMETERS, hinted
from leakbound._base.records import IF_ANY, Record
from leakbound._base.types import Batches, Named, Neighbours, Relation, Strings, Verdict
from leakbound.claims.families import checked_rate
from leakbound.claims.training import StatedRun
from leakbound.errors import OptionError
from leakbound.report.parts import ROUNDING, Checked
from leakbound.results.base import Composed, flaw_of
from leakbound.results.dp_step import DPStepAudit
from leakbound.results.one_run import AuditResult, in_code
from leakbound.results.terms import delta_of, scale_of

RateSource: TypeAlias = Literal["lower limit", "stated"]


@dataclass(frozen=True, kw_only=True, eq=False)
class SamplingResult(Record):
    """What batch sizes show about how batches were drawn."""

    sampling_rate: float
    """As declared."""
    batches: int
    """Batches seen."""
    least_examples: int
    most_examples: int
    """Training examples, between which the size of the data lies; 0 if unknown."""
    largest: int
    """Examples in the largest batch."""
    mean: float
    variance: float
    """Mean and variance of batch sizes."""
    expected_variance: float
    """The variance under Poisson sampling at that mean; the nearest one if the size is unknown."""
    p_mean: float
    p_variance: float
    """p-values of Poisson sampling: of the mean, and of the variance given the mean; 1 if not
    tested."""
    p_distinct: float | None = field(default=None, metadata=IF_ANY)
    """That of the number of distinct sizes given the mean; None if not tested."""
    lower_rate: float | None = field(default=None, metadata=IF_ANY)
    upper_rate: float | None = field(default=None, metadata=IF_ANY)
    """Limits of the rate, each at half of the probability of error; None if the number of examples
    is unknown."""
    confidence: float
    """One minus the probability that batches drawn as claimed are refuted."""
    reason: str
    """Why nothing was tested; empty if something was."""
    sampling: Batches = field(default="poisson", metadata=IF_ANY)
    """As declared. Of others than Poisson samples sizes are counted: a p-value is 0 or 1."""

    @property
    def p_value(self) -> float:
        """The p-value of all tests together."""
        return min(1.0, *self._shared().values())

    def refuted(self, test: str) -> bool:
        """Whether a test, of mean, variance or distinct sizes, refutes at its share."""
        return self._shared()[test] <= 1 - self.confidence

    def _shared(self) -> dict[str, float]:
        """Return each p-value multiplied by the price of its share."""
        distinct = 1.0
        if self.p_distinct is not None:
            distinct = self.p_distinct
        of_either = shares.SIZES.price(2)
        return {
            "mean": of_either * self.p_mean,
            "variance": of_either * self.p_variance,
            "distinct": shares.DISTINCT_SIZES.price() * distinct,
        }

    @property
    def refutes(self) -> bool:
        """Whether the batches are not Poisson samples at the claimed rate, at this confidence."""
        return self.p_value <= 1 - self.confidence

    @property
    def limits(self) -> str:
        """The limits of the rate; empty if it was not tested."""
        if self.reason or self.lower_rate is None or self.upper_rate is None:
            return ""
        return f"{self.lower_rate:.4g} to {self.upper_rate:.4g}"

    def _flaw(self) -> str:
        limits = (self.lower_rate, self.upper_rate)
        shares = (self.p_mean, self.p_variance, self.p_distinct, *limits)
        known = self.least_examples == self.most_examples
        sound = all(share is None or 0 <= share <= 1 for share in shares)
        sound = sound and (limits == (None, None) or known)
        return flaw_of(self, sound=sound, confidence=self.confidence)


@dataclass(frozen=True, kw_only=True, eq=False)
class BettingResult(Record):
    """What sequential bets on the coins prove about the noise that was added."""

    bound: float
    """Some step's noise multiplier is at most this; inf if nothing is proved."""
    coins: int
    """Coins of each step."""
    steps: int
    """Steps that were bet on."""
    guesses: int
    """Guesses about each step."""
    stake: float
    """Share of the capital that is bet in each step."""
    correct: int
    """Correct guesses, of all steps."""
    confidence: float
    """Of the bound by itself."""

    def _flaw(self) -> str:
        sound = (
            self.bound > 0
            and self.steps >= 1
            and 1 <= self.guesses <= self.coins
            and 0 <= self.correct <= self.guesses * self.steps
            and 0 < self.stake <= 1
        )
        return flaw_of(self, sound=sound, confidence=self.confidence)


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseResult(Record):
    """What the squares of the released noise prove about it, if it is fresh Gaussian noise.

    They do not test clipping. Noise that is processed, or on another scale, is not covered.
    """

    bound: float
    """Some step's noise multiplier is at most this; inf if nothing is proved."""
    values: int
    """Released values, of all canaries in all steps."""
    penalty: float
    """λ of the test, fixed before training."""
    deviation: float
    """Root mean square of the noise that the past did not predict, in clipping norms."""
    added: float
    """What step canaries in a batch add to what is released on average, in clipping norms."""
    confidence: float
    """Of the bound by itself."""
    reason: str
    """Why nothing is proved; empty if something is."""

    def _flaw(self) -> str:
        sound = (
            self.bound > 0
            and self.values >= 1
            and self.penalty > 0
            and self.deviation >= 0
            and (not self.reason or math.isinf(self.bound))
        )
        return flaw_of(self, sound=sound, confidence=self.confidence)


@dataclass(frozen=True, kw_only=True, eq=False)
class StepsResult(Record):
    """What the noisy gradients, step by step, prove about the noise that was added."""

    bound: float
    """Some step's noise multiplier is at most this; inf if nothing is proved."""
    noise_multiplier: float
    """The smallest one that the optimizer stated."""
    largest_noise_multiplier: float
    """The largest one: if they differ no ε follows."""
    steps: int
    """Steps seen."""
    sampling_rate: float
    """The rate that ε is converted at."""
    rate_source: RateSource
    """Whether it is a lower confidence limit, or the stated rate."""
    sampling: Batches = field(default="poisson", metadata=IF_ANY)
    relation: Neighbours = field(default="add_remove", metadata=IF_ANY)
    """How batches are made, and what neighbours are, as declared."""
    confidence: float
    """Probability that both the bound and the rate are conservative."""
    game: AuditResult
    """The audit of all coins as one game, of Gaussian DP: μ is the inverse of the noise."""
    betting: BettingResult
    """Bets on the coins, one step after the other."""
    noise: NoiseResult
    """The squares of the released noise."""

    @property
    def varies(self) -> bool:
        """Whether the optimizer stated several noise multipliers."""
        return self.largest_noise_multiplier > self.noise_multiplier

    @property
    def by_coins(self) -> float:
        """The bound that guesses about coins prove, by bets or as one game, for any noise."""
        if not self.game.bound:
            return self.betting.bound
        return min(self.betting.bound, 1 / self.game.bound)

    @property
    def test(self) -> Literal["noise", "coins"]:
        """Which test proves the bound."""
        if self.noise.bound < self.by_coins:
            return "noise"
        return "coins"

    def epsilon(self, delta: float) -> float:
        """Return the ε of the whole training that the bound converts to; 0 if nothing is proved.

        It holds *if* all steps have the same noise multiplier and draw batches as declared, Poisson
        samples at this rate or more, and all noisy gradients are released. Of epochs it holds only
        if the attacker knows the order of the batches. This is not checked: a
        few steps with little noise among others with more give the same bound, and less leakage.

        Parameters
        ----------
        delta : float
            δ, in (0, 1), of neighbours under the declared relation.
        """
        checked = real(delta, name="delta", above=0, below=1)
        if self.varies:
            raise OptionError(
                "the noise multiplier varied from step to step: the bound is on its smallest "
                "value, and no ε of the whole training follows"
            )
        if math.isinf(self.bound) or not self.sampling_rate:
            return 0.0
        run = StatedRun(
            sampling=self.sampling, relation=self.relation, sampling_rate=self.sampling_rate
        )
        return float(run.attained(self.bound, self.steps).epsilon(checked))

    def _flaw(self) -> str:
        # the tests share the error; the best of them is the bound
        spent = sum(1 - one.confidence for one in (self.game, self.betting, self.noise))
        sound = (
            self.bound > 0
            and 0 < self.noise_multiplier <= self.largest_noise_multiplier
            and 1 <= self.steps == self.betting.steps
            and 0 <= self.sampling_rate <= 1
            and spent <= (1 - self.confidence) * (1 + ROUNDING)
            and math.isclose(self.bound, min(self.by_coins, self.noise.bound), rel_tol=ROUNDING)
        )
        return flaw_of(self, sound=sound, confidence=self.confidence)


Part: TypeAlias = Literal["membership", "steps", "sampling", "accounting"]
"""What may refute the accountant: three audits, and its own arithmetic."""


@dataclass(frozen=True, kw_only=True)
class Accounted(Record):
    """What an accountant states about a training run."""

    epsilon: float
    """At least 0, in nats."""
    delta: float
    """The δ that it is stated at, in (0, 1)."""
    source: str = ""
    """Which accountant."""
    sampling_rate: float | None = None
    steps: int | None = None
    noise_multiplier: float | None = None
    """What it was computed from, as sampling rate and steps are."""
    relation: Relation = field(default="add_remove", metadata=IF_ANY)
    """What the guarantee compares, which must be what the audit does."""

    def __post_init__(self) -> None:
        instance(self.source, name="source", types=str)
        choice(self.relation, name="relation", allowed=Relation)
        values: dict[str, float] = {
            "epsilon": real(self.epsilon, name="epsilon", least=0),
            "delta": real(self.delta, name="delta", above=0, below=1),
        }
        if self.sampling_rate is not None:
            values["sampling_rate"] = checked_rate(self.sampling_rate)
        if self.steps is not None:
            values["steps"] = integer(self.steps, name="steps", least=1)
        if self.noise_multiplier is not None:
            values["noise_multiplier"] = real(
                self.noise_multiplier, name="noise_multiplier", above=0
            )
        vars(self).update(values)

    @property
    def name(self) -> str:
        """How reports call it."""
        by = ""
        if self.source:
            by = f" ({self.source})"
        return f"ε = {self.epsilon:.4g} at δ = {self.delta:g}{by}"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DPSGDAudit(Composed):
    """What a watched training run with DP-SGD proves, compared with what its accountant states.

    Each of the three audits holds at the stated confidence separately. For `refuted_by`, each has
    a third of the probability of error, so that this is the probability that a correct run is
    refuted.
    """

    _words = "leakbound.results.descriptions.dp_sgd"

    membership: AuditResult
    """The whole run: who was in training."""
    steps: StepsResult
    """Each step: how much noise was added."""
    sampling: SamplingResult
    """The batches: how they were drawn."""
    accounted: Accounted | None = field(default=None, metadata=IF_ANY)
    """What the accountant says."""
    attainable: float | None = field(default=None, metadata=IF_ANY)
    """The ε that tests attain of the mechanism as stated, at the accountant's δ: an accountant that
    says less is wrong. Of epochs, only one that does not count on a secret order: tests know it.
    None without an accountant, or if the noise varied."""
    refuted_by: tuple[Part, ...]
    """What contradicts the mechanism as stated, at joint confidence; "accounting" if the
    accountant's ε is below `attainable`, which needs no confidence; never of epochs, whose order
    the accountant may take to be secret."""
    max_steps: int
    """Steps declared before training."""
    confidence: float
    """Of each audit, and of `refuted_by`."""
    options: Named
    """Every option in force."""
    warnings: Strings
    """What a reader should know; none of it changes a bound."""
    probes: tuple[DPStepAudit, ...] = field(default=(), metadata=IF_ANY)
    """Probes of the step that were made while the run was watched, each at its own confidence."""
    checked: Checked | None = field(default=None, metadata=IF_ANY)

    @property
    def _lead(self) -> AuditResult:
        return self.membership

    @property
    def delta(self) -> float:
        """The δ that ε is stated at: the accountant's, or that of the claim.

        For a family it is 1e-5 beyond the failures of the claim, for which there is no ε.
        """
        if self.accounted is not None:
            return self.accounted.delta
        return delta_of(self.membership.claim, self.membership.least_delta)

    def epsilon(self, delta: float | None = None) -> float:
        """Return the ε that the audit of membership proves at a δ, by default that of the audit."""
        if delta is None:
            delta = self.delta
        return self.membership.epsilon(delta)

    @hinted(positional="write check(epsilon=…)", **OF_PARAMETERS)
    def check(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        parameter: float | None = None,
        relation: Relation | None = None,
    ) -> Verdict:
        """Say whether the audit refutes a claim, or else the mechanism as stated.

        Parameters
        ----------
        epsilon, delta, parameter, relation
            As for `AuditResult.check`: the audit of membership is asked, by default at the δ of
            the audit. If nothing is claimed, the verdict is on the mechanism as stated.
        """
        if epsilon is None and parameter is None:
            if self.refuted_by:
                return "refuted"
            return "not refuted"
        if parameter is None and delta is None:
            delta = self.delta
        return self.membership.check(
            epsilon=epsilon, delta=delta, parameter=parameter, relation=relation
        )

    def _checked(self, **claimed: object) -> Checked:
        if claimed.get("parameter") is None:
            claimed = {"delta": self.delta} | claimed
        return super()._checked(**claimed)

    def _flaw(self) -> str:
        for part in self.refuted_by:
            choice(part, name="refuted_by", allowed=Part)
        stated = self.accounted
        attained = self.attainable
        wrong = stated is not None and attained is not None and stated.epsilon < attained
        sound = (
            len(set(self.refuted_by)) == len(self.refuted_by)
            and (wrong or "accounting" not in self.refuted_by)
            and (self.steps.rate_source == "stated" or bool(self.sampling.limits))
            and self.steps.steps <= self.max_steps
        )
        return self._flaw_unless(sound)

    def __repr__(self) -> str:
        accounted = ""
        if self.accounted is not None:
            accounted = f"accounted {self.accounted.epsilon:.4g}, "
        refuted = ""
        if self.refuted_by:
            refuted = f", refuted by {' and '.join(self.refuted_by)}"
        proved = down(self.epsilon())
        sure = percent(self.confidence)
        claim = self.membership.claim
        own = ""
        if scale_of(claim).unit:  # the bound on a family's own parameter alone
            own = f" ({in_code(claim, bound=self.bound, epsilon=math.inf)})"
        return (
            f"DPSGDAudit({accounted}epsilon() >= {proved}{own} @ {sure}, delta={self.delta:g}, "
            f"noise multiplier <= {up(self.steps.bound)}{refuted})"
        )
