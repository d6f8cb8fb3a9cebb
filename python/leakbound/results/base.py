"""What all results have in common; the public names are those of `leakbound.results`.

Parts that cost time (ceiling, curve, ROC, histogram, provenance) are computed when first asked
for, from the arrays that were audited, and kept.
"""

import html
import math
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from leakbound._base.checks import shown
from leakbound._base.formatting import number, percent
from leakbound._base.records import Lazy, Record
from leakbound._base.types import ArrayInput, HasMember, JsonValue, Kind, Verdict
from leakbound.claims import Claim
from leakbound.claims.tradeoff import TradeOff
from leakbound.errors import OptionError
from leakbound.report import write
from leakbound.report.contents import (
    KINDS,
    SMALL,
    Figure,
    Levels,
    Meaning,
    Metric,
    Section,
    Summary,
    Terms,
)
from leakbound.report.parts import Assumption, Checked, Provenance
from leakbound.results.checks import check_delta, named
from leakbound.results.ranking import Implied, ScoreAudit, implied_by
from leakbound.results.words import COMPARED, DELTA, DESIGNS, FORMS, meaning_of, symbol_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Evidence(Protocol):
    """What `leakbound.evidence` does for results: it stands above them."""

    def verify_result(
        self, result: "Result", data: Mapping[str, Any], options: Mapping[str, Any], /
    ) -> "Verification":
        """Audit again, and compare."""

    @property
    def write_bundle(self) -> Callable[..., None]:
        """Write a bundle."""


