"""Verifying: whatever can be recomputed of a result or of a bundle is, and compared."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from leakbound._base.archives import DamagedFileError, open_archive
from leakbound._base.canonical import sha256
from leakbound._base.ending import is_refusal, one_line
from leakbound._core import __version__
from leakbound.errors import BundleError, MissingExtraError, OptionError
from leakbound.evidence.bundle import assumptions_of, page_of
from leakbound.evidence.comparison import NOTHING, SHARE, difference
from leakbound.evidence.manifest import (
    FILES,
    LAYOUT,
    MANIFEST,
    SUMS,
    environment,
    manifest,
    read_files,
    read_json,
    sums,
)
from leakbound.evidence.protocols import departure
from leakbound.evidence.recipe import RESULTS, Recipe, recipe_of, rejoined
from leakbound.planning import InclusionPlan
from leakbound.planning.commitment import Commitment, Opening, checked_protocol
from leakbound.results.verification import Check, Verification

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from leakbound.results.base import Result

__all__ = ["verify_bundle", "verify_result"]

_NEEDED = {"audit.json", "inputs.npz", "result.json", "assumptions.json", "report.html"}
"""Files that every bundle has, besides manifest and sums."""

_SHAPE = (ValueError, TypeError, LookupError, AttributeError)
"""What reading JSON raises where it has another shape than a bundle's."""


def verify_result(
    result: Result, data: Mapping[str, Any], options: Mapping[str, Any]
) -> Verification:
    """Audit again by a result's own options; `Result.verify` documents the arguments."""
    try:
        recipe_of(result, data, options)
    except BundleError as error:
        return Verification((Check("audit", passed=False, words=str(error)),))
    found = "the same data and options give the same result, bit for bit"
    return Verification((Check("audit", passed=True, words=found),))


def verify_bundle(
    folder: str | os.PathLike[str],
    *,
    commitment: Commitment | str | os.PathLike[str] | None = None,
) -> Verification:
    """Recompute what a bundle claims.

    Parameters
    ----------
    folder : str or os.PathLike
        The bundle.
    commitment : Commitment, str or os.PathLike, optional
        What was published before training, or its file.

    Returns
    -------
    Verification
        Each check and what it found; the first that fails is the last.

    Raises
    ------
    OptionError
        If there is no such folder.
    CommitmentError
        If the commitment that is passed is none.
    OSError
        If its file cannot be read.

    Notes
    -----
    The result is to be the same bit for bit where versions of leakbound, Python and NumPy, vector
    instructions and system are those that the bundle names. Elsewhere counts and choices have to be
    the same and numbers within 1e-9 of each other, and words are not compared.
    """
    place = Path(folder)
    if not place.is_dir():
        message = f"{place} is no folder: name that of a bundle"
        raise OptionError(message)
    published = commitment
    if commitment is not None and not isinstance(commitment, Commitment):
        published = Commitment.from_json(Path(commitment))
    return _Bundle(place, cast("Commitment | None", published)).verified()


