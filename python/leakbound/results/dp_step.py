"""What a probe of a step of DP-SGD returns; the public names are those of the package."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NoReturn, TypeAlias

from leakbound._base.checks import choice, integer, real
from leakbound._base.formatting import up
from leakbound._base.imports import needs
from leakbound._base.messages import hinted
from leakbound._base.numerics import doubled_and_halved
from leakbound._base.records import IF_ANY, Record
from leakbound._base.types import Kind, PathInput, Relation, Verdict
from leakbound.claims import GaussianDP, SubsampledGaussianDP
from leakbound.claims.families import checked_rate
from leakbound.errors import FormatError, OptionError
from leakbound.report.parts import ROUNDING, Assumption, Checked, Provenance
from leakbound.results.base import Result

Tested: TypeAlias = Literal["normal", "independent", "steps"]
StepPart: TypeAlias = Literal[
    "contribution", "coupling", "finite", "normal", "independent", "steps"
]
"""What may refute a step: what one example contributes, noise or numbers that depend on the batch,
and noise that is not normal, not independent, or not fresh in each step."""

CLOSE = 1e-3
"""Relative excess over a claim that is put down to rounding, and difference of noise from 1."""
NEAR = 0.5
"""Share of the claim that some pair must reach, so that a claim could have been refuted."""
SENSITIVITY: dict[Relation, int] = {"add_remove": 1, "replace": 2}
"""Clipping norms by which neighbours differ at most."""
# Bisections of an ε
_HALVINGS = 80


@dataclass(frozen=True, kw_only=True)
class PairResult(Record):
    """What one pair of neighbouring batches shows."""

    name: str
    bound: float
    """μ of this pair is at least this; inf where noise, or a finite number, is on one side only."""
    length: float
    """Length of what the example contributes, in standard deviations: an estimate of μ."""
    coupled: bool
    """Whether noise is the same on both batches at the same seeds."""
    scale: float | None
    """Noise on D' in units of that on D; None if it is no multiple."""
    factor: float | None
    """Noise on D in units of that where noise was measured; None if it is no multiple."""
    comparable: bool
    """Whether both have to be the same: where examples are replaced, noise may follow the size of a
    batch, and they may be of two sizes."""
    finite: bool
    """Whether all released numbers are finite, on both batches."""

    @property
    def depends(self) -> bool:
        """Whether the noise depends on the batch."""
        same = self.factor is not None and abs(self.factor - 1) <= CLOSE
        return not self.coupled or (self.comparable and not same)


