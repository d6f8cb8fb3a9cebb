"""What all results offer; the public names are those of `leakbound.results`.

A result is a frozen record of numbers. Its words come from `describe`, a function for each type of
result. That function is in a separate module, which is imported when words are first needed.
"""

import datetime as dt
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from leakbound._base.checks import real, shown
from leakbound._base.files import write_text
from leakbound._base.imports import provided
from leakbound._base.messages import Message, Option
from leakbound._base.records import Record
from leakbound._base.types import Kind, Named, PathInput, Relation, Strings, Verdict
from leakbound.claims import FAMILIES, ApproxDP, Claim
from leakbound.claims.families import check_epsilon_at
from leakbound.claims.tradeoff import TradeOff
from leakbound.errors import OptionError
from leakbound.report import render
from leakbound.report.description import KINDS, Description
from leakbound.report.parts import Assumption, Checked, Provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    class _Numbers(Protocol):  # fields of most types of results, and properties of some
        @property
        def kind(self) -> Kind: ...
        @property
        def claim(self) -> Claim: ...
        @property
        def bound(self) -> float: ...
        @property
        def ceiling(self) -> float: ...
        @property
        def confidence(self) -> float: ...
        @property
        def assumptions(self) -> tuple[Assumption, ...]: ...
        @property
        def provenance(self) -> Provenance: ...
else:
    _Numbers = object


# False positive rates at which true ones are read, and points of the grid of the best advantage
_RATES = (0.001, 0.01)
_POINTS = 4001
# More than the error of a trade-off function, which is taken off
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Implied:
    """Lower bounds that follow from a bound, at its confidence and all at once.

    Each is what the tightest guarantee *of the family* that was audited, which is not refuted,
    still allows an attack on one example: no guarantee of this family promises less. An attack
    reaches it if training's own trade-off function is a curve of the family (for (ε, δ), that of
    randomised response). Otherwise training may be better than its tightest guarantee: ε-DP can
    fail on rare outputs alone, and its advantage be small.
    """

    advantage: float
    """Largest difference of true and false positive rate, in [0, 1]."""
    tpr_at_fpr_0_001: float
    tpr_at_fpr_0_01: float
    """True positive rate at a false positive rate of 0.1 % and of 1 %."""
    posterior: float
    """Probability that an example is a member once an attack flags it at a false positive rate of
    0.1 %, from a prior of one half; in [1/2, 1]."""


def implied_by(curve: TradeOff | None) -> Implied:
    """Return what a refuted curve implies, rounded down; guessing where none is refuted."""
    low, high = _RATES
    if curve is None:
        return Implied(advantage=0.0, tpr_at_fpr_0_001=low, tpr_at_fpr_0_01=high, posterior=0.5)
    rates = np.linspace(0.0, 1.0, _POINTS)
    for _ in range(3):  # concave: the best point of a grid is next to the best of all
        gain = 1 - np.asarray(curve.f(rates)) - rates
        best = int(np.argmax(gain))
        around = rates[max(best - 1, 0) : best + 2]
        rates = np.linspace(around[0], around[-1], _POINTS)
    # the example is flagged at one of the rates; before that it is a member with chance ½
    at_low, at_high = (max(rate, 1 - float(curve.f(rate)) - _ROUNDING) for rate in _RATES)
    return Implied(
        advantage=max(0.0, float(gain[best]) - _ROUNDING),
        tpr_at_fpr_0_001=at_low,
        tpr_at_fpr_0_01=at_high,
        posterior=at_low / (at_low + low),
    )


