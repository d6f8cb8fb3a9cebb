"""Verification: recompute and compare everything in a bundle."""

import os
import re
import warnings
from collections.abc import Callable, Container, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from leakbound._base.canonical import is_digest
from leakbound._base.checks import flag, shown
from leakbound._base.console import is_refusal, one_line
from leakbound._base.files import Arrays, open_archive, recover_folder
from leakbound._base.formatting import printable
from leakbound._base.records import parsed
from leakbound._base.types import PathInput
from leakbound._core import __version__
from leakbound.errors import FormatError, InternalError, MissingExtraError, OptionError
from leakbound.evidence import manifest, recipe
from leakbound.evidence.manifest import MANIFEST, SUMS, Contents
from leakbound.evidence.recipe import Recipe
from leakbound.evidence.tables import TablesRecipe
from leakbound.planning.commitment import Commitment, read_opening
from leakbound.planning.inclusion import Plan
from leakbound.planning.protocol import Agreement, checked_protocol
from leakbound.report import render
from leakbound.results.base import Check, Result, Verification
from leakbound.results.synthetic import SyntheticResult

# Names of the checks, in order: each may rely on those before it.
_CHECKS = (
    *("files", "result", "assumptions", "plan", "manifest", "inputs"),
    *("protocol", "commitment", "audit", "report"),
)
_RESULTS: dict[str, type[Result]] = {**recipe.RESULTS, SyntheticResult.__name__: SyntheticResult}
# Files that every bundle has.
_NEEDED = {
    *("audit.json", "inputs.npz", "result.json", "assumptions.json", "report.html"),
    *(MANIFEST, SUMS),
}

# What reading JSON raises where it has another shape than a bundle's.
_SHAPE = (ValueError, TypeError, LookupError, AttributeError)
# Arrays that a bundle holds at most: two for a column of each of four tables.
_ARRAYS = 8000
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,39}")
# Characters of what a check found.
_WORDS = 500


def verify_bundle(
    folder: PathInput,
    *,
    commitment: Commitment | PathInput | None = None,
    page: bool = True,
) -> Verification:
    """Recompute a bundle, and compare.

    Parameters
    ----------
    folder : str or os.PathLike
        The bundle.
    commitment : Commitment, str or os.PathLike, optional
        What was published before training, or its file.
    page : bool
        Whether the report is drawn again too. If not, do not trust it.

    Returns
    -------
    Verification
        Each check and its result, up to the first that fails. If a package, a readable file or
        memory is missing on this machine, an error is raised instead.

    Notes
    -----
    With the versions of leakbound, Python and NumPy, the vector instructions and the system that
    the bundle names, the result must be the same bit for bit, unless an audit fits a model to
    features: its last bits depend on the kernel of the linear algebra, which the processor chooses.
    There and otherwise numbers may differ by a relative 1e-9, and everything else must be the same:
    counts, choices, words, statuses, warnings, and the verdict that follows from the bound computed
    here.
    """
    left_out: tuple[str, ...] = ("report",)
    if flag(page, name="page"):
        left_out = ()
    place = Path(folder)
    recover_folder(place)
    if not place.is_dir():
        raise OptionError(f"{place} is not a folder: give the folder of a bundle")
    if isinstance(commitment, str | os.PathLike):
        commitment = Commitment.from_json(Path(commitment))
    return _Bundle(place=place, published=commitment).verified(without=left_out)


def flaw_of_written(folder: Path) -> str:
    """Return why a bundle that was just written is invalid; empty if it is valid.

    Its audit was run and its page drawn a moment ago, from what is in it.
    """
    return _Bundle(folder).verified(without=("audit", "report")).why


