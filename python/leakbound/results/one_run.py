"""What an audit with random inclusion returns; the public name is that of the package."""

import math
from dataclasses import dataclass, field, replace
from typing import Literal, Self

from leakbound._base.checks import choice, instance, real, shown
from leakbound._base.formatting import down, number, percent, up
from leakbound._base.records import IF_ANY, Lazy
from leakbound._base.types import Kind, Relation, Unit, Verdict
from leakbound.claims import FAMILIES, Claim, GaussianDP, SubsampledGaussianDP, replacing
from leakbound.claims.tradeoff import TradeOff
from leakbound.errors import IncompatibleOptionsError
from leakbound.report.contents import KINDS, Figure, Metric, Profile, Series, Terms
from leakbound.report.parts import Assumption, Checked, Provenance
from leakbound.report.style import MEMBER
from leakbound.results import captions
from leakbound.results.base import Result
from leakbound.results.beside import check_comparable
from leakbound.results.checks import check_delta, flaw_of_options, judged, sign_of
from leakbound.results.ranking import ROUNDING, Implied, ScoreAudit
from leakbound.results.words import DELTA, PATHS, symbol


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class AuditResult(Result, ScoreAudit):
    """What an audit with random inclusion proves; the fields of `ScoreAudit` are its own.

    Parameters
    ----------
    kind : str
        "lower_bound": holds for every mechanism that satisfies the claim; "family_lower_bound":
        holds among the trade-off functions of the claim, and ε is a conversion;
        "conditional_lower_bound": holds if the model of who became a member is right;
        "exploratory_lower_bound": that model was learnt and its error is not covered.
    claim : PureDP, ApproxDP or a family of trade-off functions
        The guarantees whose parameter is bounded: `bound` and `ceiling` are in its units.
    confidence : float
        Probability, over the coins, that the bound is not above the truth.
    theorem : str
        Why the bound holds.
    assumptions : tuple of Assumption
        What must be true for it.
    rejected : TradeOff or None
        For a family of trade-off functions, the least private curve that is rejected, if any.
    checked : Checked or None
        A claimed guarantee that was put to the test, by `with_check` or ``--claim``.

    Examples
    --------
    >>> import numpy as np, leakbound as lb
    >>> member = np.arange(300) % 2 == 0
    >>> result = lb.audit_one_run(np.where(member, 2.0, 1.0) + np.arange(300) / 1e4, member)
    >>> lb.AuditResult.from_json(result.to_json()) == result
    True
    """

    kind: Kind
    claim: Claim
    confidence: float
    theorem: str
    assumptions: tuple[Assumption, ...]
    rejected: TradeOff | None = None
    checked: Checked | None = field(default=None, metadata=IF_ANY)
    _provenance: Lazy[Provenance] = field(repr=False)
    _rejectable: Lazy[TradeOff | None] = field(default_factory=lambda: Lazy(lambda: None))

    def _flaw(self) -> str:
        if not 0 < self.confidence < 1:
            return f"confidence is {self.confidence:g}, outside (0, 1)"
        if self.kind not in self._kinds():
            return f"kind {self.kind!r} is none of a {type(self).__name__} on {self.claim.name}"
        if self.rejected is not None and not self.is_family:
            return f"rejected is a curve, and {self.claim.name} is no family of curves"
        flaw = flaw_of_options(self.options) or super()._flaw()
        return flaw or self._flaw_of_check()

    def _kinds(self) -> set[Kind]:
        return {"family_lower_bound" if self.is_family else "lower_bound"}

    def _within_reach(self) -> bool:
        if self.bounds_above:
            return self.bound >= self.ceiling - ROUNDING * abs(self.ceiling)
        return super()._within_reach()

    @property
    def rejectable(self) -> TradeOff | None:
        """The curve that a perfect attack would have rejected; None if none, or no family."""
        return self._rejectable.value

    @property
    def relation(self) -> Relation:
        """What the bound compares: training with and without an example, or with another one."""
        stored: Relation = self.options.get("relation", "add_remove")
        return stored

    @property
    def unit(self) -> Unit:
        """Of what the bound adds, removes or replaces one: an example, or all of a user's."""
        return "user" if self.options.get("unit") == "user" else "example"

    @property
    def _replaced(self) -> str:
        """What is replaced by another, in words after a claim; "" where it is added or removed."""
        if self.relation == "add_remove":
            return ""
        return f" for replacing one {self.options.get('unit', 'example')}"

    @property
    def _chance(self) -> str:
        return "the random split" if self.relation == "replace" else super()._chance

    @property
    def is_family(self) -> bool:
        """Whether the claim is a family of trade-off functions."""
        return isinstance(self.claim, FAMILIES)

    @property
    def is_shifted(self) -> bool:
        """Whether members and non-members may differ without the model."""
        return False

    @property
    def is_withheld(self) -> bool:
        """Whether there is a bound, and it is not to be reported."""
        doubted = (one.status == "contradicted" for one in self.assumptions)
        return self.relation == "replace" and any(doubted)

    @property
    def parameter(self) -> str:
        """The claim's parameter, with its sign: a bound from below, or from above."""
        if self.bounds_above and self.kind != "exploratory_lower_bound":
            return f"{self.claim.parameter} <="
        return f"{self.claim.parameter} {sign_of(self.kind)}"

    @property
    def bounds_above(self) -> bool:
        """Whether smaller values of the parameter are the less private."""
        return self.claim.order == "decreasing"

    def epsilon(self, delta: float = 0.0) -> float:
        """Return the bound as an ε of (ε, δ)-differential privacy.

        Parameters
        ----------
        delta : float
            δ in [0, 1). For `PureDP` and `ApproxDP` at most that of the claim. For a family the
            rejected curve is converted, which holds within the family.

        Returns
        -------
        float
            ε, in nats; 0 if nothing is rejected.

        Raises
        ------
        OptionError
            If `delta` is outside [0, 1).
        IncompatibleOptionsError
            If the claim says nothing about this δ.
        """
        if not self.is_family:
            return super().epsilon(delta)
        return _converted(self.rejected, delta)

    def check(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        parameter: float | None = None,
        relation: Relation | None = None,
    ) -> Verdict:
        """Say whether the audit refutes a claimed ε, or a claimed parameter.

        Parameters
        ----------
        epsilon : float, optional
            The claimed ε, at least 0.
        delta : float, optional
            The claimed δ, 0 if not given; for `PureDP` and `ApproxDP` at most that of the result's
            claim.
        parameter : float, optional
            In place of ε, the claimed value of the claim's own parameter, such as μ.
        relation : {"add_remove", "replace"}, optional
            What the claimed guarantee compares. It must be given where the bound is on replacing
            one example: a claim about adding or removing one is then converted to what follows
            from it, (2ε, (1 + e^ε) δ) or 2μ. The bound never is.

        Returns
        -------
        {"refuted", "not refuted", "inconclusive"}
            "refuted" if the bound is above the claim; "inconclusive" if even a perfect attack
            could not have refuted it, the bound is withheld, or the audit is of kind
            "exploratory_lower_bound". Of a family, what is refuted is the family's own curve with
            this ε and δ.

        Raises
        ------
        OptionError, OptionTypeError
            If a claimed value is negative or no number, or `delta` is outside [0, 1).
        IncompatibleOptionsError
            If the claim says nothing about this δ, not one of ε and parameter is given, or the two
            relations cannot be compared.
        """
        if (epsilon is None) == (parameter is None):
            message = "claim either epsilon or parameter, one of them"
            raise IncompatibleOptionsError(message)
        if parameter is not None and delta is not None:
            message = (
                f"delta={shown(delta)} is not for parameter=, which would leave it out: the δ of "
                f"{self.claim.name} is that of the claim, {self.claim.delta:g}"
            )
            raise IncompatibleOptionsError(message)
        converted = self._crosses(relation, by_parameter=parameter is not None)
        if parameter is not None:
            claimed = real(parameter, "parameter", least=0)
            if converted and isinstance(self.claim, GaussianDP):
                claimed *= 2
            sign = -1 if self.bounds_above else 1
            return judged(
                self.kind,
                refuted=sign * self.bound > sign * claimed,
                refutable=lambda: sign * self.ceiling > sign * claimed,
                withheld=self.is_withheld,
            )
        claimed = real(epsilon, "epsilon", least=0)
        at = 0.0 if delta is None else delta
        if self.is_family:
            half = _halved if converted else _same
            return judged(
                self.kind,
                refuted=_converted(half(self.rejected), at) > claimed,
                refutable=lambda: _converted(half(self.rejectable), at) > claimed,
                withheld=self.is_withheld,
            )
        if converted:
            claimed, at = replacing(claimed, at)
            if at >= 1:
                return "inconclusive"
        check_delta(at, self.claim)
        return judged(
            self.kind,
            refuted=self.bound > claimed,
            refutable=lambda: self.ceiling > claimed,
            withheld=self.is_withheld,
        )

    def with_check(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        parameter: float | None = None,
        relation: Relation | None = None,
    ) -> Self:
        """Return this result with a claimed guarantee put to the test: JSON and pages tell of it.

        Parameters
        ----------
        epsilon, delta, parameter : float
            As for `check`.
        relation : {"add_remove", "replace"}, optional
            As for `check`.

        Returns
        -------
        Self
            The same result; `checked` has the guarantee and the verdict.

        Raises
        ------
        OptionError, OptionTypeError, IncompatibleOptionsError
            As for `check`.

        Examples
        --------
        >>> import numpy as np, leakbound as lb
        >>> member = np.arange(300) % 2 == 0
        >>> result = lb.audit_one_run(member + np.arange(300) / 1e4, member)
        >>> result.with_check(epsilon=1).to_dict()["checked"]["verdict"]
        'refuted'
        """
        verdict = self.check(epsilon=epsilon, delta=delta, parameter=parameter, relation=relation)
        if parameter is None:
            claimed = real(epsilon, "epsilon", least=0)
            at = 0.0 if delta is None else float(delta)
            checked = Checked("epsilon", "<=", claimed, at, verdict, compares=relation)
        else:
            sign: Literal["<=", ">="] = ">=" if self.bounds_above else "<="
            name = self.claim.parameter
            checked = Checked(name, sign, float(parameter), None, verdict, compares=relation)
        return replace(self, checked=checked)

    def against(
        self,
        *,
        epsilon: float,
        delta: float,
        relation: Relation,
        unit: Unit = "example",
        source: str = "",
    ) -> Self:
        """Return this result with an accountant's ε beside the one that is proved.

        Both are of the same δ, the same relation and the same unit, so that they may be compared:
        what the audit proves is at most the truth, and what an accountant states at least.

        Parameters
        ----------
        epsilon, delta : float
            What the accountant states: ε at least 0, δ in [0, 1).
        relation : {"add_remove", "replace"}
            What its guarantee compares. Accountants of Poisson sampling, such as those of opacus
            and dp-accounting, by default add or remove one example.
        unit : {"example", "user"}
            Of what its guarantee adds, removes or replaces one.
        source : str
            The accountant's name, for JSON and pages.

        Returns
        -------
        Self
            The same result; `checked` has the guarantee, the verdict and, as `proved`, the ε that
            the audit proves at this δ.

        Raises
        ------
        IncompatibleOptionsError
            If the two are about different relations or units: the message names the conversion.
            If the claim says nothing about this δ, or the audit proves nothing by its kind.
        OptionError, OptionTypeError
            If an argument is outside its range or of the wrong type.

        Examples
        --------
        >>> import numpy as np, leakbound as lb
        >>> member = np.arange(300) % 2 == 0
        >>> scores = member + np.arange(300) / 1e4
        >>> result = lb.audit_one_run(scores, member, claim=lb.ApproxDP(delta=1e-5))
        >>> beside = result.against(
        ...     epsilon=8, delta=1e-5, relation="add_remove", source="opacus prv"
        ... )
        >>> beside.answered.split(",")[0]
        'Accounted ε = 8 at δ = 1e-05 (opacus prv)'
        """
        stated = real(epsilon, "epsilon", least=0, below=math.inf)
        at = real(delta, "delta", least=0, below=1)
        instance(source, "source", str)
        if not KINDS[self.kind].proves:
            message = (
                f"this audit is {KINDS[self.kind].tag}: it proves no ε to put beside that of an "
                "accountant"
            )
            raise IncompatibleOptionsError(message)
        check_comparable((self.relation, self.unit), (relation, unit), epsilon=stated, delta=at)
        found = self.with_check(epsilon=stated, delta=at, relation=relation)
        assert found.checked is not None
        proved = self.epsilon(at)
        return replace(found, checked=replace(found.checked, proved=proved, source=source or None))

    def _checked_again(self, checked: Checked) -> Checked:
        if checked.proved is not None and checked.delta is not None:
            again = self.against(
                epsilon=checked.value,
                delta=checked.delta,
                relation=checked.compares or "add_remove",
                unit=self.unit,
                source=checked.source or "",
            )
            return again.checked or checked
        if checked.delta is None:
            again = self.with_check(parameter=checked.value, relation=checked.compares)
        else:
            again = self.with_check(
                epsilon=checked.value, delta=checked.delta, relation=checked.compares
            )
        return again.checked or checked

    def _crosses(self, relation: Relation | None, *, by_parameter: bool) -> bool:
        """Return whether a claim about adding or removing one example has to be converted."""
        if relation is not None:
            choice(relation, "relation", Relation)
        if self.relation == "add_remove":
            if relation == "replace":
                message = (
                    "the bound is on adding or removing one example, and a guarantee for replacing "
                    'one says nothing about that: audit a random split (design="random_split")'
                )
                raise IncompatibleOptionsError(message)
            return False
        if isinstance(self.claim, SubsampledGaussianDP) and by_parameter:
            return False  # noise is noise: its curve is that of the relation
        if relation is None:
            message = (
                f"the bound is{self._replaced}: say what the claim compares, "
                'relation="add_remove" (it is converted: 2ε, 2μ) or relation="replace"'
            )
            raise IncompatibleOptionsError(message)
        if relation == "replace":
            return False
        if self.is_family and not (isinstance(self.claim, GaussianDP) and not self.claim.delta):
            message = (
                f"a claim of {self.claim.name} for adding or removing one example has no curve of "
                'this family for replacing one: claim that one, with relation="replace"'
            )
            raise IncompatibleOptionsError(message)
        return True

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.parameter} {self.rounded(self.bound)} @ "
            f"{percent(self.confidence)}, {self.claim.name}{self._replaced}, {self._counts}, "
            f"{self.kind})"
        )

    def rounded(self, value: float) -> str:
        """Return a value of the parameter with two decimals, on the side that is proved.

        Parameters
        ----------
        value : float
            Not NaN.

        Returns
        -------
        str
            The digits.
        """
        return up(value) if self.bounds_above else down(value)

    @property
    def _ranking(self) -> ScoreAudit:
        return self

    @property
    def series(self) -> tuple[Series, ...]:
        """The ranking, as figures show it."""
        bound = self.rounded(self.bound) if self.is_family else number(self.bound)
        return (
            Series(
                f"this {self.subject}", symbol(self.claim), "", MEMBER, bound, self, self._units
            ),
        )

    @property
    def profile(self) -> Profile | None:
        """What figures draw of a family of trade-off functions: its rejected curves."""
        return self if self.is_family else None

    @property
    def epsilon_bound(self) -> float:
        """The bound as an ε: of a family of trade-off functions, at δ = 1e-5."""
        return self._at(self.rejected) if self.is_family else self.bound

    @property
    def epsilon_ceiling(self) -> float:
        """The ceiling as an ε, as `epsilon_bound` is."""
        return self._at(self.rejectable) if self.is_family else self.ceiling

    def _at(self, curve: TradeOff | None) -> float:
        """Return ε at `DELTA`, failures of the claim on top, which no ε covers."""
        failures = self.claim.delta
        return 0.0 if curve is None else float(curve.epsilon(DELTA + (1 - DELTA) * failures))

    @property
    def refutes(self) -> bool:
        """Whether some guarantee is refuted: the number is a bound, and more than nothing."""
        nothing = math.inf if self.bounds_above else 0.0
        return KINDS[self.kind].proves and self.bound != nothing

    def implied(self) -> Implied | None:
        """Return lower bounds on what people read: advantage, TPR at low FPR, posterior.

        Returns
        -------
        Implied or None
            As for every result; None where the bound is on replacing one example, since that is
            about telling two examples apart, and not members from others.
        """
        return None if self.relation == "replace" else super().implied()

    def _refuted_curve(self) -> TradeOff | None:
        """Return the refuted curve of the family, that of guesses of members."""
        if not isinstance(self.claim, FAMILIES):
            return super()._refuted_curve()
        claim = self.claim
        if isinstance(claim, GaussianDP):
            claim = replace(claim, delta=0.0)
        return claim.attained(self.bound, "member")

    @property
    def terms(self) -> Terms:
        """What the bound refers to, in words that every sentence about it shares."""
        if not self.is_family:
            return super().terms
        name = symbol(self.claim)
        sign, size = (">", "large") if self.bounds_above else ("<", "small")
        at = f" at δ = {DELTA:g}"
        own = f"{name} {sign} {self.rounded(self.bound)}"
        return Terms(
            guarantee=f"guarantee of {self.claim.name}{self._replaced}",
            family=self.claim.name + self._replaced,
            bound=f"{own} (ε < {number(self.epsilon_bound)}{at})",
            however=f"however {size} its {name}",
            at=at,
            condition=self.condition,
            units=self._units,
        )

    @property
    def formula(self) -> str:
        """The bound with its sign, and its kind where it proves nothing by itself."""
        if not self.is_family or not KINDS[self.kind].proves:
            return super().formula
        return self._formula(self.bound)

    def _formula(self, bound: float) -> str:
        sign = "≤" if self.bounds_above else "≥"
        return f"{symbol(self.claim)} {sign} {self.rounded(bound)}"

    def headline(self) -> str:
        """Return the verdict in one sentence."""
        claim = self.claim
        if self.is_withheld:
            return (
                "Withheld: features alone tell members from non-members, so that the split was not "
                "random and correct guesses may be explained by it. Nothing is proved."
            )
        if not (self.leaks and isinstance(claim, SubsampledGaussianDP)):
            return super().headline()
        condition = f"{self.condition} and" if self.condition else "if"
        steps = f"{claim.steps:,} step" + ("s" if claim.steps > 1 else "")
        return (
            f"This {self.subject} leaks: {condition} training is DP-SGD "
            f"(q = {claim.sampling_rate:g}, {steps}), its noise multiplier was at "
            f"most {self.rounded(self.bound)}, so ε ≥ {number(self.epsilon_bound)} at "
            f"δ = {DELTA:g}{self._replaced} ({percent(self.confidence)} confidence)."
        )

    def _evidence(self) -> tuple[str, ...]:
        if self.is_withheld:
            return (f"The bound is 0 because {self.reason}.",)
        if self.refutes:
            fixed = self.options["cuts"]["type"] == "Fixed"
            search = "" if fixed else ", the search over the cuts of the ranking included"
            any_smaller = f"Under any {self.terms.guarantee} with a smaller ε{self.terms.at}"
            about = "which of two was trained on" if self.path == "pairs" else "membership"
            counted = f"{self.correct:,} of {self.guesses:,} guesses about {about} were correct."
            chance = f"a chance of at most {percent(1 - self.confidence)}"
            return (f"{counted} {any_smaller}, evidence this strong has {chance}{search}.",)
        if self.epsilon_ceiling > 0:
            return (
                (
                    "This is not evidence of privacy: a stronger attack, better scores or planted "
                    "canaries may still reveal leakage."
                ),
            )
        return (f"This is not evidence of privacy: audit more {self._units}.",)

    def _judged(self, epsilon: float, c: float | None) -> tuple[Verdict, str]:
        if c is not None:
            message = f"c= says nothing of {type(self).__name__}: leave it out"
            raise IncompatibleOptionsError(message)
        delta = DELTA if self.is_family else self.claim.delta
        at = f" with δ = {delta:g}" if delta else ""
        verdict = self.check(epsilon=epsilon, delta=delta, relation=self.relation)
        return verdict, f"ε = {epsilon:g}{at}{self._replaced}"

    def metrics(self) -> tuple[Metric, ...]:
        """Return the key numbers, each with a note."""
        at, family, kind = "", list[Metric](), KINDS[self.kind]
        if self.is_family:
            at = f" at δ = {DELTA:g}"
            limit = " at most" if self.bounds_above else " at least"
            limit = limit if kind.proves else ""
            bound = self.rounded(self.bound)
            family.append(Metric(f"{symbol(self.claim)}{limit}", bound, self.claim.name))
        return (
            *self._beside(),
            *family,
            Metric(
                ("ε at least" if kind.proves else "ε") + at,
                number(self.epsilon_bound),
                kind.tag + self._replaced,
            ),
            Metric(
                "Ceiling" + at,
                number(self.epsilon_ceiling),
                f"a perfect attack, same {self._units}",
            ),
            Metric("Correct guesses", f"{self.correct:,} of {self.guesses:,}", PATHS[self.path]),
            *self._common_metrics("0.5 is guessing"),
        )

    def figures(self) -> tuple[Figure, ...]:
        """Return the figures, none of them drawn yet."""
        return captions.figures(
            self,
            self,
            self._bound_caption(),
            refuted=self.epsilon_bound > 0,
            family=self.is_family,
            withheld=self.is_withheld,
            shifted=self.is_shifted,
        )

    def _bound_caption(self) -> captions.Caption:
        if self.is_family:
            return captions.Caption(
                "ε against δ",
                lambda: (
                    "Privacy loss ε against δ of the rejected curve: "
                    f"{number(self.epsilon_bound)} at δ = {DELTA:g}; a perfect attack would reach "
                    f"{number(self.epsilon_ceiling)}."
                ),
                "The ε that the least private rejected curve of the family has at each δ, and "
                "dotted the curve that a perfect attack would have rejected.",
            )
        return captions.Caption(captions.BOUND, self._bound_words, captions.CUTS)

    def _bound_words(self) -> str:
        reach = f"a perfect attack would reach {number(self.ceiling)}."
        if self.bound > 0:
            return (
                "Lower bound on ε against number of guesses. It is highest, "
                f"{number(self.bound)}, at {self.guesses:,} guesses; {reach}"
            )
        return f"Lower bound on ε against number of guesses. It is 0 throughout; {reach}"

    def _rows(self) -> dict[str, str]:
        family = {}
        if self.is_family:
            family["epsilon at delta = 1e-5"] = f"{down(self.epsilon(1e-5))} (converted)"
        nature = self.kind.replace("_", " ")
        return {
            self.parameter: f"{self.rounded(self.bound)} ({nature})",
            **family,
            **({"because": self.reason} if self.reason else {}),
            **({"relation": f"replace one {self.options['unit']}"} if self._replaced else {}),
            "confidence": percent(self.confidence),
            "correct guesses": f"{self.correct} of {self.guesses} ({self.path})",
            self._units: f"{self.m}, of which {self.members} members",
            "AUC": f"{self.auc:.3f}",
            "a perfect attack reaches": self.rounded(self.ceiling),
        }


def _same(curve: TradeOff | None) -> TradeOff | None:
    return curve


def _halved(curve: TradeOff | None) -> TradeOff | None:
    """Return the Gaussian curve of half the μ: what replacing an example doubles."""
    return None if curve is None else TradeOff.gaussian(curve.parameters["mu"].item() / 2)


def _converted(curve: TradeOff | None, delta: float) -> float:
    checked = real(delta, "delta", least=0, below=1)
    return 0.0 if curve is None else float(curve.epsilon(checked))