class Result(Record, _Numbers):
    """What every result offers, whatever was audited: numbers, and one protocol."""

    _words: ClassVar[str]
    """The module whose `describe` makes the description of this type of result."""

    if TYPE_CHECKING:
        warnings: Strings
        options: Named
        checked: Checked | None
        check: Callable[..., Verdict]

    @property
    def verdict(self) -> str:
        """The verdict in a few words: "leaks", "nothing refuted", "estimate", "exploratory".

        Of trials of a mechanism with a claim that was checked, it is the verdict on the claim.
        """
        return self.summary().verdict

    def summary(self) -> Description:
        """Return the description of the result; its `str` is a paragraph."""
        description: Description = import_module(self._words).describe(self)
        return description

    def with_check(self, **claimed: Any) -> Self:
        """Return this result with a claimed guarantee checked, for JSON and pages.

        Parameters
        ----------
        **claimed : object
            As for `check`; `checked` has the guarantee and the verdict.
        """
        record: Any = self
        checked: Self = replace(record, checked=self._checked(**claimed))
        return checked

    def _checked(self, **claimed: Any) -> Checked:
        """Return the record of a guarantee, put to the test."""
        verdict = self.check(**claimed)
        compares = claimed.get("relation")
        if (parameter := claimed.get("parameter")) is not None:
            name = self.claim.parameter
            return Checked(
                parameter=name,
                value=float(parameter),
                delta=None,
                verdict=verdict,
                compares=compares,
            )
        value = float(claimed["epsilon"])
        delta = claimed.get("delta")
        at = 0.0
        if delta is not None:
            at = float(delta)
        c = claimed.get("c")
        joint = None
        if c is not None:
            joint = float(c)
        return Checked(
            parameter="epsilon", value=value, delta=at, verdict=verdict, c=joint, compares=compares
        )

    def _flaw_of_check(self) -> str:
        """Return how a verdict that was read contradicts the bound; empty if it does not."""
        one = self.checked
        if one is None:
            return ""
        try:
            signature(self.check).bind(**one.claim)
        except TypeError as error:
            return f"checked is not a claim about {type(self).__name__}: {error}"
        again = self._checked(**one.claim)
        if one.proved is not None and one.delta is not None and isinstance(self, Audit):
            again = replace(again, proved=self.epsilon(one.delta), source=one.source)
        if again == one:
            return ""
        return f"checked is {shown(one.verdict)} on {one.parameter}, and the bound gives {again}"

    def _flaw_unless(self, sound: bool) -> str:  # noqa: FBT001 (the only argument)
        """Return why what was read is not a valid result; empty if it is."""
        return flaw_of(self, sound=sound, confidence=self.confidence) or self._flaw_of_check()

    def plot(self, kind: str = "", ax: "Axes | None" = None) -> "Axes":
        """Draw one figure of the result.

        Parameters
        ----------
        kind : str
            Which figure of its page: of most results "bound", "precision_recall", "roc" and
            "histogram". The first by default.
        ax : matplotlib.axes.Axes, optional
            Where to draw; new axes if None.
        """
        said = self.summary()
        opening = None
        if said.overview is not None:
            opening = said.overview.figure
        drawings = {one.name: one.draw for one in (opening, *said.figures) if one is not None}
        chosen = kind or next(iter(drawings))
        if chosen not in drawings:
            raise OptionError(f"kind must be one of {', '.join(drawings)}, got {kind!r}")
        return drawings[chosen](ax)

    def report(
        self,
        path: PathInput,
        *,
        title: str = "",
        model: str = "",
        auditor: str = "",
        date: dt.date | None = None,
        about: Mapping[str, str] | None = None,
    ) -> None:
        """Write a self-contained HTML report. The file is written completely or not at all.

        Parameters
        ----------
        path : str or os.PathLike
            File to write.
        title, model, auditor : str
            The title of the page, the model that was audited, and who audited it.
        date : datetime.date, optional
            The date of the report; today by default.
        about : mapping of str to str, optional
            Other facts to list below the title, such as the training data.
        """
        if str(os.fspath(path)).lower().endswith(".pdf"):
            raise OptionError(
                "a report is a page of HTML: write report.html, and print it to PDF in a browser"
            )
        today = dt.date.today()
        missing = "not stated"
        facts = {"Model": model or missing, "Auditor": auditor or missing}
        facts |= {"Date": str(date or today), **(about or {})}
        write_text(path, render(self, title=title, about=facts))

    def __str__(self) -> str:
        """Return the paragraph of the page: the verdict and the evidence."""
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


