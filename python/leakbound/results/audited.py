"""What results of audits of one ranking offer besides: ε, what it implies, and recomputation."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from leakbound._base.types import ArrayInput, HasMember
from leakbound.claims.tradeoff import TradeOff
from leakbound.report.description import KINDS
from leakbound.results.base import Result
from leakbound.results.checks import check_delta
from leakbound.results.implied import Implied, implied_by


class Evidence(Protocol):
    """What `leakbound.evidence` does for results: it stands above them."""

    def verify_result(
        self, result: "Result", data: Mapping[str, Any], options: Mapping[str, Any], /
    ) -> "Verification":
        """Audit again, and compare."""

    @property
    def write_bundle(self) -> Callable[..., None]:
        """Write a bundle."""


class Audit(Result):
    """The result of an audit that can be run again."""

    @property
    def refutes(self) -> bool:
        """Whether some guarantee is refuted: the number is a bound, and more than nothing."""
        return KINDS[self.kind].proves and self.bound > 0

    def epsilon(self, delta: float = 0.0) -> float:
        """Return the bound as an ε of (ε, δ)-differential privacy, in nats.

        Parameters
        ----------
        delta : float
            δ, at most that of the claim: what refutes (ε, δ) refutes (ε, δ') for every δ' < δ. A
            bound on pure DP refers to δ = 0 only. For a family of trade-off functions any in
            [0, 1): the rejected curve is converted, which holds within the family.
        """
        check_delta(delta, self.claim)
        return self.bound

    def implied(self) -> Implied | None:
        """Return lower bounds on what people read: advantage, TPR at low FPR, posterior.

        They hold at the confidence of the bound, all at once, and on the same assumptions. None if
        the number is no bound, or one on replacing an example, which is about telling two examples
        apart and not members from others.

        Examples
        --------
        >>> import numpy as np, leakbound as lb
        >>> member = np.arange(300) % 2 == 0
        >>> result = lb.audit(member + np.arange(300) / 1e4, lb.Coins(member))
        >>> round(result.implied().advantage, 2)
        0.97
        """
        if not KINDS[self.kind].proves:
            return None
        return implied_by(self._refuted_curve() if self.refutes else None)

    def _refuted_curve(self) -> TradeOff:
        """Return the least private curve that is refuted, failures of the claim left out."""
        return TradeOff.approx(self.bound)

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

        Examples
        --------
        >>> import numpy as np, leakbound as lb
        >>> member = np.arange(300) % 2 == 0
        >>> scores = member + np.arange(300) / 1e4
        >>> result = lb.audit(scores, lb.Coins(member))
        >>> result.verify(scores, member).valid, result.verify(-scores, member).valid
        (True, False)
        """
        data = {"member": member, **inputs}
        named = isinstance(scores, Mapping) and set(scores) == {"baseline_scores", "attack_scores"}
        data |= dict(scores) if named and isinstance(scores, Mapping) else {"scores": scores}
        return _evidence().verify_result(self, data, options or {})

    def bundle(self, folder: str | os.PathLike[str], **given: Any) -> None:
        """Write all that it takes to recompute this result to a folder, whole or not at all.

        It is audited again first, so that what is written is what `leakbound verify` accepts.

        Parameters
        ----------
        folder : str or os.PathLike
            A new or empty folder, or a bundle, which is replaced.
        **given : object
            `scores`, `plan` and the like, as for `leakbound.evidence.write_bundle`; other names are
            data of the audit, as for `verify`.
        """
        _evidence().write_bundle(folder, self, **given)


def _evidence() -> Evidence:
    """Return what audits again, and so stands above results: the package hands it out by name."""
    return cast("Evidence", sys.modules["leakbound"].evidence)


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    """What was looked at."""
    passed: bool | None
    """Whether it is as it should be; None if there was nothing to look at."""
    words: str
    """What was found."""


@dataclass(frozen=True)
class Verification:
    """The checks of a result or a bundle, in order; the first that fails is the last."""

    checks: tuple[Check, ...]
    """What was looked at, at least one."""

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