@dataclass
class _Bundle:
    """A bundle on its way through the checks."""

    place: Path
    published: Commitment | None = None
    held: ExitStack = field(default_factory=ExitStack)
    files: Contents = field(default_factory=Contents)
    checks: list[Check] = field(default_factory=list)
    exact: bool = True
    kernels: tuple[str, str] = ("", "")
    """Of linear algebra: where the bundle was made, and here."""
    result: Any = None
    recipe: Any = None
    plan: Plan | None = None

    def verified(self, *, without: Container[str] = ()) -> Verification:
        """Make the checks in order, up to the first that fails."""
        with self.held:
            for name in _CHECKS:
                if name in without:
                    words = "skipped: do not rely on it"
                    self.checks.append(Check(name, passed=None, words=words))
                elif not self._passes(name, getattr(self, f"_{name}")):
                    break
        return Verification(tuple(self.checks))

    def _passes(self, name: str, check: Callable[[], tuple[bool | None, str]]) -> bool:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                passed, words = check()
        except (InternalError, MissingExtraError, MemoryError):
            raise  # of this machine, and no fault of the bundle
        except Exception as error:  # whatever was read is anybody's
            if name == "files" and isinstance(error, OSError):
                raise
            passed = False
            words = one_line(error) or type(error).__name__
            refused = is_refusal(error)
            if name not in {"audit", "report"}:
                refused = refused or isinstance(error, _SHAPE)
            if not refused:
                words = f"{type(error).__name__}: {words}"
        words = printable(" ".join(words.split()))
        if len(words) > _WORDS:
            words = words[: _WORDS - 1] + "…"
        self.checks.append(Check(name=name, passed=passed, words=words))
        return passed is not False

    def _files(self) -> tuple[bool, str]:
        self.files = manifest.Contents.of(self.place, self.held)
        digests = self.files.digests
        if missing := _NEEDED - digests.keys():
            return False, f"{min(missing)} is missing"
        rest = {name: one for name, one in digests.items() if name != SUMS}
        expected = manifest.sums(rest)
        stated = self.files.texts[SUMS]
        if expected != stated:
            here = {*expected.decode("ascii").split("\n")}
            there = {*stated.decode("ascii", "replace").split("\n")}
            # A name comes after 64 digits and two spaces.
            strange = sorted(line[66:] or line for line in here ^ there)
            what = "lines moved"
            if strange:
                what = f"{strange[0]!r:.80} was changed, added or removed"
            return False, f"{SUMS} does not match these files: {what}"
        return True, f"{len(rest)} files, none missing, added or changed"

    def _json(self, name: str) -> Any:
        try:
            return parsed(self.files.texts[name].decode("utf-8"))
        except ValueError as error:  # also a FormatError
            raise FormatError(f"{name}: {' '.join(str(error).split())}") from error

    def _result(self) -> tuple[bool, str]:
        content = self._json("result.json")
        kind = None
        if isinstance(content, dict):
            kind = content.get("type")
        if not isinstance(kind, str) or kind not in _RESULTS:
            return False, f"result.json is of type {kind!r:.60}"
        self.result = _RESULTS[kind].from_dict(content)
        return True, repr(self.result)

    def _assumptions(self) -> tuple[bool, str]:
        stored = self._json("assumptions.json")
        vouchers = {one["name"]: one["vouched for by"] for one in stored}
        if manifest.assumptions_of(self.result, vouchers) != stored:
            return False, "assumptions.json has others than the result"
        contradicted = [one.name for one in self.result.summary().contradicted]
        said = ""
        if contradicted:
            said = f"; contradicted by the data: {', '.join(contradicted)}"
        return True, f"{len(stored)}, with the name of who vouches for each{said}"

    def _plan(self) -> tuple[bool | None, str]:
        if "plan.npz" in self.files.archives:
            self.plan = Plan.load(self.files.archives["plan.npz"])
        if self.plan is None:
            return None, "none: you have to trust the auditor about membership"
        seed = self.plan.seed
        if seed is not None:
            kind: Any = type(self.plan)
            same: Any = {"seed": seed, "ids": self.plan.ids, "copies": self.plan.copies}
            if self.plan.k:
                same["k"] = self.plan.k
            else:
                same["unit"] = self.plan.unit
            if kind.create(len(self.plan), **same) != self.plan:
                return False, f"its coins do not follow from its seed, {seed}{self._elsewhere}"
        return True, repr(self.plan)

    def _manifest(self) -> tuple[bool, str]:
        # 1. What only the manifest says: the model, the layout, and on what machine it was made.
        statement = self._json(MANIFEST)
        model = _model_of(statement)
        notes = statement["predicate"]["configuration"][0]["annotations"]
        layout = notes["layout"]
        if type(layout) is not int or layout != manifest.LAYOUT:
            own = f"this version of leakbound reads {manifest.LAYOUT}"
            return False, f"layout {layout!r:.40}: {own}"
        # 2. All else follows from files, result and plan.
        made = {name: getattr(self.result.provenance, name) for name in recipe.VERSIONS}
        for name, version in made.items():
            if not _VERSION.fullmatch(version):
                return False, f"{shown(version)} is not a version of {name}"
        here = manifest.environment()
        told = [name for name in here if name in notes or name != manifest.KERNELS]
        made = {name: str(notes[name]) for name in told} | made
        wrong = self._other_manifest(notes, made=made, model=model)
        if wrong:
            return False, wrong
        self.exact = made | {manifest.KERNELS: here[manifest.KERNELS]} == here
        self.kernels = made.get(manifest.KERNELS, "unknown"), here[manifest.KERNELS]
        what = "no digest of a model"
        if model:
            what = f"about the model {model[:16]}…"
        return True, f"an in-toto statement of leakbound {made['leakbound']}, {what}"

    def _other_manifest(
        self, notes: Mapping[str, object], made: Mapping[str, str], model: str | None
    ) -> str:
        """Return how the manifest differs from that of these files, made where it says."""
        tossed = None
        if self.plan is not None:
            tossed = self.plan.seed
        expected = manifest.notes_of(self.result, made=made, tossed=tossed)
        files = self.files.digests.items()
        rest = {name: one for name, one in files if name not in {MANIFEST, SUMS}}
        text = manifest.statement(rest, result=self.result, notes=expected, model=model)
        if text == self.files.texts[MANIFEST]:
            return ""
        said = f"{MANIFEST} does not match these files, this result and this plan"
        wrong = [name for name in expected if notes.get(name) != expected[name]]
        if wrong:
            said = f"{said}: {', '.join(wrong)}"
        return said

    @property
    def _elsewhere(self) -> str:
        """What to do where another version may have made what this one would make otherwise."""
        version = self.result.provenance.leakbound
        if version == __version__:
            return ""
        return f"; if leakbound {version} made it, as it says, verify it by that version"

    def _inputs(self) -> tuple[bool, str]:
        content = self._json("audit.json")
        layout = None
        if isinstance(content, dict):
            layout = content.pop("layout", None)
        if type(layout) is not int or layout != manifest.LAYOUT:
            return False, "audit.json is of another layout"
        inputs = self.files.archives["inputs.npz"]
        try:
            with open_archive(inputs, most=manifest.MOST_ARRAYS) as archive:
                count = len(archive.names)
                if count > _ARRAYS:
                    return False, f"inputs.npz holds {count:,} arrays: at most {_ARRAYS:,} are read"
                arrays = {name: archive[name] for name in archive.names}
        except FormatError as error:
            return False, f"inputs.npz: {error}"
        self.recipe = self._read_recipe(content, arrays)
        if self.recipe.audit != recipe.design_name(self.result):
            return False, f"{self.recipe.audit} does not give a {type(self.result).__name__}"
        if self.plan is not None and self.recipe.arguments.get("member") is not self.plan:
            return False, "membership is not that of the plan"
        return True, f"{self.recipe.audit} with {len(arrays)} arrays"

    def _read_recipe(self, content: object, arrays: Arrays) -> Recipe | TablesRecipe:
        if isinstance(content, dict) and content.get("audit") == recipe.SYNTHETIC:
            return TablesRecipe.decoded(content, arrays)
        return Recipe.decoded(content, arrays, self.plan)

    def _protocol(self) -> tuple[bool | None, str]:
        if "protocol.json" not in self.files.texts:
            return None, "none: you have to trust the auditor that options were chosen in advance"
        agreed = Agreement.of(checked_protocol(self._json("protocol.json")))
        wrong = recipe.departure(agreed, result=self.result, recipe=self.recipe)
        canaries = agreed.canaries_sha256
        named = ""
        if canaries:
            named = f", on canaries of SHA-256 {canaries}"
        return not wrong, wrong or f"the audit matches it{named}"

    def _commitment(self) -> tuple[bool | None, str]:
        texts = self.files.texts
        held = {"opening.json", "commitment.json"} & texts.keys()
        if not held:
            if self.published is not None:
                return False, "the bundle has no opening of a commitment"
            return None, "none: you have to trust the auditor that coins and protocol came first"
        if len(held) == 1 or self.plan is None or "protocol.json" not in texts:
            missing = "plan, protocol, opening or commitment is missing; all four are needed"
            return False, missing
        own = Commitment.from_json(texts["commitment.json"])
        opening = read_opening(texts["opening.json"], self.plan)
        own.check(opening)
        if opening.protocol != self._json("protocol.json"):
            return False, "protocol.json does not match the commitment"
        opens = f"opens {own.sha256[:16]}…"
        if self.published is None:
            return True, f"{opens}; compare this with the published digest"
        self.published.check(opening)
        return True, f"{opens}, as published"

    def _audit(self) -> tuple[bool, str]:
        again = self.recipe.run()
        # The last bits of a model that was fitted to features depend on the kernel of the linear
        # algebra, which no version tells.
        fitted = self.recipe.fitted
        wrong = recipe.difference(again, self.result, exact=self.exact and not fitted)
        if wrong and fitted:
            there, here = self.kernels
            wrong += f"; linear algebra was by {shown(there)} there, and is by {shown(here)} here"
        if wrong:
            return False, wrong + self._elsewhere
        if self.exact and not fitted:
            return True, "recomputed from its scores: the same, bit for bit"
        if self.exact:
            most = f"relative differences up to {recipe.SHARE:g}"
            return True, f"fitted and recomputed again: the same except for rounding ({most})"
        by = "recomputed from its scores, with other versions or on another processor"
        most = f"relative differences up to {recipe.SHARE:g}"
        return True, f"{by}: the same except for rounding ({most})"

    def _report(self) -> tuple[bool | None, str]:
        try:
            page = render(self.result).encode()
        except MissingExtraError as error:
            return None, f"not drawn again, so do not read report.html: {error}"
        if page == self.files.texts["report.html"]:
            return True, "drawn again: the same"
        return False, (
            "report.html is not the report of this result, or another matplotlib made it: install "
            f"that version, or skip the page and do not trust it{self._elsewhere}"
        )


def _model_of(statement: Any) -> str | None:
    """Return the digest of the model that a statement is about, if it is about one."""
    first = statement["subject"][0]
    if first["name"] != "model":
        return None
    model: str | None = first["digest"]["sha256"]
    if model is not None and not is_digest(model):
        raise FormatError(f"the digest of its model is {shown(model)}")
    return model
