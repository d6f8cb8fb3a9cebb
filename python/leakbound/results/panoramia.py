"""What an audit against generated non-members returns; the public name is that of the package."""

from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

from leakbound._base.checks import real
from leakbound._base.formatting import down, number, percent
from leakbound._base.records import IF_ANY, Lazy
from leakbound._base.types import Kind, PathName, Verdict
from leakbound.claims import ApproxDP, PureDP
from leakbound.report.contents import KINDS, Figure, Levels, Meaning, Metric, Section, Series
from leakbound.report.parts import Assumption, Checked, Curve, Histogram, Provenance, Roc
from leakbound.report.style import MEMBER, MUTED, OTHER, house_style, name_axes, new_axes
from leakbound.results import captions
from leakbound.results.base import Result
from leakbound.results.checks import check_delta, flaw_of_options, judged, sign_of
from leakbound.results.ranking import ScoreAudit
from leakbound.results.zero_run import HOW, ZeroRunResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PanoramiaResult(Result):
    """What an audit against generated non-members finds.

    With probability `confidence`, c ≥ `c_lb` and c + ε ≥ `c_plus_epsilon_lb` both hold. Their
    difference ε̃ is an estimate of ε, not a lower bound; `lower_bound` is one where c has an upper
    limit.

    Parameters
    ----------
    kind : str
        "estimate": `bound` is ε̃; "lower_bound": c has an upper limit, `bound` is `lower_bound`.
    claim : PureDP or ApproxDP
        The family of guarantees.
    bound : float
        ε̃, or `lower_bound` where there is one.
    reason : str
        Why the bound is 0; empty if it is not.
    confidence : float
        Joint for both bounds.
    m : int
        Examples tested.
    c_lb : float
        Lower bound on the generator's closeness c, from the baseline; 0 with real non-members.
    c_plus_epsilon_lb : float
        Lower bound on c + ε, from the attack.
    epsilon_tilde : float
        max(0, `c_plus_epsilon_lb` - `c_lb`).
    c_upper : float or None
        Upper limit on c that the caller vouches for; 0 with real non-members.
    lower_bound : float or None
        max(0, `c_plus_epsilon_lb` - `c_upper`), for a result of kind "lower_bound".
    baseline, attack : ScoreAudit
        What each ranking proves; `bound` is on c and on c + ε.
    theorem : str
        Why the bounds hold, and what ε̃ is not.
    assumptions : tuple of Assumption
        What must be true for them.
    options : dict
        Every option in force.
    warnings : tuple of str
        What a reader should know; none of it changes a bound.
    conditional : ZeroRunResult or None
        A lower bound on ε that holds if the log-odds of the coins have the form of a logistic model
        of the features, where these were given: Zero-Run on the
        half of the same examples that proves more, by each example's own odds, or after matching
        for `ApproxDP`.
    conditional_by_match : ZeroRunResult or None
        For `PureDP` the same after matching. The larger of the two holds at no stated confidence.
    checked : Checked or None
        A claimed guarantee that was put to the test, by `with_check` or ``--claim``.
    """

    kind: Kind
    claim: PureDP | ApproxDP
    bound: float
    reason: str
    confidence: float
    m: int
    c_lb: float
    c_plus_epsilon_lb: float
    epsilon_tilde: float
    c_upper: float | None
    lower_bound: float | None
    baseline: ScoreAudit
    attack: ScoreAudit
    theorem: str
    assumptions: tuple[Assumption, ...]
    options: dict[str, Any]
    warnings: tuple[str, ...]
    conditional: ZeroRunResult | None = None
    conditional_by_match: ZeroRunResult | None = None
    checked: Checked | None = field(default=None, metadata=IF_ANY)
    _provenance: Lazy[Provenance] = field(repr=False)

    def _flaw(self) -> str:
        if not 0 < self.confidence < 1:
            return f"confidence is {self.confidence:g}, outside (0, 1)"
        if not (self.m == self.attack.m == self.baseline.m):
            return f"m ({self.m}) is not that of baseline and attack"
        most = self.c_plus_epsilon_lb
        allowed = self.c_lb if self.c_upper is None else self.c_upper
        if self.bound != max(0.0, most - allowed):
            return f"bound ({self.bound:g}) does not follow from c_plus_epsilon_lb and c"
        if min(self.c_lb, most, self.epsilon_tilde) < 0 or most != self.attack.bound:
            return "c_lb, c_plus_epsilon_lb and epsilon_tilde are not what the attack proves"
        if self.epsilon_tilde != max(0.0, most - self.c_lb):
            return "epsilon_tilde is not c_plus_epsilon_lb less c_lb, or 0"
        if (self.lower_bound is None) == (self.kind == "lower_bound"):
            return f"lower_bound does not go with kind {self.kind!r}"
        if self.kind not in {"estimate", "lower_bound"} or (
            self.kind == "estimate" and self.c_upper is not None
        ):
            return f"kind {self.kind!r} is none of a PanoramiaResult, or c_upper of another one"
        if self.reason and self.bound > 0:
            return f"reason says why the bound is 0, and it is {self.bound:g}"
        return flaw_of_options(self.options) or self._flaw_of_check()

    @property
    def conditionals(self) -> tuple[ZeroRunResult, ...]:
        """The conditional lower bounds that there are, the claim's own first."""
        both = (self.conditional, self.conditional_by_match)
        return tuple(result for result in both if result is not None)

    @property
    def design(self) -> str:
        """How membership was assigned."""
        others = "real" if self.options["real_nonmembers"] else "generated"
        return f"a fair coin for each pair of a member and a {others} non-member"

    @property
    def _replaced(self) -> str:
        return " for replacing one example"

    @property
    def members(self) -> int:
        """Members among the examples tested."""
        return self.attack.members

    @property
    def guesses(self) -> int:
        """Guesses of the attack at its chosen cut."""
        return self.attack.guesses

    @property
    def correct(self) -> int:
        """Correct guesses of the attack at its chosen cut."""
        return self.attack.correct

    @property
    def path(self) -> PathName:
        """The path of both rankings."""
        return self.attack.path

    @property
    def auc(self) -> float:
        """AUC of the attack."""
        return self.attack.auc

    @property
    def ceiling(self) -> float:
        """What `bound` would have been with a perfect attack and this baseline."""
        return max(0.0, self.attack.ceiling - self._allowance)

    @property
    def curve(self) -> Curve:
        """The attack's path; its bounds are on c + ε."""
        return self.attack.curve

    @property
    def roc(self) -> Roc:
        """The attack's ranking as a membership test."""
        return self.attack.roc

    @property
    def histogram(self) -> Histogram:
        """The attack's scores."""
        return self.attack.histogram

    def check(self, *, epsilon: float, delta: float = 0.0, c: float | None = None) -> Verdict:
        """Say whether the audit refutes a claimed ε, alone or together with a claimed c.

        Parameters
        ----------
        epsilon : float
            The claimed privacy loss, at least 0.
        delta : float
            The claimed δ, at most that of the result's claim; on pure DP it is 0 only.
        c : float, optional
            The claimed closeness of the generator, at least 0. Without it only a result of kind
            "lower_bound" can refute anything.

        Returns
        -------
        {"refuted", "not refuted", "inconclusive"}
            The pair (c, ε) is refuted if `c_lb` > c or `c_plus_epsilon_lb` > c + ε (Corollary 1 of
            Kazmi et al. 2024), ε alone if `lower_bound` > ε; "inconclusive" if even a perfect
            attack, and for the pair a perfect baseline, could not have refuted it.

        Raises
        ------
        OptionError, OptionTypeError
            If a value is negative or no number, or `delta` is outside [0, 1).
        IncompatibleOptionsError
            If the claim says nothing about this δ.
        """
        claimed = real(epsilon, "epsilon", least=0)
        check_delta(delta, self.claim)
        if c is not None:
            total = claimed + real(c, "c", least=0)
            refuted = self.c_lb > c or self.c_plus_epsilon_lb > total
            alone = 0.0 if self.options["real_nonmembers"] else self.baseline.ceiling
            reach = max(alone - c, self.attack.ceiling - total)
            return judged(self.kind, refuted=refuted, refutable=lambda: reach > 0)
        if self.lower_bound is None:
            return "inconclusive"
        return judged(
            self.kind, refuted=self.bound > claimed, refutable=lambda: self.ceiling > claimed
        )

    def with_check(self, *, epsilon: float, delta: float = 0.0, c: float | None = None) -> Self:
        """Return this result with a claimed guarantee put to the test: JSON and pages tell of it.

        Parameters
        ----------
        epsilon, delta, c : float
            As for `check`.

        Returns
        -------
        Self
            The same result; `checked` has the guarantee and the verdict.

        Raises
        ------
        OptionError, OptionTypeError, IncompatibleOptionsError
            As for `check`.
        """
        verdict = self.check(epsilon=epsilon, delta=delta, c=c)
        joint = None if c is None else float(c)
        checked = Checked("epsilon", "<=", float(epsilon), float(delta), verdict, joint)
        return replace(self, checked=checked)

    def _checked_again(self, checked: Checked) -> Checked:
        again = self.with_check(epsilon=checked.value, delta=checked.delta or 0.0, c=checked.c)
        return again.checked or checked

    @property
    def _ranking(self) -> ScoreAudit:
        return self.attack

    def _parts(self) -> tuple[Result, ...]:
        return (self, *self.conditionals)

    @property
    def series(self) -> tuple[Series, ...]:
        """Both rankings, as figures show them."""
        return tuple(
            Series(name, symbol, f"{name}: ", colour, number(audit.bound), audit)
            for name, symbol, colour, audit in (
                ("with the model", "c + ε", MEMBER, self.attack),
                ("baseline", "c", OTHER, self.baseline),
            )
        )

    profile: ClassVar[None] = None
    """What figures draw of a family of trade-off functions: none is audited here."""

    @property
    def epsilon_ceiling(self) -> float:
        """The ceiling, in units of ε."""
        return self.ceiling

    @property
    def papers(self) -> tuple[str, ...]:
        """The papers behind this audit, besides those that every report cites."""
        return ("PANORAMIA", "Zero-Run") if self.conditional is not None else ("PANORAMIA",)

    def headline(self) -> str:
        """Return the verdict in one sentence."""
        if self.kind != "estimate":
            return super().headline()
        if self.bound > 0:
            return f"Estimated leakage: ε̃ = {number(self.bound)}. This is not a lower bound on ε."
        return (
            "No leakage estimated: the attack with the model finds no more than the baseline finds "
            "without it."
        )

    def evidence(self) -> tuple[str, ...]:
        """Return the paragraphs below the headline."""
        beside = self._conditional_words()
        return (*super().evidence(), *((beside,) if beside else ()))

    def _evidence(self) -> tuple[str, ...]:
        both = (
            f"c ≥ {number(self.c_lb)} (the bound of the baseline, without the model) and "
            f"c + ε ≥ {number(self.c_plus_epsilon_lb)} (the bound of the attack, with it)"
        )
        if self.c_upper is not None:
            source = "real non-members" if self.c_upper == 0 else f"c at most {self.c_upper:g}"
            return (f"The audit finds {both}. Given {source}, the bound on ε is certified.",)
        if self.bound > 0:
            return (
                (
                    f"The audit finds {both}. If c is no larger than {number(self.c_lb)}, this "
                    f"model is not ε-DP{self._replaced} for any ε below {number(self.bound)}; if c "
                    "is larger, part or all of the difference is the generator's doing, not the "
                    "model's."
                ),
            )
        return (
            (
                f"The audit finds {both}. Either the generated points are too easily told from "
                "real ones, or the attack is too weak, or the model leaks little. This is not "
                "evidence of privacy."
            ),
        )

    def _conditional_words(self) -> str:
        """Return what Zero-Run says of the same examples, and what that rests on."""
        found = self.conditionals
        if not found:
            return ""
        model = str(found[0].options["propensity"])
        if any(one.withheld for one in found):
            refuted = (one.tested for one in found if one.withheld and one.refuted)
            by = next((f" (p = {p_value:.2g})" for p_value in refuted), "")
            return (
                f"Zero-Run on the same examples gives no bound: the {model}, was refuted{by}, so "
                "the examples say more of their coins than it knows."
            )
        if not any(one.bound for one in found):
            return (
                "Zero-Run on the same examples gives no bound either: what the examples say of "
                "their coins by themselves, and chance, explain all correct guesses, if the "
                f"{model}, is right."
            )
        bounds = " and ".join(
            f"ε ≥ {number(one.epsilon_bound)} {HOW[one.correction]}" for one in found
        )
        tested = found[0].tested
        tried = "" if tested is None else f" Tests did not refute it (p = {tested:.2g})."
        return (
            f"Zero-Run on the same examples gives a conditional lower bound: {bounds}. It holds if "
            f"log-odds of membership have the form of the model, a {model}.{tried}"
        )

    def answer(self, *, epsilon: float, c: float | None = None) -> str:
        """Return what the audit says about a claimed guarantee, in one sentence.

        Parameters
        ----------
        epsilon : float
            The claimed ε, at least 0.
        c : float, optional
            The claimed closeness of the generator.

        Returns
        -------
        str
            The verdict and what it means.
        """
        if self.kind == "estimate" and c is None:
            _, claim = self._judged(epsilon, c)
            return (
                f"The claimed {claim} cannot be tested alone: an estimate refutes nothing. Claim c "
                "and ε together."
            )
        return super().answer(epsilon=epsilon, c=c)

    @property
    def answered(self) -> str:
        """What the audit says about the guarantee that was checked; empty if none was."""
        one = self.checked
        return "" if one is None else self.answer(epsilon=one.value, c=one.c)

    def _judged(self, epsilon: float, c: float | None) -> tuple[Verdict, str]:
        claim = f"ε = {epsilon:g}{self._replaced}"
        together = claim if c is None else f"c = {c:g} with {claim}"
        return self.check(epsilon=epsilon, c=c), together

    def levels(self) -> Levels:
        """Return what the bar from 0 to the ceiling shows."""
        if self.kind != "estimate":
            return super().levels()
        low, high = number(self.c_lb), number(self.c_plus_epsilon_lb)
        return Levels(
            self.c_lb,
            max(self.c_lb, self.c_plus_epsilon_lb),
            (
                f"c of the generator: at least {low}",
                f"ε̃ = {number(self.bound)}, an estimate; c + ε is at least {high}",
                "not shown by this audit",
            ),
        )

    def meaning(self) -> Meaning:
        """Return what the number says, what it does not, and why an estimate is 0."""
        found = super().meaning()
        if self.kind != "estimate" or self.bound:
            return found
        known, certified = self.conditional, ""
        if known is not None and known.bound > 0:
            proof = f"ε ≥ {number(known.epsilon_bound)}"
            certified = known.terms.conditional(f"Zero-Run gives {proof}")
        reasons = why_zero(self.c_lb, self.attack.ceiling, certified)
        return replace(found, why_zero=reasons)

    def metrics(self) -> tuple[Metric, ...]:
        """Return the key numbers, each with a note."""
        name = {"estimate": "Estimate ε̃", "lower_bound": "ε at least"}.get(self.kind, "ε")
        return (
            Metric(name, number(self.bound), f"{KINDS[self.kind].tag}; {self._difference}"),
            Metric("c + ε at least", number(self.c_plus_epsilon_lb), "attack, with the model"),
            Metric("c at least", number(self.c_lb), "baseline, without the model"),
            *(
                Metric(
                    "Conditionally, ε at least",
                    number(one.epsilon_bound),
                    "withheld: propensities refuted" if one.withheld else HOW[one.correction],
                )
                for one in self.conditionals
            ),
            *self._common_metrics(f"baseline {self.baseline.auc:.3f}"),
        )

    @property
    def _difference(self) -> str:
        """How the number follows from the bounds beside it, as these are printed."""
        most, allowed = self.c_plus_epsilon_lb, self._allowance
        if most <= allowed:
            return "0, as c + ε is no larger than c"
        known = "c" if self.c_upper is None else f"{number(allowed)}, the limit of c"
        adds = Decimal(number(most)) - Decimal(number(allowed)) == Decimal(number(self.bound))
        return f"c + ε less {known}" + ("" if adds else ", before rounding")

    def figures(self) -> tuple[Figure, ...]:
        """Return the figures, none of them drawn yet."""
        bound = captions.Caption(captions.BOUND, self._bound_words, captions.CUTS)
        found = Figure(
            "true_positives",
            "True positives",
            partial(plot_true_positives, self),
            lambda: (
                f"Correct guesses against guesses: {self.correct:,} of {self.guesses:,} with the "
                f"model, {self.baseline.correct:,} of {self.baseline.guesses:,} by the baseline, "
                "at the cuts with the largest bounds."
            ),
            "Members found among the first guesses, as the propositions count them. Between the "
            "dotted lines lies what is possible beyond a coin toss.",
        )
        shared = captions.figures(self, self.attack, bound, refuted=True, pair=True)
        return (*shared, found)

    def _bound_words(self) -> str:
        return (
            f"Lower bound against number of guesses. The baseline reaches c = {number(self.c_lb)} "
            f"at {self.baseline.guesses:,} guesses, the attack c + ε = "
            f"{number(self.c_plus_epsilon_lb)} at {self.guesses:,}."
        )

    def sections(self) -> tuple[Section, ...]:
        """Return the grounds: why the bounds hold, and what they assume."""
        own, beside = super().sections(), self.conditional
        if beside is None:
            return own
        shown = tuple(one for one in beside.figures() if one.name == "overlap")
        title = "The conditional lower bound"
        return (*own, beside.grounds(title, self._conditional_words(), figures=shown))

    def __repr__(self) -> str:
        known = "" if self.c_upper is None else f"c <= {self.c_upper:g} given, "
        nature = "estimate, not a lower bound" if self.kind == "estimate" else self.kind
        return (
            f"PanoramiaResult(epsilon {sign_of(self.kind)} {down(self.bound)} @ "
            f"{percent(self.confidence)}, {known}c >= {down(self.c_lb)}, "
            f"c + epsilon >= {down(self.c_plus_epsilon_lb)}, m={self.m}, {nature}"
            f"{''.join(map(_beside, self.conditionals))})"
        )

    def _rows(self) -> dict[str, str]:
        nature = "an estimate, not a lower bound" if self.kind == "estimate" else self.kind
        return {
            f"epsilon {sign_of(self.kind)}": f"{down(self.bound)} ({nature.replace('_', ' ')})",
            **({"because": self.reason} if self.reason else {}),
            "confidence": percent(self.confidence),
            "c >=": f"{down(self.c_lb)} (baseline, AUC {self.baseline.auc:.3f})",
            "c + epsilon >=": f"{down(self.c_plus_epsilon_lb)} (attack, AUC {self.auc:.3f})",
            **{
                f"conditionally ({one.correction.replace('_', '-')})": (
                    f"epsilon >= {down(one.bound)}" + (", withheld" if one.withheld else "")
                )
                for one in self.conditionals
            },
            "examples": f"{self.m}, of which {self.members} members",
            "a perfect attack reaches": down(self.ceiling),
        }

    @property
    def _allowance(self) -> float:
        return self.c_lb if self.c_upper is None else self.c_upper


