"""What all results offer; the public names are those of `leakbound.results`.

A result is a frozen record of numbers. What is said of it is made by `describe`, a function for
each type of result, in a module of its own that is read when something is first said: it stands on
the types, which stand on this file.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast

from leakbound._base.checks import shown
from leakbound._base.records import Record
from leakbound._base.types import Verdict
from leakbound.errors import OptionError
from leakbound.report import write
from leakbound.report.parts import Checked

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leakbound._base.types import Kind
    from leakbound.claims import Claim
    from leakbound.report.description import Description
    from leakbound.report.parts import Assumption, Provenance


if TYPE_CHECKING:

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


class Result(Record, _Numbers):
    """What every result offers, whatever was audited: numbers, and one protocol."""

    _words: ClassVar[str]
    """The module whose `describe` makes the description of this type of result."""

    if TYPE_CHECKING:
        warnings: tuple[str, ...]
        options: dict[str, Any]
        checked: Checked | None
        check: Callable[..., Verdict]

    @property
    def verdict(self) -> str:
        """The verdict in a few words: "leaks", "nothing refuted", "estimate", "exploratory"."""
        return self.summary().verdict

    def summary(self) -> "Description":
        """Return all that is said of the result; its `str` is a paragraph."""
        return cast("Description", import_module(self._words).describe(self))

    def with_check(self, **claimed: Any) -> Self:
        """Return this result with a claimed guarantee put to the test: JSON and pages tell of it.

        Parameters
        ----------
        **claimed : object
            As for `check`; `checked` has the guarantee and the verdict.

        Examples
        --------
        >>> import numpy as np, leakbound as lb
        >>> member = np.arange(300) % 2 == 0
        >>> result = lb.audit(member + np.arange(300) / 1e4, lb.Coins(member))
        >>> result.with_check(epsilon=1).to_dict()["checked"]["verdict"]
        'refuted'
        """
        found = self._checked(self.check(**claimed), **claimed)
        return cast("Self", replace(cast("Any", self), checked=found))

    def _checked(
        self,
        verdict: Verdict,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        parameter: float | None = None,
        relation: Any = None,
        c: float | None = None,
    ) -> Checked:
        """Return the record of a guarantee that was checked."""
        if parameter is not None:
            name = self.claim.parameter
            return Checked(name, float(parameter), None, verdict, compares=relation)
        value, at = float(cast("float", epsilon)), float(delta or 0.0)
        joint = None if c is None else float(c)
        return Checked("epsilon", value, at, verdict, joint, compares=relation)

    def _claimed(self, one: Checked) -> dict[str, Any]:
        """Return the guarantee of a record as arguments of `check`."""
        if one.delta is None:
            return {"parameter": one.value, "relation": one.compares}
        return {"epsilon": one.value, "delta": one.delta, "relation": one.compares}

    def _again(self, one: Checked) -> Checked:
        """Return the record of the same guarantee as the bound has it."""
        claimed = self._claimed(one)
        return self._checked(self.check(**claimed), **claimed)

    def _flaw_of_check(self) -> str:
        """Return how a verdict that was read contradicts the bound; empty if it does not."""
        one = self.checked
        if one is None:
            return ""
        again = self._again(one)
        if again == one:
            return ""
        return f"checked is {shown(one.verdict)} on {one.parameter}, and the bound gives {again}"

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
        drawings = {one.name: one.draw for one in said.figures}
        if said.overview is not None:
            drawings[said.overview.figure.name] = said.overview.figure.draw
        chosen = kind or next(iter(drawings))
        if chosen not in drawings:
            message = f"kind must be one of {', '.join(drawings)}, got {kind!r}"
            raise OptionError(message)
        return drawings[chosen](ax)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str = "",
        summary: str = "",
        about: Mapping[str, str] | None = None,
        notes: str = "",
    ) -> None:
        """Write a self-contained HTML report, all of it or nothing.

        Parameters
        ----------
        path : str or os.PathLike
            File to write.
        title, summary : str
            Title of the page, and a paragraph below it.
        about : mapping of str to str, optional
            Names and values below the title, such as model, auditor and date.
        notes : str
            A paragraph at the end of the page.
        """
        write(path, self, title=title, summary=summary, about=about, notes=notes)

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
    def kind(self) -> "Kind":
        """What the number is."""
        return self._lead.kind

    @property
    def claim(self) -> "Claim":
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
    def assumptions(self) -> "tuple[Assumption, ...]":
        """What must be true for the number."""
        return self._lead.assumptions

    @property
    def provenance(self) -> "Provenance":
        """Versions, seed and digests of the inputs."""
        return self._lead.provenance
