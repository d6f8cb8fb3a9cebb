"""What a white-box audit of DP-SGD returns; the public names are those of the package."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from leakbound._base.checks import choice, instance, integer, real
from leakbound._base.formatting import down, percent, up
from leakbound._base.records import IF_ANY, Record
from leakbound._base.types import Relation, Verdict
from leakbound.claims.families import checked_rate
from leakbound.report.parts import Checked
from leakbound.results.base import Composed
from leakbound.results.one_run import AuditResult
from leakbound.results.steps import SamplingResult, StepsResult
from leakbound.results.words import DELTA

Part: TypeAlias = Literal["membership", "steps", "sampling", "accounting"]
"""What may refute the accountant: three audits, and its own arithmetic."""


@dataclass(frozen=True, kw_only=True)
class Accounted(Record):
    """What an accountant says of a training run."""

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
    """What the guarantee compares. Audits of DP-SGD are on adding or removing one example."""

    def __post_init__(self) -> None:
        instance(self.source, "source", str)
        choice(self.relation, "relation", Relation)
        values: dict[str, float] = {
            "epsilon": real(self.epsilon, "epsilon", least=0),
            "delta": real(self.delta, "delta", above=0, below=1),
        }
        if self.sampling_rate is not None:
            values["sampling_rate"] = checked_rate(self.sampling_rate)
        if self.steps is not None:
            values["steps"] = integer(self.steps, "steps", least=1)
        if self.noise_multiplier is not None:
            values["noise_multiplier"] = real(self.noise_multiplier, "noise_multiplier", above=0)
        vars(self).update(values)

    @property
    def name(self) -> str:
        """How reports call it."""
        by = f" ({self.source})" if self.source else ""
        return f"ε = {self.epsilon:.4g} at δ = {self.delta:g}{by}"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DPSGDAudit(Composed):
    """What a watched training run with DP-SGD proves, beside what its accountant says.

    Each of the three audits holds with the stated confidence by itself; `refuted_by` gives each a
    third of the probability of error, so that a correct run is refuted by any of them with no more
    than that.
    """

    _words: ClassVar[str] = "leakbound.results.descriptions.dp_sgd"

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
    says less is wrong. None without an accountant, or if the noise varied."""
    refuted_by: tuple[Part, ...]
    """What contradicts the mechanism as stated, at joint confidence; "accounting" if the
    accountant's ε is below `attainable`, which needs no confidence."""
    max_steps: int
    """Steps declared before training."""
    confidence: float
    """Of each audit, and of `refuted_by`."""
    options: dict[str, Any]
    """Every option in force."""
    warnings: tuple[str, ...]
    """What a reader should know; none of it changes a bound."""
    checked: Checked | None = field(default=None, metadata=IF_ANY)

    @property
    def _lead(self) -> AuditResult:
        return self.membership

    @property
    def delta(self) -> float:
        """The δ that ε is stated at: the accountant's, or else that of the claim, or 1e-5."""
        if self.accounted is not None:
            return self.accounted.delta
        return self.membership.claim.delta or DELTA

    def epsilon(self, delta: float | None = None) -> float:
        """Return the ε that the audit of membership proves at a δ, by default that of the audit."""
        return self.membership.epsilon(self.delta if delta is None else delta)

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
            return "refuted" if self.refuted_by else "not refuted"
        if parameter is None and delta is None:
            delta = self.delta
        return self.membership.check(
            epsilon=epsilon, delta=delta, parameter=parameter, relation=relation
        )

    def _checked(self, **claimed: Any) -> Checked:
        if claimed.get("parameter") is None:
            claimed = {"delta": self.delta} | claimed
        return super()._checked(**claimed)

    def _flaw(self) -> str:
        for part in self.refuted_by:
            choice(part, "refuted_by", Part)
        stated, attained = self.accounted, self.attainable
        wrong = stated is not None and attained is not None and stated.epsilon < attained
        sound = (
            len(set(self.refuted_by)) == len(self.refuted_by)
            and (wrong or "accounting" not in self.refuted_by)
            and (self.steps.rate_source == "stated" or bool(self.sampling.limits))
            and self.steps.steps <= self.max_steps
        )
        return self._flaw_unless(sound)

    def __repr__(self) -> str:
        accounted = "" if self.accounted is None else f"accounted {self.accounted.epsilon:.4g}, "
        refuted = f", refuted by {' and '.join(self.refuted_by)}" if self.refuted_by else ""
        proved, sure = down(self.epsilon()), percent(self.confidence)
        return (
            f"DPSGDAudit({accounted}epsilon >= {proved} @ {sure}, delta={self.delta:g}, "
            f"noise multiplier <= {up(self.steps.bound)}{refuted})"
        )


# In the order in which `DPSGDAudit.refuted_by` names them
PARTS: tuple[Part, ...] = get_args(Part)
