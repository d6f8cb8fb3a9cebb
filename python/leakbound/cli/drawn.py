"""Options of commands that read a plan: who was drawn, and the commitment that says so."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Generic, TypeVar

from leakbound._base.drawn import copies_of
from leakbound.cli import options
from leakbound.cli.options import option, refuse
from leakbound.planning import InclusionPlan, load_opening
from leakbound.planning.commitment import Opening
from leakbound.planning.inclusion import ChoicePlan

P = TypeVar("P", InclusionPlan, ChoicePlan)


@dataclass(frozen=True)
class Draw(Generic[P]):
    """The plan that decided who was a member, if there is one."""

    plan: P | None
    opening: Opening | None
    """The commitment that holds it."""
    agreed: dict[str, int]
    """The seed that the protocol fixed."""
    copies: int | None
    """How often each member was inserted; None if nothing says more than once."""


@dataclass(frozen=True)
class Drawn:
    """A saved plan, or the commitment that holds it."""

    plan: Annotated[
        Path | None,
        option(
            "FILE", "Saved InclusionPlan that decided membership. Joined by id if FILE has ids."
        ),
    ] = None
    opening: Annotated[
        Path | None, option("DIR", "Secret folder of `leakbound commit`, instead of --plan.")
    ] = None
    copies: options.Copies = None

    def read(self, kind: type[P], seed: int | None) -> Draw[P]:
        """Read the plan, which `--copies` and `--seed` must not contradict."""
        if self.plan and self.opening:
            refuse("--opening already contains a plan: give either --plan or --opening")
        if self.opening is not None:
            return self._draw_of_opening(self.opening, kind, seed)
        plan = None
        if self.plan:
            plan = kind.load(self.plan)
        return Draw(plan, None, {}, self._copies_of_members(plan, self.copies))

    def _draw_of_opening(self, folder: Path, kind: type[P], seed: int | None) -> Draw[P]:
        opening = load_opening(folder)
        plan = opening.plan
        if not isinstance(plan, kind):
            refuse(f"--opening holds a {type(plan).__name__}; this needs a {kind.__name__}")
        agreed_options = opening.agreed.options
        if seed not in {None, agreed_options["seed"]}:
            refuse(
                f"--seed {seed}: the protocol fixed the seed {agreed_options['seed']}, so "
                "leave --seed out"
            )
        copies = agreed_options.get("copies")
        if self.copies is not None and copies not in {None, self.copies}:
            refuse(f"--copies {self.copies}: the protocol has {copies}, so leave --copies out")
        if self.copies is not None:
            copies = self.copies
        return Draw(
            plan, opening, {"seed": agreed_options["seed"]}, self._copies_of_members(plan, copies)
        )

    def _copies_of_members(
        self, plan: InclusionPlan | ChoicePlan | None, copies: int | None
    ) -> int | None:
        """Return how often each member was inserted: as stated or planned."""
        stated = copies_of(plan, copies)
        if stated == 1 and self.copies is None:
            return None
        return stated


@dataclass(frozen=True)
class DrawnChoices(Drawn):
    """The same, of candidates."""

    plan: Annotated[
        Path | None, option("FILE", "Saved ChoicePlan of the draw. Joined by id if FILE has ids.")
    ] = None
