"""Verifying: whatever can be recomputed of a result or of a bundle is, and compared."""

from __future__ import annotations

import re
import warnings
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from leakbound._base.canonical import digest, is_digest
from leakbound._base.checks import flag, shown
from leakbound._base.console import is_refusal, one_line
from leakbound._base.files import open_archive
from leakbound._base.formatting import printable
from leakbound._base.records import parsed
from leakbound._core import __version__
from leakbound.errors import FormatError, InternalError, MissingExtraError, OptionError
from leakbound.evidence.comparison import SHARE, VERSIONS, difference, same_page
from leakbound.evidence.manifest import (
    FILES,
    LAYOUT,
    MANIFEST,
    MOST_ARRAYS,
    SUMS,
    Contents,
    assumptions_of,
    environment,
    manifest,
    page_of,
    seeds,
    sums,
)
from leakbound.evidence.recipe import RESULTS, Recipe, departure, design_name, recipe_of
from leakbound.planning.commitment import Commitment, read_opening
from leakbound.planning.inclusion import Plan
from leakbound.planning.protocol import Agreed, checked_protocol
from leakbound.results.base import Check, Verification

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Container, Mapping

    from leakbound.results.base import Result

# Names of the checks, in order: each may rely on those before it.
_CHECKS = (
    *("files", "manifest", "result", "assumptions", "plan", "inputs"),
    *("protocol", "canaries", "commitment", "audit", "report"),
)
# Files that every bundle has.
_NEEDED = {
    *("audit.json", "inputs.npz", "result.json", "assumptions.json", "report.html"),
    *(MANIFEST, SUMS),
}

# What reading JSON raises where it has another shape than a bundle's.
_SHAPE = (ValueError, TypeError, LookupError, AttributeError)
# Arrays that a bundle holds at most.
_ARRAYS = 1000
_VERSION = re.compile(r"[0-9][0-9A-Za-z.+-]{0,39}")
# Characters of what a check found.
_WORDS = 500


def verify_result(
    result: Result, data: Mapping[str, Any], options: Mapping[str, Any]
) -> Verification:
    """Audit again by a result's own options; `Result.verify` documents the arguments."""
    try:
        recipe_of(result, data, options)
    except FormatError as error:
        return Verification((Check("audit", passed=False, words=str(error)),))
    words = "the same data and options give the same result, bit for bit"
    return Verification((Check("audit", passed=True, words=words),))


