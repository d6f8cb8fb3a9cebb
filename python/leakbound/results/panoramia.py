"""What an audit against generated non-members returns; the public name is that of the package."""

from dataclasses import dataclass, field

from leakbound._base.checks import real
from leakbound._base.formatting import down, percent
from leakbound._base.messages import OF_PARAMETERS, hinted
from leakbound._base.records import IF_ANY, Lazy
from leakbound._base.types import Kind, Named, Relation, Strings, Verdict
from leakbound.claims import ApproxDP, PureDP
from leakbound.report.parts import Assumption, Checked, Provenance, ScoreAudit
from leakbound.results.base import Audit, check_delta, judged
from leakbound.results.blind import BlindBaseline
from leakbound.results.zero_run import ZeroRunResult


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PanoramiaResult(Audit):
    """What an audit against generated non-members finds.

    With probability `confidence`, c ≥ `c_lb` and c + ε ≥ `c_plus_epsilon_lb` both hold. Their
    difference ε̃ is an estimate of ε, not a lower bound; `lower_bound` is one where c has an upper
    limit.
    """

    _words = "leakbound.results.descriptions.panoramia"

    kind: Kind
    """Of an "estimate" `bound` is ε̃; of a "lower_bound", where c has an upper limit, that one."""
    claim: PureDP | ApproxDP
    """The family of guarantees."""
    bound: float
    """The estimate ε̃, or `lower_bound` where there is one."""
    reason: str
    """Why the bound is 0, if it is."""
    confidence: float
    """Joint for both bounds."""
    m: int
    """Examples tested."""
    c_lb: float
    """Lower bound on c, from the baseline."""
    c_plus_epsilon_lb: float
    """Lower bound on c + ε, from the attack."""
    epsilon_tilde: float
    """The estimate ε̃ = max(0, `c_plus_epsilon_lb` - `c_lb`)."""
    c_upper: float | None
    """Upper limit on c that the caller vouches for; 0 with real non-members."""
    lower_bound: float | None
    """The bound max(0, `c_plus_epsilon_lb` - `c_upper`), of a result of kind "lower_bound"."""
    baseline: ScoreAudit
    """What the ranking without the model proves: a bound on c."""
    attack: ScoreAudit
    """What the ranking with the model proves: a bound on c + ε."""
    theorem: str
    """Why the bounds hold, and what ε̃ is not."""
    assumptions: tuple[Assumption, ...]
    """What must be true for them."""
    options: Named
    """Every option in force."""
    warnings: Strings
    """What a reader should know; none of it changes a bound."""
    conditional: ZeroRunResult | None = None
    """A lower bound on ε that holds if the log-odds of the coins have the form of a logistic model
    of the features, where these were given: Zero-Run on the half of the same examples that
    proves more, by the odds of each example, or after matching for `ApproxDP`."""
    conditional_by_match: ZeroRunResult | None = None
    """For `PureDP` the same after matching. The larger of the two holds at no stated confidence."""
    checked: Checked | None = field(default=None, metadata=IF_ANY)
    """A claimed guarantee that was put to the test, by `with_check` or ``--claim``."""
    _provenance: Lazy[Provenance] = field(repr=False)

    @property
    def provenance(self) -> Provenance:
        """Versions, seed and digests of the inputs, taken when this is first read."""
        return self._provenance.value

    @property
    def relation(self) -> Relation:
        """What the bound compares: training with an example, or with another one in its place."""
        return "replace"

    @property
    def ceiling(self) -> float:
        """What `bound` would have been with a perfect attack and this baseline."""
        return max(0.0, self.attack.ceiling - self._allowance)

    @property
    def blind_baseline(self) -> BlindBaseline:
        """How well the baseline, which never sees the model, tells members from generated examples.

        `c_lb` is what its guesses prove: what they tell is the generator's, and not the model's.
        """
        right = self.baseline.correct
        return BlindBaseline("the baseline", right, self.baseline.guesses)

    @property
    def guesses(self) -> int:
        """Guesses of the attack at its chosen cut."""
        return self.attack.guesses

    @property
    def correct(self) -> int:
        """Correct guesses of the attack at its chosen cut."""
        return self.attack.correct

    @property
    def auc(self) -> float:
        """AUC of the attack."""
        return self.attack.auc

    @property
    def conditionals(self) -> tuple[ZeroRunResult, ...]:
        """The conditional lower bounds that there are, the claim's own first."""
        both = (self.conditional, self.conditional_by_match)
        return tuple(result for result in both if result is not None)

    @property
    def _allowance(self) -> float:
        if self.c_upper is None:
            return self.c_lb
        return self.c_upper

    @hinted(positional="write check(epsilon=…)", **OF_PARAMETERS)
    def check(self, *, epsilon: float, delta: float = 0.0, c: float | None = None) -> Verdict:
        """Say whether the audit refutes a claimed ε, alone or together with a claimed c.

        The pair (c, ε) is refuted if `c_lb` > c or `c_plus_epsilon_lb` > c + ε (Corollary 1 of
        Kazmi et al. 2024), ε alone if `lower_bound` > ε; "inconclusive" if even a perfect attack,
        and for the pair a perfect baseline, could not have refuted it.

        Parameters
        ----------
        epsilon : float
            The claimed privacy loss, at least 0.
        delta : float
            The claimed δ, at most that of the result's claim; on pure DP it is 0 only.
        c : float, optional
            The claimed closeness of the generator, at least 0. Without it only a result of kind
            "lower_bound" can refute anything.
        """
        claimed = real(epsilon, name="epsilon", least=0)
        check_delta(delta, self.claim)
        # Together with c, each of the two bounds may refute the pair.
        if c is not None:
            total = claimed + real(c, name="c", least=0)
            refuted = self.c_lb > c or self.c_plus_epsilon_lb > total
            alone = 0.0
            if not self.options["real_nonmembers"]:
                alone = self.baseline.ceiling
            reach = max(alone - c, self.attack.ceiling - total)
            return judged(self.kind, refuted=refuted, refutable=lambda: reach > 0)
        # Alone, ε is bounded only where c has an upper limit.
        if self.lower_bound is None:
            return "inconclusive"
        within = self.ceiling > claimed
        return judged(self.kind, refuted=self.bound > claimed, refutable=lambda: within)

    def _flaw(self) -> str:
        most = self.c_plus_epsilon_lb
        certified = self.kind == "lower_bound"
        sound = (
            self.m == self.attack.m == self.baseline.m
            and most == self.attack.bound
            and min(self.c_lb, most) >= 0
            and self.bound == max(0.0, most - self._allowance)
            and self.epsilon_tilde == max(0.0, most - self.c_lb)
            and self.kind in {"estimate", "lower_bound"}
            and (self.lower_bound is not None) == (self.c_upper is not None) == certified
            and not (self.reason and self.bound > 0)
        )
        return self._flaw_unless(sound)

    def __repr__(self) -> str:
        known = ""
        if self.c_upper is not None:
            known = f"c <= {self.c_upper:g} given, "
        sign = ">="
        nature: str = self.kind
        if self.kind == "estimate":
            sign = "~"
            nature = "estimate, not a lower bound"
        beside = "".join(
            f"; conditional lower bound by {one.correction.replace('_', '-')}: "
            f"epsilon() >= {down(one.bound)}{', withheld' * one.withheld}"
            for one in self.conditionals
        )
        return (
            f"PanoramiaResult(epsilon() {sign} {down(self.bound)} @ "
            f"{percent(self.confidence)}, {known}c >= {down(self.c_lb)}, "
            f"c + epsilon >= {down(self.c_plus_epsilon_lb)}, m={self.m}, {nature}{beside})"
        )
