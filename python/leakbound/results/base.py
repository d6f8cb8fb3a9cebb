"""What all results offer; the public names are those of `leakbound.results`.

A result is a frozen record of numbers. Parts that cost time (ceiling, curve, ROC, histogram,
provenance) are computed when first asked for, from the arrays that were audited, and kept. What is
said of a result is made by `describe`, a function for each type of result, in a module of its own
that is read when something is first said: it stands on the types, which stand on this file.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast

from leakbound._base.records import Record
from leakbound._base.types import Verdict
from leakbound._base.validation import shown
from leakbound.errors import OptionError
from leakbound.report import write
from leakbound.report.parts import Checked
from leakbound.results.checks import direction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leakbound._base.types import Kind
    from leakbound.claims import Claim
    from leakbound.report.description import Description
    from leakbound.report.parts import Assumption, Provenance


if TYPE_CHECKING:

    class _Numbers(Protocol):
        """Fields of most types of results, and properties of some."""

        @property
        def kind(self) -> Kind:
            """What the number is."""

        @property
        def claim(self) -> Claim:
            """The guarantees whose parameter is bounded."""

        @property
        def bound(self) -> float:
            """The number."""

        @property
        def ceiling(self) -> float:
            """What a perfect attack would have reached."""

        @property
        def confidence(self) -> float:
            """Probability that the bound is not above the truth."""

        @property
        def assumptions(self) -> tuple[Assumption, ...]:
            """What must be true for it."""

        @property
        def provenance(self) -> Provenance:
            """Versions, seed and digests of the inputs."""
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
            As for `check`.

        Returns
        -------
        Self
            The same result; `checked` has the guarantee and the verdict.

        Examples
        --------
        >>> import numpy as np, leakbound as lb
        >>> member = np.arange(300) % 2 == 0
        >>> result = lb.audit_one_run(member + np.arange(300) / 1e4, member)
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
            name, sign = self.claim.parameter, direction(self.claim).claimed
            return Checked(name, sign, float(parameter), None, verdict, compares=relation)
        value, at = float(cast("float", epsilon)), float(delta or 0.0)
        joint = None if c is None else float(c)
        return Checked("epsilon", "<=", value, at, verdict, joint, compares=relation)

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

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.
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

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        OSError
            If the file cannot be written.
        """
        write(path, self, title=title, summary=summary, about=about, notes=notes)

    def __str__(self) -> str:
        """Return the paragraph of the page: the verdict and the evidence."""
        return str(self.summary())

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()