def _beside(found: ZeroRunResult) -> str:
    name = found.correction.replace("_", "-")
    withheld = ", withheld" if found.withheld else ""
    return f"; conditional lower bound by {name}: epsilon >= {down(found.bound)}{withheld}"


def why_zero(c_lb: float, ceiling: float, certified: str = "") -> tuple[str, str, str]:
    """Return the three possible reasons of an estimate of 0 (Kazmi et al. 2024, appendix D.5)."""
    room = number(max(0.0, ceiling - c_lb))
    little = "The target model leaks too little for any attack to see."
    if certified:
        little += f" {certified}: then this is not the reason."
    easy = (
        "The generated points are so easy to tell from real ones that the baseline already "
        f"explains what the attack finds. Its bound is c ≥ {number(c_lb)}, of the "
        f"{number(ceiling)} that a perfect attack reaches, which leaves ε̃ at most {room}."
    )
    return (
        little,
        easy,
        "The attack is too weak, or has too few examples, to use what the model reveals.",
    )


def plot_true_positives(result: PanoramiaResult, ax: "Axes | None" = None) -> "Axes":
    """Draw how many members attack and baseline find among their first guesses.

    References
    ----------
    Kazmi et al. 2024 (arXiv 2402.09477), Figure 10.
    """
    with house_style():
        ax = new_axes(ax)
        for name, audit, colour in (
            ("with the model", result.attack, MEMBER),
            ("baseline", result.baseline, OTHER),
        ):
            ax.plot(audit.curve.guesses, audit.curve.correct, color=colour, label=name)
            if audit.bound > 0:
                ax.plot(audit.guesses, audit.correct, "o", color=colour, markersize=5)
        members = result.attack.members
        possible = ([0, members, result.m], [0, members, members])
        for guesses, correct in (possible, ([0, result.m], [0, members])):
            ax.plot(guesses, correct, color=MUTED, linewidth=0.9, linestyle=(0, (1, 2)))
        ax.annotate("all correct  ", (members, members), color=MUTED, ha="right", va="top")
        ax.annotate("coin toss", (0.6 * result.m, 0.55 * members), color=MUTED, va="top")
        ax.set_xlim(0, result.m)
        ax.set_ylim(bottom=0)
        ax.legend(loc="lower right")
        name_axes(ax, "True positives", "guesses made", "correct guesses", result.kind)
    return ax
