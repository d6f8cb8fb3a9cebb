"""What an audit of synthetic data returns; the public name is that of the package."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from leakbound._base.imports import provided
from leakbound._base.records import IF_ANY
from leakbound._base.types import PathInput
from leakbound.attacks.synthetic import Similarity
from leakbound.results.base import bundled
from leakbound.results.one_run import AuditResult
from leakbound.results.risks import Risks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
