"""What an audit of synthetic data returns, and what it says about three questions."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from leakbound._base.formatting import number, share
from leakbound._base.imports import provided
from leakbound._base.records import IF_ANY
from leakbound._base.types import PathInput, Verdict
from leakbound.attacks.synthetic import Similarity
from leakbound.results.base import bundled
from leakbound.results.one_run import AuditResult, Exposed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DEPENDS = "depend on whose data was used"
"""What is proved of so many hits, at least."""
MEANING = (
    "with the data of the other person of the pair instead, this table would have been less "
    "likely, for at least one way to choose the members of the other pairs"
)
"""What it means for a hit to depend on whose data was used."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Risk:
    """One of the three questions: how often an attack succeeds, and what is proved of its hits.

    Numbers that rest on the random split are None where the records contradict it.
    """

    rate: float
    """Share of members on whom the attack succeeds; of singling out, among the members."""
    control_rate: float
    """Share of held-out people on whom it does; of singling out, each beside the members."""
    control_rate_upper: float | None
    """Exact upper limit of this share for people of the same population, drawn independently.

    None if the split was stratified: people are then drawn within strata.
    """
    certified: int | None
    """So many hits at least depend on whose data was used.

    A hit is a right guess about a pair of a member and another person, of whom the attack succeeds
    on the member alone, or better. It depends on whose data was used if, for at least one possible
    choice in the other pairs, the table makes this guess likelier right than not. Successes are
    here relative to all audited people, members or not.
    """
    pairs: int
    """Pairs of a member and another person that were compared."""
    excess: float | None
    """`certified` as a share of the pairs."""
    epsilon: float | None
    """What the attack proves as a bound on ε, at its share of the error of all attacks."""
    p: float | None
    """Upper bound on the probability of as much evidence if no hit depends on whose data was used.

    It is of this risk alone. `certified` is above 0 exactly if it is at most the risk's share of
    the error.
    """
    surely_seen_from: int
    """The number of exposed people from which on a perfect attack is sure to certify a hit.

    With fewer, none may be certified: with x exposed people, the probability that one is certified
    is at most 2^x times this risk's share of the error probability.
    """
    ceiling: int
    """What would have been certified had an attack been right about all pairs."""
    attack: str
    """The attack, by its name in `leakbound.attacks.synthetic.ATTACKS`."""
    exposed: Exposed | None
    """Members whose hits are listed, at a false discovery rate of 10 % for this list alone.

    `rows` are rows of the members' table, `ids` names of groups if whole groups were split. A
    listed hit is false if the table, given the choices in all other pairs as they were, makes the
    guess no likelier right than not. Lists of several risks must not be merged.
    """

    def _flaw(self) -> str:
        shares = [self.rate, self.control_rate]
        if self.control_rate_upper is not None:
            shares.append(self.control_rate_upper)
        are_possible = all(0 <= one <= 1 for one in shares) and 0 <= self.ceiling < self.pairs
        are_possible = (
            are_possible and self.control_rate <= shares[-1] and self.surely_seen_from >= 1
        )
        numbers_withheld_together = (
            self.certified,
            self.excess,
            self.epsilon,
            self.p,
            self.exposed,
        )
        if are_possible and all(one is None for one in numbers_withheld_together):
            return ""
        if self.certified is None or self.excess is None or self.p is None or self.exposed is None:
            return "a risk has some of the numbers that are withheld together"
        are_possible = are_possible and 0 <= self.certified <= self.ceiling and 0 < self.p <= 1
        if are_possible and self.excess == self.certified / self.pairs:
            return ""
        return "a risk has numbers that contradict each other"

    def __str__(self) -> str:
        """Return the line of this risk, without its name."""
        limit_of_control_rate = ""
        if self.control_rate_upper is not None:
            limit_of_control_rate = f" (at most {share(self.control_rate_upper, up=True)})"
        rates_in_words = (
            f"{share(self.rate)} of members, {share(self.control_rate)} of held-out "
            f"people{limit_of_control_rate}"
        )
        if self.certified is None:
            return (
                f"{rates_in_words}; what is proved is withheld: the records contradict a random "
                "split"
            )
        certified_in_words = f"none of {self.pairs:,} is certified"
        if self.certified:
            certified_in_words = (
                f"at least {self.certified:,} hits in {self.pairs:,} pairs {DEPENDS}"
            )
        sure_from_in_words = f"once {self.surely_seen_from:,} people are exposed"
        epsilon_in_words = ""
        if self.epsilon:
            epsilon_in_words = f"; ε ≥ {number(self.epsilon)}"
        return (
            f"{rates_in_words}; {certified_in_words}{epsilon_in_words}; a perfect attack is sure "
            f"to certify a hit {sure_from_in_words}"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Risks:
    """The three questions that European regulators ask of a table that is called anonymous.

    A risk is None if its attack was not among those of the audit.
    """

    singling_out: Risk | None
    """Can a person be isolated: does a synthetic record fit one person, and nobody else?"""
    linkability: Risk | None
    """Can two records of one person be linked through the table?"""
    inference: Risk | None
    """Can a secret be deduced from everything else about a person?"""

    def __iter__(self) -> Iterator[tuple[str, Risk]]:
        """Yield the risks that were looked at, each with its name."""
        for name in ("singling_out", "linkability", "inference"):
            risk = getattr(self, name)
            if risk is not None:
                yield name, risk

    def check(self, most_certified: int) -> Verdict:
        """Return whether more hits than so many are certified, of any risk.

        "inconclusive" if they are withheld, or no attack could have certified more.
        """
        risks = [risk for _, risk in self]
        if any(risk.certified is not None and risk.certified > most_certified for risk in risks):
            return "refuted"
        if all(risk.certified is not None and risk.ceiling > most_certified for risk in risks):
            return "not refuted"
        return "inconclusive"

    def answer(self, most_certified: int) -> str:
        """Return what is said of a claim that no more hits than so many are certified."""
        claim = f"that at most {most_certified:,} hits of each risk are certified"
        certified_by_risk = {name.replace("_", " "): risk.certified for name, risk in self}
        exceeding_risks = [
            f"{name} {count:,}"
            for name, count in certified_by_risk.items()
            if count is not None and count > most_certified
        ]
        if exceeding_risks:
            return f"The claim {claim} is refuted: {', '.join(exceeding_risks)}."
        if self.check(most_certified) == "not refuted":
            return f"The claim {claim} is not refuted, although this audit could have done so."
        if any(count is None for count in certified_by_risk.values()):
            return f"Inconclusive: {claim} cannot be said, because counts are withheld."
        return f"Inconclusive: no attack on so few pairs could have refuted {claim}."

    def __str__(self) -> str:
        """Return a line for each risk, and what the short words mean."""
        lines = [f"{name.replace('_', ' ')}: {risk}" for name, risk in self]
        if any(risk.certified for _, risk in self):
            lines.append(f"“{DEPENDS}”: {MEANING}")
        return "\n".join(lines)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SyntheticResult(AuditResult):
    """What an audit of synthetic data proves of the generator, on replacing one example."""

    _words = "leakbound.results.descriptions.synthetic"

    similarity: Similarity
    """The usual similarity metrics; the bound does not use them."""
    risks: Risks | None = field(default=None, metadata=IF_ANY)
    """Singling out, linkability and inference; None if none of these attacks was made."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "wording", replace(self.wording, subject="generator"))

    @property
    def attack(self) -> str:
        """The name of the attack that the bound comes from."""
        return str(self.options["attack"])

    def bundle(self, folder: PathInput, **given: object) -> None:
        """Write everything needed to recompute this result to a folder, completely or not at all.

        The bundle holds all records: where they are personal data, so is the bundle.

        Parameters
        ----------
        folder : str or os.PathLike
            A new or empty folder, or a bundle, which is replaced.
        **given : object
            `members`, `nonmembers`, `synthetic` and what else `audit_synthetic` was given, as for
            `leakbound.evidence.write_synthetic_bundle`.
        """
        bundled(provided("write_synthetic_bundle"), folder, self, given)

    def plot(self, kind: str = "", ax: "Axes | None" = None) -> "Axes":
        """Draw one figure of the result.

        Parameters
        ----------
        kind : str
            As for other results, and "risks". The first that all results have by default.
        ax : matplotlib.axes.Axes, optional
            Where to draw; new axes if None.
        """
        return super().plot(kind or self.summary().figures[0].name, ax)
