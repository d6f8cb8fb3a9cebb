"""What an audit of synthetic data returns; the public name is that of the package."""

from dataclasses import dataclass, fields
from typing import Self

from leakbound._base.formatting import share
from leakbound.attacks.synthetic import Similarity
from leakbound.report.contents import Meaning, Metric, Section
from leakbound.results.one_run import AuditResult

_MISSED = (
    "Similarity metrics compare distances of synthetic records. They are neither a bound nor a "
    "test: a generator can pass all of them and leak, and fail them and leak nothing that this "
    "audit could prove."
)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SyntheticResult(AuditResult):
    """What an audit of synthetic data proves of the generator: an `AuditResult` on replacing one.

    Parameters
    ----------
    similarity : Similarity
        The usual similarity metrics, beside the bound and no part of it.

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

    similarity: Similarity

    @classmethod
    def of(cls, result: AuditResult, similarity: Similarity) -> Self:
        """Put similarity metrics beside the result of an audit.

        Parameters
        ----------
        result : AuditResult
            Of the scores of records.
        similarity : Similarity
            The metrics.

        Returns
        -------
        SyntheticResult
            Both.
        """
        held = {one.name: getattr(result, one.name) for one in fields(AuditResult)}
        return cls(**held, similarity=similarity)

    @property
    def subject(self) -> str:
        """What is audited."""
        return "generator"

    @property
    def attack(self) -> str:
        """The name of the attack that the bound comes from."""
        return str(self.options["attack"])

    def metrics(self) -> tuple[Metric, ...]:
        """Return the key numbers, each with a note, similarity metrics last."""
        found = self.similarity
        compared = "of synthetic records; of non-members"
        return (
            *super().metrics(),
            Metric("Attack", self.attack.replace("_", " "), "the one that the bound comes from"),
            Metric(
                "Equal to a member",
                share(found.copies_of_members),
                f"{compared}: {share(found.copies_of_nonmembers)}",
            ),
            Metric(
                "Closest record is a member",
                share(found.closer_to_members),
                f"of synthetic records; {share(found.expected)} if nothing is copied",
            ),
            Metric(
                "Distance to members",
                f"{found.distance_to_members:.3f}",
                f"median (DCR); to non-members: {found.distance_to_nonmembers:.3f}",
            ),
            Metric(
                "Distance ratio to members",
                f"{found.ratio_to_members:.3f}",
                f"median (NNDR); to non-members: {found.ratio_to_nonmembers:.3f}",
            ),
            Metric("Marginals", f"{found.marginals:.3f}", "similarity; 1 is equal"),
            Metric("Correlations", f"{found.correlations:.3f}", "similarity; 1 is equal"),
        )

    def meaning(self) -> Meaning:
        """Return what the number says, and what it does not."""
        said = super().meaning()
        says = tuple(text.replace("trained this model", "made this table") for text in said.says)
        return Meaning(says, (*said.does_not_say, _MISSED), said.why_zero)

    def sections(self) -> tuple[Section, ...]:
        """Return the grounds: why the bound holds, and what it assumes."""
        attacks = self.options["attacks"]
        listed = ", ".join(
            f"{name.replace('_', ' ')} {self.rounded(float(bound))}"
            for name, bound in attacks.items()
        )
        several = "each at its share of the error probability" if len(attacks) > 1 else "alone"
        return (self.grounds("Why it holds", f"Attacks, {several}, and their bounds: {listed}."),)
