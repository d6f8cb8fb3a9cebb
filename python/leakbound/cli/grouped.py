"""Options about what was drawn: rows of one user, and the word for that."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from leakbound._base.types import AnyArray, BoolArray, IntArray
from leakbound.cli.files import whole
from leakbound.cli.joined import Table, ids_of
from leakbound.cli.options import Unit, option, refuse
from leakbound.planning import InclusionPlan
from leakbound.planning.inclusion import ChoicePlan


@dataclass(frozen=True)
class Grouped:
    """Rows of one user, and the word for that."""

    groups: Annotated[
        str, option("COL", "Column of groups, such as users, whose rows were drawn together.")
    ] = ""
    aggregate: Annotated[
        Literal["mean", "max", "log_mean_exp", "sum"],
        option("HOW", "Score of a group, from those of its rows: mean, max, log_mean_exp or sum."),
    ] = "mean"
    unit: Unit = ""

    by: Annotated[
        str,
        option(
            "COL",
            "Column of labels, such as regions, that do not depend on membership: audits each "
            "subgroup, so that all bounds hold together.",
        ),
    ] = ""

    @property
    def word(self) -> str:
        """What was drawn."""
        if self.unit:
            return self.unit
        if self.groups:
            return "user"
        return "example"

    @property
    def columns(self) -> list[str]:
        """The columns that are needed, each once."""
        return [*dict.fromkeys(filter(None, (self.groups, self.by)))]

    def ids(self, table: Table) -> AnyArray | None:
        """Return the ids of rows; none where they are those of groups, such as of several runs."""
        if self.groups == "id":
            return None
        return ids_of(table)

    def labels(self, table: Table, rows: IntArray | slice = slice(None)) -> Any:
        """Return the labels of subgroups, if there are any."""
        if self.by:
            return table.words(self.by)[rows]
        return None

    def refuse(self, bundle: Path | None) -> None:
        """Refuse a bundle, which holds one result, with subgroups."""
        if self.by and bundle is not None:
            refuse(
                "--bundle holds one result, and --by gives one for each label: leave one of them "
                "out, or bundle in Python, results[label].bundle(…)"
            )

    @property
    def options(self) -> dict[str, Any]:
        """Options of the design besides its data."""
        if self.groups:
            return {"unit": self.unit or None, "aggregate": self.aggregate}
        return {"unit": self.unit or None}

    def inputs(
        self, table: Table, rows: IntArray | slice = slice(None), plan: InclusionPlan | None = None
    ) -> dict[str, Any]:
        """Return the groups, if there are any, as data of the design."""
        if self.groups:
            return {"groups": self._groups(table, plan)[rows]}
        return {}

    def planned(self, table: Table, plan: InclusionPlan) -> BoolArray:
        """Return which rows are of groups that a plan includes."""
        inside: BoolArray = np.isin(self._groups(table, plan), plan.ids[plan.member])
        return inside

    def _groups(self, table: Table, plan: InclusionPlan | None) -> AnyArray:
        """Return the column of groups, as whole numbers if the ids of the plan are."""
        return as_ids_of(plan, table.words(self.groups))


def as_ids_of(plan: InclusionPlan | ChoicePlan | None, ids: AnyArray) -> AnyArray:
    """Return ids as whole numbers if those of the plan are."""
    if plan is not None and plan.ids.dtype.kind in "iu":
        return whole(ids)
    return ids