class Result(Record, ABC):
    """What every result offers: what its number is, in words, figures and a report.

    `headline`, `evidence`, `answer`, `metrics`, `figures` and `sections` are what reports lay out.
    """

    kind: Kind
    claim: Claim
    bound: float
    reason: str
    confidence: float
    theorem: str
    assumptions: tuple[Assumption, ...]
    options: dict[str, Any]
    warnings: tuple[str, ...]
    checked: Checked | None
    _provenance: Lazy[Provenance]

    @property
    def _verifier(self) -> Evidence:
        """What audits again, and so stands above results: the package hands it out by name."""
        return cast("Evidence", sys.modules["leakbound"].evidence)

    @property
    def provenance(self) -> Provenance:
        """Versions, seed and digests of the inputs, taken when this is first read."""
        return self._provenance.value

    @classmethod
    def among(cls, results: Iterable["Result"]) -> tuple[Self, ...]:
        """Return those results that are of this type, in their order."""
        return tuple(one for one in results if isinstance(one, cls))

    @property
    @abstractmethod
    def _ranking(self) -> ScoreAudit:
        """The ranking that the bound comes from."""

    @property
    def subject(self) -> str:
        """What is audited."""
        return "model"

    @property
    def epsilon_bound(self) -> float:
        """The bound as an ε: of a family of trade-off functions, at δ = 1e-5."""
        return self.bound

    @property
    @abstractmethod
    def epsilon_ceiling(self) -> float:
        """The ceiling as an ε, as `epsilon_bound` is."""

    @property
    def refutes(self) -> bool:
        """Whether some guarantee is refuted: the number is a bound, and more than nothing."""
        return KINDS[self.kind].proves and self.bound > 0

    @property
    def is_withheld(self) -> bool:
        """Whether there is a bound, and it is not to be reported."""
        return False

    @property
    def leaks(self) -> bool:
        """Whether leakage worth the word is proved: a bound, and not a tiny one."""
        return self.refutes and self.epsilon_bound >= SMALL

    @property
    def terms(self) -> Terms:
        """What the bound refers to, in words that every sentence about it shares."""
        delta = self.claim.delta
        return Terms(
            guarantee=(f"(ε, {delta:g})-DP" if delta else "ε-DP") + f" guarantee{self._replaced}",
            family=(f"(ε, {delta:g})" if delta else "ε") + f"-differential privacy{self._replaced}",
            bound=f"ε < {number(self.epsilon_bound)}",
            condition=self.condition,
            units=self._units,
        )

    @property
    def condition(self) -> str:
        """What has to hold besides what every audit assumes, as it ends a sentence, if anything."""
        return KINDS[self.kind].condition

    @property
    def formula(self) -> str:
        """The bound with its sign, and its kind where it proves nothing by itself."""
        sign, tail = FORMS.get(self.kind, ("ε ≥", ""))
        return f"{sign} {number(self.epsilon_bound)}{tail}"

    @property
    def verdict(self) -> str:
        """The verdict in a few words: "leaks", "nothing refuted", "estimate", "exploratory"."""
        if not KINDS[self.kind].proves:
            return KINDS[self.kind].tag.split(",")[0]
        if self.is_withheld:
            return "withheld"
        if not self.refutes:
            return "nothing refuted"
        said = "leaks" if self.leaks else f"at least {number(self.epsilon_bound)}"
        return self.terms.qualified(said)

    def headline(self) -> str:
        """Return the verdict in one sentence.

        Returns
        -------
        str
            What is proved, or that nothing is.
        """
        bound, sure = number(self.epsilon_bound), f"({percent(self.confidence)} confidence)"
        terms = self.terms
        if self.kind == "exploratory_lower_bound":
            return (
                f"Exploratory: ε ≈ {bound}{terms.at}, with learnt propensities whose error no "
                "confidence set covers. It is not a lower bound, and it refutes nothing."
            )
        if self.leaks:
            return terms.conditional(
                f"This {self.subject} leaks: no {terms.guarantee} with ε < {bound}{terms.at} is "
                f"compatible with this audit {sure}."
            )
        if self.refutes:
            return terms.conditional(
                f"ε is at least {bound}{terms.at}{terms.within} {sure}: this audit proves little, "
                "and a stronger one may prove more."
            )
        examples = f"with these {self._ranking.m:,} {self._units}"
        if self.epsilon_ceiling > 0:
            return (
                "Nothing could be refuted. A perfect attack would have reached "
                f"ε = {number(self.epsilon_ceiling)}{terms.at} {examples}, so the audit could have "
                "shown leakage: this attack did not."
            )
        return (
            f"Nothing could be refuted, and nothing could have been: {examples} even a perfect "
            f"attack would refute nothing {sure}."
        )

    def evidence(self) -> tuple[str, ...]:
        """Return the paragraphs below the headline.

        Returns
        -------
        tuple of str
            The evidence, or what is missing.
        """
        return self._evidence()

    @property
    def _replaced(self) -> str:
        """What is replaced by another, in words after a claim; "" where it is added or removed."""
        return ""

    @property
    def _units(self) -> str:
        """What the audit counts, in words."""
        return f"{self.options.get('unit', 'example')}s"

    @property
    def _chance(self) -> str:
        """What the confidence is over."""
        return "the coins of membership"

    @abstractmethod
    def _evidence(self) -> tuple[str, ...]:
        """Return the evidence of a valid audit."""

    def answer(self, *, epsilon: float, c: float | None = None) -> str:
        """Return what the audit says about a claimed guarantee, in one sentence.

        Parameters
        ----------
        epsilon : float
            The claimed ε, at least 0; for a family of trade-off functions, at δ = 1e-5.
        c : float, optional
            The claimed closeness of a generator, for PANORAMIA.

        Returns
        -------
        str
            The verdict and what it means.

        Raises
        ------
        OptionError, OptionTypeError, IncompatibleOptionsError
            If there is no such guarantee, or the audit says nothing about it.
        """
        return self._said(*self._judged(epsilon, c))

    @property
    def answered(self) -> str:
        """What the audit says about the guarantee that was checked; empty if none was."""
        one = self.checked
        if one is None:
            return ""
        sign = "=" if one.relation == "<=" else "≥"
        claim = f"{symbol_of(one.parameter)} {sign} {one.value:g}"
        claim += f" with δ = {one.delta:g}" if one.delta else ""
        if one.compares:
            claim += f" for {COMPARED[one.compares]} one {self.options.get('unit', 'example')}"
        said = self._said(one.verdict, claim if one.c is None else f"c = {one.c:g} with {claim}")
        if one.proved is None:
            return said
        return f"Accounted {one.accounted}, proved ε ≥ {number(one.proved)}. {said}"

    @abstractmethod
    def with_check(self, *, epsilon: float, delta: float = 0.0) -> Self:
        """Return this result with a claimed guarantee put to the test: JSON and pages tell of it.

        Parameters
        ----------
        epsilon, delta : float
            The claimed guarantee.

        Returns
        -------
        Self
            The same result; `checked` has the guarantee and the verdict.

        Raises
        ------
        OptionError, OptionTypeError, IncompatibleOptionsError
            If there is no such guarantee, or the audit says nothing about it.
        """

    @abstractmethod
    def _checked_again(self, checked: Checked) -> Checked:
        """Return the same guarantee with the verdict that the bound gives on it."""

    def _flaw_of_check(self) -> str:
        """Return how a verdict that was read contradicts the bound; empty if it does not."""
        one = self.checked
        if one is None:
            return ""
        again = self._checked_again(one)
        if again == one:
            return ""
        return f"checked is {shown(one.verdict)} on {one.parameter}, and the bound gives {again}"

    def _said(self, verdict: Verdict, claim: str) -> str:
        """Return the verdict on a claim in a sentence."""
        sure = f"({percent(self.confidence)} confidence)"
        if verdict == "refuted":
            return self.terms.conditional(
                f"The claimed {claim} is refuted{self.terms.within} {sure}."
            )
        if verdict == "not refuted":
            return (
                f"The claimed {claim} is not refuted, though this audit could have refuted it "
                f"{sure}."
            )
        if self.is_withheld:
            return f"Inconclusive: the claimed {claim} cannot be tested, as the bound is withheld."
        if not KINDS[self.kind].proves:
            return f"The claimed {claim} cannot be tested: an exploratory number refutes nothing."
        return (
            f"Inconclusive: the claimed {claim} is out of reach, since with these "
            f"{self._ranking.m:,} {self._units} even a perfect attack could not refute it."
        )

    @abstractmethod
    def _judged(self, epsilon: float, c: float | None) -> tuple[Verdict, str]:
        """Return the verdict on a claim, and the claim in words."""

    def contradicted(self) -> tuple[Assumption, ...]:
        """Return the assumptions that the data contradict, those of conditional bounds included.

        Returns
        -------
        tuple of Assumption
            Often none; each once.
        """
        found = (one for part in self._parts() for one in part.assumptions)
        return tuple(dict.fromkeys(one for one in found if one.status == "contradicted"))

    def _parts(self) -> tuple["Result", ...]:
        """Return the results that this one is made of, itself first."""
        return (self,)

    def summary(self) -> Summary:
        """Return the result in a few values, for tables of several.

        Returns
        -------
        Summary
            The bound, its verdict, and the counts behind it.
        """
        ranking = self._ranking
        return Summary(
            claim=self.claim.name + self._replaced,
            terms=self.terms,
            epsilon=self.epsilon_bound,
            formula=self.formula,
            verdict=self.verdict,
            refutes=self.refutes,
            leaks=self.leaks,
            guesses=ranking.guesses,
            correct=ranking.correct,
            auc=ranking.auc,
            papers=self.papers,
            beside="" if self.checked is None else self.checked.interval,
            text=" ".join((self.headline(), *filter(None, [self.answered]), *self.evidence())),
            subject=self.subject,
        )

    @property
    def papers(self) -> tuple[str, ...]:
        """The papers behind this audit, besides those that every report cites."""
        return ()

    def levels(self) -> Levels:
        """Return what the bar from 0 to the ceiling shows.

        Returns
        -------
        Levels
            Bound and ceiling, and what the parts of the axis between them are.
        """
        first, second = self.epsilon_bound, max(self.epsilon_bound, self.epsilon_ceiling)
        low, high = number(first), number(second)
        if not KINDS[self.kind].proves:
            names = (
                f"not a bound: ε below {low}",
                f"up to the ceiling, {high}",
                "beyond the ceiling",
            )
        else:
            names = (
                f"{self.terms.qualified('ruled out')}: ε below {low}{self.terms.at}",
                f"not ruled out, though within reach: up to {high}",
                f"out of reach of this audit: ε of {high} and more",
            )
        return Levels(first, second, names)

    def meaning(self) -> Meaning:
        """Return what the number says, and what it does not.

        Returns
        -------
        Meaning
            Sentences, by the kind of the bound and by whether anything was refuted.
        """
        return meaning_of(self.kind, self.terms, refuted=self.refutes, withheld=self.is_withheld)

    @abstractmethod
    def metrics(self) -> tuple[Metric, ...]:
        """Return the key numbers, each with a note."""

    def _beside(self) -> tuple[Metric, ...]:
        """Return what is proved and what is accounted as a key number, if an accountant spoke."""
        one = self.checked
        if one is None or one.proved is None:
            return ()
        compares = COMPARED[one.compares or "add_remove"]
        note = f"{one.source or 'stated'}; {compares} one {self.options.get('unit', 'example')}"
        return (Metric(f"ε proved, accounted at δ = {one.delta:g}", one.interval, note),)

    def _common_metrics(self, auc: str) -> tuple[Metric, ...]:
        ranking = self._ranking
        members = f"{ranking.members:,} members, {ranking.m - ranking.members:,} not"
        return (
            Metric("AUC", f"{ranking.auc:.3f}", auc),
            Metric(self._units.capitalize(), f"{ranking.m:,}", members),
            Metric("Confidence", percent(self.confidence), f"over {self._chance}"),
        )

    @abstractmethod
    def figures(self) -> tuple[Figure, ...]:
        """Return the figures, none of them drawn yet."""

    def sections(self) -> tuple[Section, ...]:
        """Return the grounds: why the bound holds, and what it assumes.

        Returns
        -------
        tuple of Section
            One for each bound that stands on grounds of its own.
        """
        return (self.grounds("Why it holds"),)

    def grounds(self, title: str, *before: str, figures: tuple[Figure, ...] = ()) -> Section:
        """Return why this bound holds, and what it assumes.

        Parameters
        ----------
        title : str
            Of the section.
        *before : str
            Paragraphs above.
        figures : tuple of Figure
            Figures below.

        Returns
        -------
        Section
            The grounds.
        """
        because = (f"The bound is 0 because {self.reason}.",) if self.reason else ()
        return Section(title, (*before, self.theorem, *because), self.assumptions, figures)

    def epsilon(self, delta: float = 0.0) -> float:
        """Return the bound as an ε of (ε, δ)-differential privacy.

        Parameters
        ----------
        delta : float
            δ, at most that of the claim: what refutes (ε, δ) refutes (ε, δ') for every δ' < δ. A
            bound on pure DP refers to δ = 0 only.

        Returns
        -------
        float
            ε, in nats.

        Raises
        ------
        OptionError
            If `delta` is outside [0, 1).
        IncompatibleOptionsError
            If the claim says nothing about this δ.
        """
        check_delta(delta, self.claim)
        return self.bound

    def implied(self) -> Implied | None:
        """Return lower bounds on what people read: advantage, TPR at low FPR, posterior.

        Returns
        -------
        Implied or None
            At the confidence of the bound, all at once, and on the same assumptions; None if the
            number is no bound.

        Examples
        --------
        >>> import numpy as np, leakbound as lb
        >>> member = np.arange(300) % 2 == 0
        >>> result = lb.audit_one_run(member + np.arange(300) / 1e4, member)
        >>> round(result.implied().advantage, 2)
        0.97
        """
        if not KINDS[self.kind].proves:
            return None
        return implied_by(self._refuted_curve() if self.refutes else None)

    def _refuted_curve(self) -> TradeOff | None:
        """Return the least private curve that is refuted, failures of the claim left out."""
        return TradeOff.approx(self.bound)

    def scalars(self) -> dict[str, float]:
        """Return the result as a flat dict of numbers, for MLflow, Weights & Biases or a table.

        Returns
        -------
        dict of str to float
            Finite numbers by names of letters, digits and underscores; what does not exist, or is
            infinite, is left out. `refuted` is 1 or 0 for the guarantee that was checked, and left
            out if the audit was inconclusive about it.
        """
        ranking, implied = self._ranking, self.implied()
        found: dict[str, float | None] = {
            "epsilon": self.epsilon_bound,
            "epsilon_ceiling": self.epsilon_ceiling,
            "delta": self.claim.delta,
            "confidence": self.confidence,
            "proves": float(KINDS[self.kind].proves),
            "examples": ranking.m,
            "members": ranking.members,
            "guesses": ranking.guesses,
            "correct": ranking.correct,
            "auc": ranking.auc,
            "warnings": len(self.warnings),
            "contradicted_assumptions": len(self.contradicted()),
        }
        if implied is not None:
            found |= {f"implied_{name}": value for name, value in vars(implied).items()}
        if self.claim.parameter != "epsilon":
            found[self.claim.parameter] = self.bound
        if self.checked is not None:
            found["checked_value"] = self.checked.value
            found["refuted"] = {"refuted": 1.0, "not refuted": 0.0}.get(self.checked.verdict)
            found["proved_value"] = self.checked.proved
        return {
            re.sub(r"\W+", "_", name, flags=re.ASCII): float(value)
            for name, value in found.items()
            if value is not None and math.isfinite(value)
        }

    def plot(self, kind: str = "bound", ax: "Axes | None" = None) -> "Axes":
        """Draw one figure of the result.

        Parameters
        ----------
        kind : {"bound", "precision_recall", "roc", "histogram"}
            Which figure; "true_positives" too for PANORAMIA, and for Zero-Run those of its own.
        ax : matplotlib.axes.Axes, optional
            Where to draw; new axes if None.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.

        Raises
        ------
        OptionError
            If there is no such figure.
        MissingExtraError
            If matplotlib is not installed.
        """
        drawings = {one.name: one.draw for one in self.figures()}
        if kind not in drawings:
            message = f"kind must be one of {', '.join(drawings)}, got {kind!r}"
            raise OptionError(message)
        return drawings[kind](ax)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str = "Privacy audit",
        model: str = "",
        auditor: str = "",
        date: str = "",
        signal: str = "",
        claim: float | None = None,
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
        claim : float, optional
            A claimed ε, at the bound's δ, that the page says the verdict on.
        notes : str
            A paragraph at the end of the page.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        OptionError, OptionTypeError
            If `claim` is negative or no number.
        OSError
            If the file cannot be written.
        """
        given = {"model": model, "auditor": auditor, "date": date, "signal": signal}
        marked = self._marked if claim is None else claim
        write(path, self, title=title, epsilon=marked, about=named(**given), notes=notes)

    @property
    def design(self) -> str:
        """How membership was assigned."""
        return DESIGNS[str(self.options.get("design", "coins"))]

    def __str__(self) -> str:
        """Return the paragraph of the page: the verdict and the evidence."""
        return self.summary().text

    @property
    def _marked(self) -> float | None:
        """The accountant's ε, if it is at the δ of the bar from 0 to the ceiling."""
        one = self.checked
        if one is None or one.proved is None:
            return None
        return one.value if one.delta == (DELTA if self.terms.at else self.claim.delta) else None

    def verify(
        self,
        scores: ArrayInput | Mapping[str, ArrayInput],
        member: ArrayInput | HasMember,
        *,
        options: Mapping[str, Any] | None = None,
        **inputs: Any,
    ) -> "Verification":
        """Audit again, from the result's own options, and compare bit for bit.

        Parameters
        ----------
        scores : array-like or mapping
            What was audited; for PANORAMIA a mapping with `baseline_scores` and `attack_scores`.
        member : array-like of shape (m,), or InclusionPlan
            Membership.
        options : mapping, optional
            Options of the audit that the result does not tell, by their names.
        **inputs : array-like
            Other data of the audit by their names, such as `propensity`, `features` or `prior`.

        Returns
        -------
        Verification
            Whether the result comes out again; `why` says where it does not.

        Examples
        --------
        >>> import numpy as np, leakbound as lb
        >>> member = np.arange(300) % 2 == 0
        >>> scores = member + np.arange(300) / 1e4
        >>> result = lb.audit_one_run(scores, member)
        >>> result.verify(scores, member).valid, result.verify(-scores, member).valid
        (True, False)
        """
        data = {"member": member, **inputs}
        named = isinstance(scores, Mapping) and set(scores) == {"baseline_scores", "attack_scores"}
        data |= dict(scores) if named and isinstance(scores, Mapping) else {"scores": scores}
        return self._verifier.verify_result(self, data, options or {})

    def bundle(
        self,
        folder: str | os.PathLike[str],
        *,
        scores: ArrayInput | Mapping[str, ArrayInput],
        plan: ArrayInput | HasMember | None = None,
        protocol: Mapping[str, JsonValue] | None = None,
        opening: object | None = None,
        accountant: Mapping[str, JsonValue] | None = None,
        model: str | None = None,
        vouchers: Mapping[str, str] | None = None,
        options: Mapping[str, Any] | None = None,
        **inputs: Any,
    ) -> None:
        """Write all that it takes to recompute this result to a folder, whole or not at all.

        It is audited again first, so that what is written is what `leakbound verify` accepts.

        Parameters
        ----------
        folder : str or os.PathLike
            A new or empty folder, or a bundle, which is replaced.
        scores : array-like or mapping
            What was audited; for PANORAMIA a mapping with `baseline_scores` and `attack_scores`. A
            protocol names its attacks: audit and give one as ``{name: scores}``.
        plan : InclusionPlan or array-like of shape (m,)
            Membership.
        protocol : mapping, optional
            What was to be done by `audit_one_run`, as `leakbound.planning.read_protocol` reads it.
        opening : leakbound.planning.Opening, optional
            In place of plan and protocol: both, and what opens the commitment to them.
        accountant : mapping, optional
            What a privacy accountant was told, such as noise multiplier, sampling rate and steps.
        model : str, optional
            SHA-256 of the audited model, 64 hexadecimal digits.
        vouchers : mapping of str to str, optional
            Who vouches for an assumption, by its name; by default who its status says.
        options : mapping, optional
            Options of the audit that the result does not tell, by their names.
        **inputs : array-like
            Other data of the audit by their names, such as `propensity`, `features` or `prior`.

        Raises
        ------
        BundleError
            If these data and options do not give the result again, cannot be stored, or are not
            what the protocol says.
        OptionError, OptionTypeError, IncompatibleOptionsError
            If the folder is something else than a bundle, or an argument is not what it should be.
        MissingExtraError
            If matplotlib is not installed.
        OSError
            If a file cannot be written; an older bundle is then left as it was.
        """
        self._verifier.write_bundle(
            folder,
            self,
            scores=scores,
            plan=plan,
            protocol=protocol,
            opening=opening,
            accountant=accountant,
            model=model,
            vouchers=vouchers,
            options=options,
            inputs=inputs,
        )

    @abstractmethod
    def _rows(self) -> dict[str, str]:
        """Return what the HTML table shows."""

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in self._rows().items()
        )
        notes = "".join(f"<li>{html.escape(text)}</li>" for text in self.warnings)
        return f"<table>{rows}</table>" + (f"<ul>{notes}</ul>" if notes else "")


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Parameters
    ----------
    name : str
        What was looked at.
    passed : bool or None
        Whether it is as it should be; None if there was nothing to look at.
    words : str
        What was found.
    """

    name: str
    passed: bool | None
    words: str


@dataclass(frozen=True)
class Verification:
    """The checks of a result or a bundle, in order; the first that fails is the last.

    Parameters
    ----------
    checks : tuple of Check
        What was looked at, at least one.
    """

    checks: tuple[Check, ...]

    @property
    def valid(self) -> bool:
        """Whether no check failed."""
        return all(check.passed is not False for check in self.checks)

    @property
    def why(self) -> str:
        """Why it is invalid; empty if it is valid."""
        failed = (f"{one.name}: {one.words}" for one in self.checks if one.passed is False)
        return next(failed, "")

    def __str__(self) -> str:
        """Return the verdict in a line."""
        return "VALID" if self.valid else f"INVALID: {self.why}"
