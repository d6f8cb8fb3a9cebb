"""The end of an audit of a file: the claim is checked, the result printed and written."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from leakbound._base.console import bar, tell
from leakbound._base.types import Relation
from leakbound.cli import output
from leakbound.cli.options import Json, Lenient, option


@dataclass(frozen=True)
class Delivery:
    """Where a result is written, and how strictly a claim is judged."""

    out: Annotated[
        Path | None,
        option("DIR", "Folder for result.json, report.html and figures (SVG)."),
    ] = None
    json: Json = False
    lenient: Lenient = False

    def __post_init__(self) -> None:
        if self.out is not None:  # before hours of work
            output.prepare(self.out)

    def conclude(
        self,
        result: Any,
        file: Path,
        goal: Mapping[str, float],
        relation: Relation | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> NoReturn:
        """Check a claim, print and write the result, and end with its exit code.

        `inputs` is what a bundle holds besides the result.
        """
        # 1. The claim, as arguments of `check`.
        own = 1 / goal["noise"] if "noise" in goal else goal.get("mu")
        if goal:
            claimed = {"epsilon": goal.get("eps"), "delta": goal.get("delta", 0.0)}
            claimed = claimed if own is None else {"parameter": own}
            claimed |= {"c": goal["c"]} if "c" in goal else {}
            result = result.with_check(**claimed, **({"relation": relation} if relation else {}))
        # 2. Files first, so that they exist once the verdict is printed.
        bundle = getattr(self, "bundle", None)
        if bundle is not None:
            with bar("Auditing again, for the bundle"):
                result.bundle(bundle, **inputs or {})
            tell(f"Bundle: {bundle}")
        if self.out is not None:
            name = file.name.encode(errors="replace").decode()  # names need not be text
            title = f"Privacy audit of {name}"
            with bar("Drawing the report"):
                output.write_files(self.out, result, title=title)
        if self.json:
            typer.echo(result.to_json())
        else:
            output.show(result)
        if self.out is not None:
            output.announce(self.out, aside=self.json)
        output.end(result, lenient=self.lenient)


@dataclass(frozen=True)
class BundledDelivery(Delivery):
    """The same, and a bundle."""

    bundle: Annotated[
        Path | None,
        option(
            "DIR",
            "Folder for everything needed to recompute the result with `leakbound verify`.",
        ),
    ] = None