@dataclass
class _Bundle:
    """A bundle on its way through the checks."""

    place: Path
    published: Commitment | None
    files: dict[str, bytes] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    exact: bool = True
    notes: dict[str, Any] = field(default_factory=dict)
    model: str | None = None
    result: Any = None
    recipe: Any = None
    plan: InclusionPlan | None = None

    def verified(self) -> Verification:
        """Make the checks in order, up to the first that fails."""
        for name, check in (
            ("files", self._files),
            ("manifest", self._manifest),
            ("result", self._result),
            ("assumptions", self._assumptions),
            ("plan", self._plan),
            ("inputs", self._inputs),
            ("protocol", self._protocol),
            ("commitment", self._commitment),
            ("audit", self._audit),
            ("report", self._report),
        ):
            if not self._passes(name, check):
                break
        return Verification(tuple(self.checks))

    def _passes(self, name: str, check: Callable[[], tuple[bool | None, str]]) -> bool:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                passed, words = check()
        except Exception as error:
            shape = () if name in {"audit", "report"} else _SHAPE
            if not (is_refusal(error) or isinstance(error, shape)):
                raise
            passed, words = False, one_line(error) or type(error).__name__
        self.checks.append(Check(name, passed, words))
        return passed is not False

    def _files(self) -> tuple[bool, str]:
        self.files = read_files(self.place)
        for name in (SUMS, MANIFEST):
            if name not in self.files:
                return False, f"{name} is missing"
        stated = self._stated()
        for name in sorted(stated.keys() | _NEEDED):
            if name not in self.files:
                return False, f"{name} is missing"
        for name in sorted(self.files.keys() - stated.keys() - {SUMS}):
            return False, f"{name} was added: it is not in {SUMS}"
        for name in sorted(stated):
            if sha256(self.files[name]) != stated[name]:
                return False, f"{name} was changed: its SHA-256 is not that of {SUMS}"
        rest = {name: one for name, one in self.files.items() if name != SUMS}
        if sums(rest) != self.files[SUMS]:
            return False, f"{SUMS} is not as sha256sum writes it, sorted by name"
        return True, f"{len(rest)} files, none missing, added or changed"

    def _stated(self) -> dict[str, str]:
        """Return the digests in the file of sums."""
        try:
            lines = self.files[SUMS].decode("ascii").splitlines()
        except UnicodeDecodeError:
            message = f"{SUMS} was changed: it is no ASCII"
            raise BundleError(message) from None
        pairs = [line.split("  ", 1) for line in lines]
        stated = {pair[1]: pair[0] for pair in pairs if len(pair) == 2}
        strange = stated.keys() - FILES.keys() - {MANIFEST}
        if strange or len(stated) != len(lines):
            what = f"names {min(strange)!r:.80}, which" if strange else "has a line that"
            message = f"{SUMS} {what} no bundle has"
            raise BundleError(message)
        return stated

    def _manifest(self) -> tuple[bool, str]:
        statement = read_json(self.files[MANIFEST], MANIFEST)
        subject = statement["subject"]
        if subject[0]["name"] == "model":
            self.model = subject[0]["digest"]["sha256"]
        for name in (one["name"] for one in subject[1 if self.model else 0 :]):
            if name not in self.files:
                return False, f"it names {name!r:.80}, which is no file of this bundle"
        annotations = statement["predicate"]["configuration"][0]["annotations"]
        self.notes = {
            name: one for name, one in annotations.items() if name not in {"size", "what"}
        }
        layout = self.notes.get("layout")
        if layout != LAYOUT:
            return False, f"layout {layout!r:.40}: this version of leakbound reads {LAYOUT}"
        here = environment()
        self.exact = all(self.notes.get(name) == one for name, one in here.items())
        of = f"leakbound {self.notes.get('leakbound')!s:.40}"
        what = f"an in-toto statement of {of}" + (
            f" about the model {self.model[:16]}…" if self.model else ", about no model by digest"
        )
        return True, what

    def _result(self) -> tuple[bool, str]:
        content = read_json(self.files["result.json"], "result.json")
        kind = content.get("type") if isinstance(content, dict) else None
        if kind not in RESULTS:
            return False, f"result.json is of type {kind!r:.60}"
        self.result = RESULTS[kind][0].from_dict(content)
        rest = {name: one for name, one in self.files.items() if name not in {MANIFEST, SUMS}}
        if manifest(rest, self.result, self.notes, self.model) != self.files[MANIFEST]:
            return False, f"{MANIFEST} is not the statement of these files and this result"
        return True, repr(self.result)

    def _assumptions(self) -> tuple[bool, str]:
        stored = read_json(self.files["assumptions.json"], "assumptions.json")
        vouchers = {one["name"]: str(one["vouched for by"]) for one in stored}
        if assumptions_of(self.result, vouchers) != stored:
            return False, "assumptions.json has others than the result"
        contradicted = [one.name for one in self.result.contradicted()]
        said = f"; contradicted by the data: {', '.join(contradicted)}" if contradicted else ""
        return True, f"{len(stored)}, each with who vouches for it{said}"

    def _plan(self) -> tuple[bool | None, str]:
        if "plan.npz" not in self.files:
            return None, "there is none: membership is the auditor's word"
        self.plan = InclusionPlan.load(io.BytesIO(self.files["plan.npz"]))
        if self.notes["seeds"].get("plan") != (
            None if self.plan.seed is None else str(self.plan.seed)
        ):
            return False, "its seed is not that of the manifest"
        if self.plan.seed is not None and self.notes.get("leakbound") == __version__:
            again = InclusionPlan.create(len(self.plan), seed=self.plan.seed, ids=self.plan.ids)
            if again != self.plan:
                return False, f"its coins are not those of its seed, {self.plan.seed}"
        return True, repr(self.plan)

    def _inputs(self) -> tuple[bool, str]:
        content = read_json(self.files["audit.json"], "audit.json")
        if not isinstance(content, dict) or content.pop("layout", None) != LAYOUT:
            return False, "audit.json is of another layout"
        try:
            with open_archive(io.BytesIO(self.files["inputs.npz"])) as archive:
                arrays = {name: archive[name] for name in archive.names}
        except DamagedFileError as error:
            return False, f"inputs.npz: {error}"
        self.recipe = Recipe.decoded(content, arrays, self.plan)
        if self.recipe.audit != RESULTS[type(self.result).__name__][1]:
            return False, f"{self.recipe.audit} makes no {type(self.result).__name__}"
        if (self.recipe.arguments.get("member") is self.plan) != (self.plan is not None):
            return False, "membership is not that of the plan"
        return True, f"{self.recipe.audit} with {len(arrays)} arrays"

    def _protocol(self) -> tuple[bool | None, str]:
        if "protocol.json" not in self.files:
            return None, "there is none: that options were chosen before is the auditor's word"
        protocol = checked_protocol(read_json(self.files["protocol.json"], "protocol.json"))
        wrong = departure(protocol, self.result, self.recipe)
        return not wrong, wrong or "the audit is the one it describes"

    def _commitment(self) -> tuple[bool | None, str]:
        held = {"opening.json", "commitment.json"} & self.files.keys()
        if not held:
            if self.published is not None:
                return False, "the bundle opens no commitment"
            return None, "there is none: that coins and protocol came first is the auditor's word"
        if len(held) == 1 or self.plan is None or "protocol.json" not in self.files:
            return (
                False,
                "plan, protocol, opening and commitment belong together, and one is missing",
            )
        own = Commitment.from_json(self.files["commitment.json"])
        opening = Opening.read(self.files["opening.json"], self.plan)
        own.check(opening)
        if opening.protocol != read_json(self.files["protocol.json"], "protocol.json"):
            return False, "protocol.json is not the one that was committed to"
        if self.published is None:
            return True, f"opens {own.sha256[:16]}…; compare it with what was published before"
        self.published.check(opening)
        return True, f"opens {own.sha256[:16]}…, as published"

    def _audit(self) -> tuple[bool, str]:
        again = rejoined(self.recipe.run(), self.result)
        wrong = difference(again, self.result, exact=self.exact)
        if wrong:
            return False, wrong
        if self.exact:
            return True, "run again from its own scores: the same, bit for bit"
        return True, (
            "run again from its own scores, by other versions or on another processor: the same "
            f"counts and choices, numbers within {SHARE:g} (or {NOTHING:g})"
        )

    def _report(self) -> tuple[bool | None, str]:
        if not self.exact:
            return None, "not drawn again: other versions may draw it differently"
        try:
            page = page_of(self.result)
        except MissingExtraError as error:
            return None, f"not drawn again: {error}"
        if page == self.files["report.html"]:
            return True, "drawn again: the same"
        return False, "report.html is not the page of this result, or of another matplotlib"
