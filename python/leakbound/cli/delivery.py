"""The end of an audit of a file: the claim is checked, the result printed and written."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from leakbound._base.console import bar, tell
from leakbound._base.types import Relation
from leakbound.cli import output
from leakbound.cli.options import Json, Lenient, flag, option


@dataclass(frozen=True)
class Delivery:
    """How a result is printed, how strictly a claim is judged, and where the report is written."""

    json: Json = False
    json_full: Annotated[
        bool,
        flag("--json-full", "Print all of result.json, with curves and lists of examples."),
    ] = False
    lenient: Lenient = False
    out: Annotated[
        Path | None, option("DIR", "Folder for result.json, report.html and figures (SVG).")
    ] = None
    report: Annotated[
        bool, flag("--report", "Write these files to a new folder audit-DATE, instead of --out.")
    ] = False
    title: Annotated[str, option("TEXT", "Title of the report.")] = ""
    model: Annotated[str, option("TEXT", "Name of the model in the report.")] = ""
    auditor: Annotated[str, option("TEXT", "Name of the auditor in the report.")] = ""

    def __post_init__(self) -> None:
        if self.reports:  # before hours of work
            output.prepare(self.out)

    @property
    def reports(self) -> bool:
        """Whether a report is written: who names it wants one."""
        return bool(self.out or self.report or self.title or self.model or self.auditor)

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
        folder = self.out or (output.dated() if self.reports else None)
        if folder is not None:
            name = file.name.encode(errors="replace").decode()  # names need not be text
            title = self.title or f"Privacy audit of {name}"
            about = {"title": title, "model": self.model, "auditor": self.auditor}
            with bar("Drawing the report"):
                output.write_files(folder, result, **about)
        # 3. The verdict.
        stored = self.json or self.json_full
        if stored:
            typer.echo(result.to_json() if self.json_full else output.brief(result))
        else:
            output.show(result)
        if folder is not None:
            (tell if stored else typer.echo)(f"Report: {folder / 'report.html'}")
        output.end(result, lenient=self.lenient)


@dataclass(frozen=True)
class BundledDelivery(Delivery):
    """The same, and a bundle."""

    bundle: Annotated[
        Path | None,
        option("DIR", "Folder for everything needed to recompute the result: `leakbound verify`."),
    ] = None
