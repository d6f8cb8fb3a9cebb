"""What an audit of synthetic data returns; the public name is that of the package."""

from dataclasses import dataclass, fields
from typing import ClassVar, Self

from leakbound.attacks.synthetic import Similarity
from leakbound.results.one_run import AuditResult


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SyntheticResult(AuditResult):
    """What an audit of synthetic data proves of the generator: an `AuditResult` on replacing one.

    Examples
    --------
    >>> import numpy as np, leakbound as lb
    >>> rng = np.random.default_rng(0)
    >>> records = rng.normal(size=(300, 3))
    >>> copies = records[:150] + rng.normal(0, 0.02, (150, 3))
    >>> result = lb.audit_synthetic(records[:150], records[150:], copies, attacks="attribution")
    >>> lb.SyntheticResult.from_json(result.to_json()) == result
    True
    """

    _words: ClassVar[str] = "leakbound.results.descriptions.synthetic"

    similarity: Similarity
    """The usual similarity metrics, beside the bound and no part of it."""

    @classmethod
    def of(cls, result: AuditResult, similarity: Similarity) -> Self:
        """Put similarity metrics beside the result of an audit of the scores of records.

        Parameters
        ----------
        result : AuditResult
            The audit.
        similarity : Similarity
            The metrics.
        """
        held = {one.name: getattr(result, one.name) for one in fields(AuditResult)}
        return cls(**held, similarity=similarity)

    @property
    def attack(self) -> str:
        """The name of the attack that the bound comes from."""
        return str(self.options["attack"])