@dataclass(frozen=True, kw_only=True)
class TensorResult(Record):
    """One tensor that the step releases: its noise, and what the worst pair adds to it."""

    name: str
    size: int
    deviation: float
    """Estimate of the standard deviation of the noise; 0 without noise."""
    upper_deviation: float
    """Upper limit of it, of all tensors at once."""
    length: float
    """Length of the worst pair's difference in this tensor."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DPStepAudit(Result):
    """What one step of DP-SGD proves about its noise and clipping, given its batch.

    With probability `confidence`, all of this is right at once: a step as claimed has
    `refuted_by` empty, and `bound` no larger than its μ.
    """

    _words: ClassVar[str] = "leakbound.results.descriptions.dp_step"

    bound: float
    """Some pair has μ of at least this, under normal noise as claimed."""
    ceiling: float
    """The bound that a pair at the claim would have given, or `bound` if that is larger."""
    stated_noise_multiplier: float
    """What the step claims."""
    relation: Relation
    """What neighbours are."""
    worst: str
    """The name of the pair that has the bound."""
    along: float
    """What noise along the longest difference proves by itself, whatever its covariance."""
    pairs: tuple[PairResult, ...]
    """Each pair."""
    tensors: tuple[TensorResult, ...]
    """Each tensor, by name."""
    p_values: dict[str, float]
    """Of tests of the noise: "normal", "independent", "steps"; 1 if not tested."""
    refuted_by: tuple[StepPart, ...]
    """What contradicts the claim."""
    runs: int
    """How often the step was run."""
    confidence: float
    """Of the bound and of `refuted_by`, together."""
    options: dict[str, Any]
    """Every option in force."""
    warnings: tuple[str, ...]
    """What a reader should know; none of it changes the bound."""
    assumptions: tuple[Assumption, ...]
    """What must be true for the bound."""
    provenance: Provenance
    """Versions and seed."""
    without_power: tuple[Tested, ...] = field(default=(), metadata=IF_ANY)
    """Tests of the noise that could refute no step at this confidence: their p-values cannot be
    that small. "not refuted" says nothing about what they test."""
    checked: Checked | None = field(default=None, metadata=IF_ANY)

    @property
    def kind(self) -> Kind:
        """What the number is."""
        return "family_lower_bound"

    @property
    def claim(self) -> GaussianDP:
        """The guarantees whose parameter μ is bounded."""
        return GaussianDP()

    @property
    def claimed(self) -> float:
        """The μ of a step that is as claimed."""
        return SENSITIVITY[self.relation] / self.stated_noise_multiplier

    @property
    def noise_multiplier(self) -> float:
        """What an accountant would have to be told, at most; inf if nothing is proved."""
        if not self.bound:
            return math.inf
        return SENSITIVITY[self.relation] / self.bound

    @property
    def is_normal(self) -> bool:
        """Whether nothing contradicts normal noise: else the bound is of the claimed form only."""
        return "normal" not in self.refuted_by

    @property
    def values(self) -> int:
        """Values that a step releases."""
        return sum(one.size for one in self.tensors)

    def epsilon(self, delta: float, *, sampling_rate: float = 1.0, steps: int = 1) -> float:
        """Return the ε that the bound converts to, in nats; 0 if nothing is proved.

        By default that of one step, given its batch. With a sampling rate and several steps it is
        what an accountant computes from the proved noise multiplier. That is a bound for the
        mechanism *if every step can be given a pair like this*; it says nothing about one data set.

        Parameters
        ----------
        delta : float
            δ, in (0, 1), of neighbours under `relation`.
        sampling_rate : float
            Probability that an example is in a batch, in (0, 1]; below 1 needs the extra ``dp``.
        steps : int
            Number of steps, at least 1 and at most 10^6.
        """
        at = real(delta, name="delta", above=0, below=1)
        rate = checked_rate(sampling_rate)
        count = integer(steps, name="steps", least=1, most=10**6)
        if rate == 1:
            return max(self._of_gaussian(at, count), self._of_scale(at))
        if not self.bound or math.isinf(self.bound):
            return self.bound
        family = SubsampledGaussianDP(sampling_rate=rate, steps=count, relation=self.relation)
        return float(family.attained(1 / self.noise_multiplier, "both").epsilon(at))

    def _of_gaussian(self, delta: float, steps: int) -> float:
        """Return ε of shifted noise, in so many steps."""
        mu = self.bound * math.sqrt(steps)
        if not mu or math.isinf(mu):
            return mu
        return float(GaussianDP().attained(mu, "both").epsilon(delta))

    def _of_scale(self, delta: float) -> float:
        """Return ε of one step whose noise has another scale on D' than on D."""
        scales = {one.scale for one in self.pairs if not one.coupled and one.scale is not None}
        values = sum(one.size for one in self.tensors if one.deviation)
        return max((epsilon_of_scale(one, values, delta) for one in scales), default=0.0)

    @hinted(
        positional="write check(noise_multiplier=…)",
        epsilon="a step has no ε: check(noise_multiplier=…), and epsilon(delta) of all steps",
    )
    def check(
        self, *, noise_multiplier: float | None = None, parameter: float | None = None
    ) -> Verdict:
        """Say whether the probe refutes a claim, by default the one that was stated.

        Parameters
        ----------
        noise_multiplier : float, optional
            The claimed noise multiplier, above 0.
        parameter : float, optional
            The claimed μ in its place, above 0.

        Returns
        -------
        {"refuted", "not refuted", "inconclusive"}
            "inconclusive" if no pair came near the claim, so that nothing could refute it. Tests of
            the noise that could not refute it either are in `without_power`.
        """
        mu = self._mu(noise_multiplier, parameter)
        if self.bound > mu * (1 + CLOSE) or set(self.refuted_by) - {"contribution"}:
            return "refuted"
        if all(pair.length < NEAR * mu for pair in self.pairs):
            return "inconclusive"
        return "not refuted"

    def _mu(self, noise_multiplier: float | None, parameter: float | None) -> float:
        """Return the μ that is claimed."""
        if noise_multiplier is not None and parameter is not None:
            raise OptionError("claim a noise_multiplier or a parameter μ, not both")
        if parameter is not None:
            return real(parameter, name="parameter", above=0)
        if noise_multiplier is None:
            return self.claimed
        noise = real(noise_multiplier, name="noise_multiplier", above=0)
        return SENSITIVITY[self.relation] / noise

    def _checked(self, **claimed: Any) -> Checked:
        mu = self._mu(claimed.get("noise_multiplier"), claimed.get("parameter"))
        return Checked(parameter="mu", value=mu, delta=None, verdict=self.check(parameter=mu))

    def bundle(self, folder: PathInput, **_: object) -> NoReturn:
        """Refuse: a probe cannot be recomputed from files."""
        raise FormatError(
            f"a DPStepAudit has no bundle for {str(folder)!r}: to recompute it the step has to be "
            "run again. Store to_json(), and the program with its versions and seed"
        )

    def _flaw(self) -> str:
        for part in self.refuted_by:
            choice(part, name="refuted_by", allowed=StepPart)
        choice(self.relation, name="relation", allowed=Relation)
        is_sound = (
            0 <= self.bound <= self.ceiling * (1 + ROUNDING)
            and self.stated_noise_multiplier > 0
            and self.worst in {pair.name for pair in self.pairs}
            and math.isclose(self.bound, self._largest(), rel_tol=ROUNDING)
            and len(set(self.refuted_by)) == len(self.refuted_by)
            and self._contradicts() <= set(self.refuted_by)
            and all(0 <= p <= 1 for p in self.p_values.values())
            and all(tensor.size >= 1 and tensor.deviation >= 0 for tensor in self.tensors)
            and self.runs >= 1
        )
        return self._flaw_unless(is_sound)

    def _largest(self) -> float:
        """Return the largest one of all bounds."""
        return max(self.along, *(pair.bound for pair in self.pairs))

    def _contradicts(self) -> set[StepPart]:
        """Return what the numbers of pairs contradict, which needs no level."""
        return set(contradicted(self.pairs, self._largest(), self.claimed))

    def __repr__(self) -> str:
        return (
            f"DPStepAudit(noise multiplier <= {up(self.noise_multiplier)}, "
            f"{self.stated_noise_multiplier:g} stated, refuted_by={self.refuted_by})"
        )