class Composed(Result, ABC):
    """A result that is made of several: its numbers are those of one of them."""

    @property
    @abstractmethod
    def _lead(self) -> Result:
        """The result that the numbers are of."""

    @property
    def kind(self) -> Kind:
        """What the number is."""
        return self._lead.kind

    @property
    def claim(self) -> Claim:
        """The guarantees whose parameter is bounded."""
        return self._lead.claim

    @property
    def bound(self) -> float:
        """The number, in units of the claim."""
        return self._lead.bound

    @property
    def ceiling(self) -> float:
        """What a perfect attack would have reached."""
        return self._lead.ceiling

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What must be true for the number."""
        return self._lead.assumptions

    @property
    def provenance(self) -> Provenance:
        """Versions, seed and digests of the inputs."""
        return self._lead.provenance


class Audit(Result, ABC):
    """The result of an audit that can be run again."""

    @property
    @abstractmethod
    def relation(self) -> Relation:
        """What the bound compares: training with and without an example, or with another one."""

    @property
    def refutes(self) -> bool:
        """Whether some guarantee is refuted: the number is a lower bound above 0."""
        return KINDS[self.kind].proves and self.bound > 0

    def epsilon(self, delta: float = 0.0) -> float:
        """Return the bound as an ε of (ε, δ)-differential privacy, in nats.

        It is a method, since a family of guarantees has another ε at each δ: call it, as
        ``result.epsilon()``. It never returns infinity for want of a finite ε.

        Parameters
        ----------
        delta : float
            δ, at most that of the claim: what refutes (ε, δ) refutes (ε, δ') for every δ' < δ. A
            bound on pure DP refers to δ = 0 only. For a family of trade-off functions any in
            [0, 1) at which its curves have an ε, which those of Gaussian noise do not have at 0:
            the rejected curve is converted, which holds within the family.

        Raises
        ------
        OptionError
            If the bound says nothing about this δ, or its family has no finite ε there; always of
            zero-concentrated DP, where a bound on ρ implies no ε.
        """
        check_delta(delta, self.claim)
        return self.bound

    def implied(self) -> Implied | None:
        """Return lower bounds on what people read: advantage, TPR at low FPR, posterior.

        Each is a lower bound on what the tightest guarantee *of the family* allows, and not on what
        some attack reaches: that is the same only if training's own trade-off function is in the
        family. They hold at the confidence of the bound, all at once, and on the same assumptions.

        Returns
        -------
        Implied or None
            None if the number is no bound, or one on replacing an example, as of random splits,
            `Choices` and PANORAMIA: that is about telling two examples apart and not members from
            others. None too of zero-concentrated DP: a bound on ρ does not say which order is
            exceeded, so that it refutes no curve.
        """
        if not KINDS[self.kind].proves or self.relation == "replace":
            return None
        if not self.claim.has_epsilon:
            return None
        if self.refutes:
            return implied_by(self._refuted_curve())
        return implied_by(None)

    def _refuted_curve(self) -> TradeOff:
        """Return the least private curve that is refuted, failures of the claim left out."""
        return TradeOff.approx(self.bound)

    def bundle(self, folder: PathInput, **given: object) -> None:
        """Write everything needed to recompute this result to a folder, completely or not at all.

        The audit is repeated first, so that `leakbound verify` will accept the folder.

        Parameters
        ----------
        folder : str or os.PathLike
            A new or empty folder, or a bundle, which is replaced.
        **given : object
            `scores`, `plan` and the like, as for `leakbound.evidence.write_bundle`; other names are
            data of the audit.
        """
        bundled(provided("write_bundle"), folder, self, given)


def bundled(
    write: Callable[..., None], folder: PathInput, result: Result, given: Mapping[str, object]
) -> None:
    """Write a bundle, if it is given what the audit was given."""
    try:
        signature(write).bind(folder, result, **given)
    except TypeError as error:
        raise OptionError(
            f"bundle: {error}. Pass the data of the audit by name, as for "
            f"leakbound.evidence.{write.__name__}"
        ) from None
    write(folder, result, **given)


@dataclass(frozen=True)
class Check:
    """One check."""

    name: str
    """What was checked."""
    passed: bool | None
    """Whether it passed; None if there was nothing to check."""
    words: str
    """What was found."""


@dataclass(frozen=True)
class Verification:
    """The checks of a bundle, in order; the first that fails is the last."""

    checks: tuple[Check, ...]
    """The checks, at least one."""

    @property
    def valid(self) -> bool:
        """Whether no check failed."""
        return not self.why

    @property
    def why(self) -> str:
        """Why it is invalid; empty if it is valid."""
        failed = (f"{one.name}: {one.words}" for one in self.checks if one.passed is False)
        return next(failed, "")

    def __str__(self) -> str:
        """Return the verdict in a line."""
        if self.why:
            return f"INVALID: {self.why}"
        return "VALID"


def judged(
    kind: Kind, *, refuted: bool, refutable: Callable[[], bool], withheld: bool = False
) -> Verdict:
    """Return the verdict on a claim: what is refuted, what could have been."""
    if withheld or kind == "exploratory_lower_bound":
        return "inconclusive"
    if refuted:
        return "refuted"
    if refutable():
        return "not refuted"
    return "inconclusive"


def check_delta(delta: float, claim: Claim) -> None:
    """Check that a bound on the claim refers to a δ, or that its family has an ε there."""
    if isinstance(claim, FAMILIES):
        check_epsilon_at(claim, delta)
        return
    if real(delta, name="delta", least=0, below=1) > claim.delta:
        limit = "only delta = 0"
        if claim.delta:
            limit = f"at most {claim.delta:g}"
        message = (
            "this audit tested {claim.name} and says nothing about delta = {delta:g} ({limit}): "
            "to check a δ, audit with {with_delta}"
        )
        with_delta = Option("claim", ApproxDP(delta=float(f"{delta:g}")))
        said = {"claim": claim, "delta": delta, "limit": limit, "with_delta": with_delta}
        raise OptionError(Message(message, **said))


def flaw_of(part: object, *, sound: bool, confidence: float = 0.5) -> str:
    """Return why what was read is not a valid result; empty if it is."""
    if not 0 < confidence < 1:
        return f"confidence is {confidence:g}, outside (0, 1)"
    if sound:
        return ""
    return f"the parts of this {type(part).__name__} contradict each other"