def verify_bundle(
    folder: str | os.PathLike[str],
    *,
    commitment: Commitment | str | os.PathLike[str] | None = None,
    canaries: str | os.PathLike[str] | None = None,
    page: bool = True,
) -> Verification:
    """Recompute what a bundle claims.

    Parameters
    ----------
    folder : str or os.PathLike
        The bundle.
    commitment : Commitment, str or os.PathLike, optional
        What was published before training, or its file.
    canaries : str or os.PathLike, optional
        The file of canaries, whose digest the protocol has to name.
    page : bool
        Whether the page is drawn again too. Where it is not, do not read it.

    Returns
    -------
    Verification
        Each check and what it found, in characters that a terminal only prints; the first that
        fails is the last.

    Raises
    ------
    OptionError, FormatError
        If there is no such folder, or the commitment that is passed is none.
    MissingExtraError, OSError, MemoryError
        If this machine lacks a package, a readable file or memory: nothing was judged.

    Notes
    -----
    The result is to be the same bit for bit where versions of leakbound, Python and NumPy, vector
    instructions and system are those that the bundle names. Elsewhere numbers may differ by 1e-9 of
    themselves, and everything else has to be the same: counts, choices, words, statuses,
    warnings, and the verdict that the bound computed here gives.
    """
    left_out = () if flag(page, "page") else ("report",)
    place = Path(folder)
    if not place.is_dir():
        message = f"{place} is no folder: name that of a bundle"
        raise OptionError(message)
    for named in (canaries, None if isinstance(commitment, Commitment) else commitment):
        if named is not None and Path(named).exists() and not Path(named).is_file():
            message = f"{Path(named)} is no regular file"
            raise OptionError(message)
    published = commitment
    if commitment is not None and not isinstance(commitment, Commitment):
        published = Commitment.from_json(Path(commitment))
    bundle = _Bundle(place, cast("Commitment | None", published))
    if canaries is not None:
        with Path(canaries).open("rb") as file:
            bundle.canaries = digest(file)
    return bundle.verified(without=left_out)


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
    canaries: str | None = None
    """SHA-256 of the file of canaries, if one was passed."""
    held: ExitStack = field(default_factory=ExitStack)
    files: Contents = field(default_factory=Contents)
    checks: list[Check] = field(default_factory=list)
    exact: bool = True
    notes: dict[str, Any] = field(default_factory=dict)
    model: str | None = None
    result: Any = None
    recipe: Any = None
    plan: Plan | None = None
    agreed: Agreed | None = None

    def verified(self, *, without: Container[str] = ()) -> Verification:
        """Make the checks in order, up to the first that fails."""
        with self.held:
            for name in _CHECKS:
                if name in without:
                    words = "left out, as asked: do not rely on it"
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
            passed, words = False, one_line(error) or type(error).__name__
            shape = () if name in {"audit", "report"} else _SHAPE
            if not (is_refusal(error) or isinstance(error, shape)):
                words = f"{type(error).__name__}: {words}"
        words = printable(" ".join(words.split()))
        words = words if len(words) <= _WORDS else words[: _WORDS - 1] + "…"
        self.checks.append(Check(name, passed, words))
        return passed is not False

    def _files(self) -> tuple[bool, str]:
        self.files = Contents.of(self.place, self.held)
        digests = self.files.digests
        stated = self._stated() if SUMS in digests else {}
        for name in sorted(stated.keys() | _NEEDED):
            if name not in digests:
                return False, f"{name} is missing"
        for name in sorted(digests.keys() - stated.keys() - {SUMS}):
            return False, f"{name} was added: it is not in {SUMS}"
        for name in sorted(stated):
            if digests[name] != stated[name]:
                return False, f"{name} was changed: its SHA-256 is not that of {SUMS}"
        rest = {name: one for name, one in digests.items() if name != SUMS}
        if sums(rest) != self.files.texts[SUMS]:
            return False, f"{SUMS} is not as sha256sum writes it, sorted by name"
        return True, f"{len(rest)} files, none missing, added or changed"

    def _stated(self) -> dict[str, str]:
        """Return the digests in the file of sums."""
        try:
            lines = self.files.texts[SUMS].decode("ascii").removesuffix("\n").split("\n")
        except UnicodeDecodeError:
            message = f"{SUMS} was changed: it is no ASCII"
            raise FormatError(message) from None
        pairs = [line.split("  ", 1) for line in lines]
        stated = {pair[1]: pair[0] for pair in pairs if len(pair) == 2}
        strange = stated.keys() - FILES.keys()
        if strange or len(stated) != len(lines):
            what = f"names {min(strange)!r:.80}, which" if strange else "has a line that"
            message = f"{SUMS} {what} no bundle has"
            raise FormatError(message)
        return stated

    def _json(self, name: str) -> Any:
        try:
            return parsed(self.files.texts[name].decode("utf-8"))
        except ValueError as error:  # also a FormatError
            message = f"{name}: {' '.join(str(error).split())}"
            raise FormatError(message) from error

    def _manifest(self) -> tuple[bool, str]:
        statement = self._json(MANIFEST)
        first = statement["subject"][0]
        if first["name"] == "model":
            self.model = first["digest"]["sha256"]
            if not is_digest(self.model):
                return False, f"the digest of its model is {shown(self.model)}"
        self.notes = statement["predicate"]["configuration"][0]["annotations"]
        layout = self.notes.get("layout")
        if type(layout) is not int or layout != LAYOUT:
            return False, f"layout {layout!r:.40}: this version of leakbound reads {LAYOUT}"
        here = environment()
        if self.notes.keys() != {"layout", "seeds", *here}:
            return False, f"its annotations are not {', '.join(['layout', 'seeds', *here])}"
        for name in VERSIONS:
            if not _VERSION.fullmatch(str(self.notes[name])):
                return False, f"{shown(self.notes[name])} is no version of {name}"
        self.exact = all(self.notes[name] == one for name, one in here.items())
        what = f"about the model {self.model[:16]}…" if self.model else "about no model by digest"
        return True, f"an in-toto statement of leakbound {self.notes['leakbound']}, {what}"

    def _result(self) -> tuple[bool, str]:
        content = self._json("result.json")
        kind = content.get("type") if isinstance(content, dict) else None
        if not isinstance(kind, str) or kind not in RESULTS:
            return False, f"result.json is of type {kind!r:.60}"
        self.result = RESULTS[kind].from_dict(content)
        digests = self.files.digests.items()
        rest = {name: one for name, one in digests if name not in {MANIFEST, SUMS}}
        if manifest(rest, self.result, self.notes, self.model) != self.files.texts[MANIFEST]:
            return False, f"{MANIFEST} is not the statement of these files and this result"
        source = self.result.provenance
        for name in VERSIONS:
            own, said = getattr(source, name), self.notes[name]
            if own != said:
                return False, f"made by {name} {own:.40}, it says, and {MANIFEST} says {said}"
        return True, repr(self.result)

    def _assumptions(self) -> tuple[bool, str]:
        stored = self._json("assumptions.json")
        vouchers = {one["name"]: one["vouched for by"] for one in stored}
        if assumptions_of(self.result, vouchers) != stored:
            return False, "assumptions.json has others than the result"
        contradicted = [one.name for one in self.result.summary().contradicted]
        said = f"; contradicted by the data: {', '.join(contradicted)}" if contradicted else ""
        return True, f"{len(stored)}, each with who vouches for it{said}"

    def _plan(self) -> tuple[bool | None, str]:
        if "plan.npz" in self.files.archives:
            self.plan = Plan.load(self.files.archives["plan.npz"])
        seed = None if self.plan is None else self.plan.seed
        if self.notes["seeds"] != seeds(self.result, seed):
            return False, "its seed, or that of the audit, is not that of the manifest"
        if self.plan is None:
            return None, "there is none: membership is the auditor's word"
        if seed is not None:
            kind: Any = type(self.plan)
            k = [self.plan.k] if self.plan.k else []
            if kind.create(len(self.plan), *k, seed=seed, ids=self.plan.ids) != self.plan:
                return False, f"its coins are not those of its seed, {seed}{self._elsewhere}"
        return True, repr(self.plan)

    @property
    def _elsewhere(self) -> str:
        """What to do where another version may have made what this one would make otherwise."""
        if self.notes["leakbound"] == __version__:
            return ""
        version = self.notes["leakbound"]
        return f"; if leakbound {version} made it, as it says, verify it by that version"

    def _inputs(self) -> tuple[bool, str]:
        content = self._json("audit.json")
        layout = content.pop("layout", None) if isinstance(content, dict) else None
        if type(layout) is not int or layout != LAYOUT:
            return False, "audit.json is of another layout"
        try:
            with open_archive(self.files.archives["inputs.npz"], most=MOST_ARRAYS) as archive:
                count = len(archive.names)
                if count > _ARRAYS:
                    return False, f"inputs.npz holds {count:,} arrays: at most {_ARRAYS:,} are read"
                arrays = {name: archive[name] for name in archive.names}
        except FormatError as error:
            return False, f"inputs.npz: {error}"
        self.recipe = Recipe.decoded(content, arrays, self.plan)
        if self.recipe.audit != design_name(self.result):
            return False, f"{self.recipe.audit} makes no {type(self.result).__name__}"
        if (self.recipe.arguments.get("member") is self.plan) != (self.plan is not None):
            return False, "membership is not that of the plan"
        return True, f"{self.recipe.audit} with {len(arrays)} arrays"

    def _protocol(self) -> tuple[bool | None, str]:
        if "protocol.json" not in self.files.texts:
            return None, "there is none: that options were chosen before is the auditor's word"
        self.agreed = Agreed.of(checked_protocol(self._json("protocol.json")))
        wrong = departure(self.agreed, self.result, self.recipe)
        return not wrong, wrong or "the audit is the one it describes"

    def _canaries(self) -> tuple[bool | None, str]:
        agreed = None if self.agreed is None else self.agreed.canaries_sha256
        if self.canaries is None:
            if agreed is None:
                return None, "no digest of them was agreed on"
            return None, f"those of SHA-256 {agreed[:16]}…; pass the file to compare it"
        if agreed is None:
            return False, "no protocol here names the digest of a file of canaries"
        if agreed != self.canaries:
            return False, f"the file has SHA-256 {self.canaries[:16]}…, agreed was {agreed[:16]}…"
        return True, f"those of SHA-256 {agreed[:16]}…, as agreed on"

    def _commitment(self) -> tuple[bool | None, str]:
        held = {"opening.json", "commitment.json"} & self.files.texts.keys()
        if not held:
            if self.published is not None:
                return False, "the bundle opens no commitment"
            return None, "there is none: that coins and protocol came first is the auditor's word"
        if len(held) == 1 or self.plan is None or "protocol.json" not in self.files.texts:
            missing = "plan, protocol, opening and commitment belong together, and one is missing"
            return False, missing
        own = Commitment.from_json(self.files.texts["commitment.json"])
        opening = read_opening(self.files.texts["opening.json"], cast("Any", self.plan))
        own.check(opening)
        if opening.protocol != self._json("protocol.json"):
            return False, "protocol.json is not the one that was committed to"
        if self.published is None:
            return True, f"opens {own.sha256[:16]}…; compare it with what was published before"
        self.published.check(opening)
        return True, f"opens {own.sha256[:16]}…, as published"

    def _audit(self) -> tuple[bool, str]:
        again = self.recipe.run()
        wrong = difference(again, self.result, exact=self.exact)
        if wrong:
            return False, wrong + self._elsewhere
        if self.exact:
            return True, "run again from its own scores: the same, bit for bit"
        by = "run again from its own scores, by other versions or on another processor"
        return True, f"{by}: the same but for last places, numbers within {SHARE:g} of themselves"

    def _report(self) -> tuple[bool | None, str]:
        try:
            page = page_of(self.result)
        except MissingExtraError as error:
            return None, f"not drawn again, so do not read report.html: {error}"
        if page == self.files.texts["report.html"]:
            return True, "drawn again: the same"
        if not self.exact and same_page(page, self.files.texts["report.html"]):
            return True, "drawn again: the same but for last places of coordinates"
        return False, (
            "report.html is not the page of this result, or of another matplotlib: install that, "
            f"or leave the page unread and unverified{self._elsewhere}"
        )