def contradicted(pairs: Sequence[PairResult], bound: float, claimed: float) -> tuple[StepPart, ...]:
    """Return what bounds and couplings of pairs contradict."""
    parts: dict[StepPart, bool] = {
        "contribution": bound > claimed * (1 + CLOSE),
        "coupling": any(pair.depends for pair in pairs if pair.finite),
        "finite": any(not pair.finite for pair in pairs),
    }
    return tuple(name for name, is_contradicted in parts.items() if is_contradicted)


def epsilon_of_scale(ratio: float, values: int, delta: float) -> float:
    """Return ε at δ of N(0, I) against N(0, ratio² I) in so many dimensions, exactly.

    The privacy loss is a monotone function of the squared length, which is χ².
    """
    with needs("ml", "epsilon of a step whose noise follows the batch"):
        from scipy.stats import chi2

    if not values or abs(ratio - 1) < 1e-12:
        return 0.0
    if ratio <= 0 or math.isinf(ratio):
        return math.inf

    def exceeds_delta(epsilon: float, scale: float) -> bool:
        """Return whether δ at an ε of P = N(0, scale² I) against Q = N(0, I) is too large."""
        log_likelihood_ratio = epsilon + values * math.log(scale)
        squared_length = 2 * log_likelihood_ratio / (1 - 1 / scale**2)
        tail = chi2.sf
        log_tail = chi2.logsf
        if scale < 1:
            if squared_length <= 0:
                return False
            tail = chi2.cdf
            log_tail = chi2.logcdf
        probability_under_p = float(tail(squared_length / scale**2, values))
        log_probability_under_q = float(log_tail(squared_length, values))
        scaled_probability_under_q = math.exp(min(0.0, epsilon + log_probability_under_q))
        return probability_under_p - scaled_probability_under_q - delta > 0

    def largest_epsilon(scale: float) -> float:
        bracket = doubled_and_halved(lambda epsilon: exceeds_delta(epsilon, scale), most=_HALVINGS)
        return bracket[0]

    return max(largest_epsilon(ratio), largest_epsilon(1 / ratio))
