"""Verification: recompute and compare everything in a bundle."""

import os
import re
import warnings
from collections.abc import Callable, Container, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from leakbound._base.checks import flag, shown
from leakbound._base.console import is_refusal, one_line
from leakbound._base.files import Arrays, open_archive, recover_folder
from leakbound._base.formatting import printable
from leakbound._base.records import is_digest, parsed
from leakbound._base.types import PathInput
from leakbound._core import __version__
from leakbound.errors import FormatError, InternalError, MissingExtraError, OptionError
from leakbound.evidence import manifest, recipe
from leakbound.evidence.manifest import MANIFEST, SUMS, Contents
from leakbound.evidence.recipe import Recipe
from leakbound.evidence.synthetic_recipe import TablesRecipe
from leakbound.planning.commitment import Commitment, read_opening
from leakbound.planning.inclusion import Plan
from leakbound.planning.protocol import Agreement, checked_protocol
from leakbound.report import render
from leakbound.results.base import Check, Result, Verification
from leakbound.results.synthetic import SyntheticResult

# Names of the checks, in order: each may rely on those before it.
_NAMES_OF_CHECKS = (
    "files",
    "result",
    "assumptions",
    "plan",
    "manifest",
    "inputs",
    "protocol",
    "commitment",
    "audit",
    "report",
)
_RESULT_TYPES: dict[str, type[Result]] = {
    **recipe.RESULTS,
    SyntheticResult.__name__: SyntheticResult,
}
# Files that every bundle has.
_REQUIRED_FILES = {
    "audit.json",
    "inputs.npz",
    "result.json",
    "assumptions.json",
    "report.html",
    MANIFEST,
    SUMS,
}
# What reading JSON raises where it has another shape than a bundle's.
_ERRORS_OF_BUNDLE_SHAPE = (ValueError, TypeError, LookupError, AttributeError)
# Arrays that a bundle holds at most: two for a column of each of four tables.
_MOST_ARRAYS = 8000
_VERSION_PATTERN = re.compile(r"[0-9][0-9A-Za-z.+-]{0,39}")
# Characters of what a check found.
_MOST_CHARACTERS_OF_FINDING = 500
# In SHA256SUMS, the name of a file comes after 64 digits and two spaces.
_NAME_START = 66

# Whether a check passed, None if there was nothing to check, and what it found.
_Outcome: TypeAlias = tuple[bool | None, str]


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
    skipped_checks: tuple[str, ...] = ("report",)
    if flag(page, name="page"):
        skipped_checks = ()
    bundle_folder = Path(folder)
    recover_folder(bundle_folder)
    if not bundle_folder.is_dir():
        raise OptionError(f"{bundle_folder} is not a folder: give the folder of a bundle")
    if isinstance(commitment, str | os.PathLike):
        commitment = Commitment.from_json(Path(commitment))
    checks = _BundleChecks(bundle_folder, published_commitment=commitment)
    return checks.verification(skipped_checks)


def flaw_of_written(folder: Path) -> str:
    """Return why a bundle that was just written is invalid; empty if it is valid.

    Its audit was run and its page drawn a moment ago, from what is in it.
    """
    verification = _BundleChecks(folder).verification(skipped_checks=("audit", "report"))
    return verification.why


@dataclass
class _BundleChecks:
    """The checks of a bundle, in order, and what they have read of it so far."""

    folder: Path
    published_commitment: Commitment | None = None
    open_files: ExitStack = field(default_factory=ExitStack)
    contents: Contents = field(default_factory=Contents)
    checks: list[Check] = field(default_factory=list)
    same_environment: bool = True
    """Whether versions, system and kernels are those with which the bundle was made."""
    kernels_there: str = ""
    """Of linear algebra, where the bundle was made."""
    kernels_here: str = ""
    result: Any = None
    recipe: Any = None
    plan: Plan | None = None

    def verification(self, skipped_checks: Container[str] = ()) -> Verification:
        """Make the checks in order, up to the first that fails."""
        with self.open_files:
            for check_name in _NAMES_OF_CHECKS:
                if check_name in skipped_checks:
                    finished_check = Check(
                        check_name, passed=None, words="skipped: do not rely on it"
                    )
                else:
                    finished_check = self._check(check_name)
                self.checks.append(finished_check)
                if finished_check.passed is False:
                    break
        return Verification(tuple(self.checks))

    def _check(self, check_name: str) -> Check:
        """Make one check; whatever a foreign file makes it raise is a failure."""
        check: Callable[[], _Outcome] = getattr(self, f"_check_{check_name}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                passed, words_of_finding = check()
        except (InternalError, MissingExtraError, MemoryError):
            raise  # of this machine, and no fault of the bundle
        except Exception as error:  # whatever was read is anybody's
            if check_name == "files" and isinstance(error, OSError):
                raise
            passed = False
            words_of_finding = _bundle_error_in_words(check_name, error)
        words_of_finding = printable(" ".join(words_of_finding.split()))
        if len(words_of_finding) > _MOST_CHARACTERS_OF_FINDING:
            words_of_finding = words_of_finding[: _MOST_CHARACTERS_OF_FINDING - 1] + "…"
        return Check(name=check_name, passed=passed, words=words_of_finding)

    def _check_files(self) -> _Outcome:
        self.contents = Contents.of(self.folder, self.open_files)
        file_digests = dict(self.contents.digests)
        missing_files = _REQUIRED_FILES - file_digests.keys()
        if missing_files:
            return False, f"{min(missing_files)} is missing"
        del file_digests[SUMS]
        expected_sums = manifest.sums(file_digests)
        stored_sums = self.contents.texts[SUMS]
        if expected_sums != stored_sums:
            difference = _bundle_file_that_differs(expected_sums, stored_sums)
            return False, f"{SUMS} does not match these files: {difference}"
        return True, f"{len(file_digests)} files, none missing, added or changed"

    def _read_json(self, file_name: str) -> Any:
        try:
            return parsed(self.contents.texts[file_name].decode("utf-8"))
        except ValueError as error:  # also a FormatError
            reason = " ".join(str(error).split())
            raise FormatError(f"{file_name}: {reason}") from error

    def _check_result(self) -> _Outcome:
        result_json = self._read_json("result.json")
        type_name = None
        if isinstance(result_json, dict):
            type_name = result_json.get("type")
        if not isinstance(type_name, str) or type_name not in _RESULT_TYPES:
            return False, f"result.json is of type {type_name!r:.60}"
        self.result = _RESULT_TYPES[type_name].from_dict(result_json)
        return True, repr(self.result)

    def _check_assumptions(self) -> _Outcome:
        stored_assumptions = self._read_json("assumptions.json")
        vouchers = {}
        for assumption in stored_assumptions:
            vouchers[assumption["name"]] = assumption["vouched for by"]
        if manifest.assumptions_of(self.result, vouchers) != stored_assumptions:
            return False, "assumptions.json has others than the result"
        finding = f"{len(stored_assumptions)}, with the name of who vouches for each"
        contradicted = [assumption.name for assumption in self.result.summary().contradicted]
        if contradicted:
            finding += f"; contradicted by the data: {', '.join(contradicted)}"
        return True, finding

    def _check_plan(self) -> _Outcome:
        if "plan.npz" in self.contents.archives:
            self.plan = Plan.load(self.contents.archives["plan.npz"])
        plan = self.plan
        if plan is None:
            return None, "none: you have to trust the auditor about membership"
        if plan.seed is not None and _expected_plan_of_bundle(plan) != plan:
            return False, f"its coins do not follow from its seed, {plan.seed}{self._other_version}"
        return True, repr(plan)

    def _check_manifest(self) -> _Outcome:
        # 1. What only the manifest says: the model, the layout, and on what machine it was made.
        manifest_statement = self._read_json(MANIFEST)
        model = _model_digest_of_bundle(manifest_statement)
        manifest_notes = manifest_statement["predicate"]["configuration"][0]["annotations"]
        stored_layout = manifest_notes["layout"]
        if type(stored_layout) is not int or stored_layout != manifest.LAYOUT:
            supported = f"this version of leakbound reads {manifest.LAYOUT}"
            return False, f"layout {stored_layout!r:.40}: {supported}"
        # 2. All else follows from files, result and plan.
        environment_here = manifest.environment()
        environment_there: dict[str, str] = {}
        for version_name in environment_here:
            if version_name in manifest_notes or version_name != manifest.KERNELS:
                environment_there[version_name] = str(manifest_notes[version_name])
        for version_name in recipe.VERSIONS:
            named_version = getattr(self.result.provenance, version_name)
            if not _VERSION_PATTERN.fullmatch(named_version):
                return False, f"{shown(named_version)} is not a version of {version_name}"
            environment_there[version_name] = named_version
        flaw = self._flaw_of_manifest(manifest_notes, environment_there, model)
        if flaw:
            return False, flaw
        self.kernels_here = environment_here.pop(manifest.KERNELS)
        self.kernels_there = environment_there.pop(manifest.KERNELS, "unknown")
        self.same_environment = environment_there == environment_here
        about_model = "no digest of a model"
        if model:
            about_model = f"about the model {model[:16]}…"
        named_version = environment_there["leakbound"]
        return True, f"an in-toto statement of leakbound {named_version}, {about_model}"

    def _flaw_of_manifest(
        self,
        manifest_notes: Mapping[str, object],
        environment_there: Mapping[str, str],
        model: str | None,
    ) -> str:
        """Return how the manifest differs from that of these files, made where it says."""
        plan_seed = None
        if self.plan is not None:
            plan_seed = self.plan.seed
        expected_notes = manifest.notes_of(self.result, environment_there, plan_seed)
        file_digests = dict(self.contents.digests)
        del file_digests[MANIFEST]
        del file_digests[SUMS]
        expected_manifest = manifest.statement(
            file_digests, result=self.result, notes=expected_notes, model=model
        )
        if expected_manifest == self.contents.texts[MANIFEST]:
            return ""
        flaw = f"{MANIFEST} does not match these files, this result and this plan"
        wrong_notes = []
        for note_name, expected_note in expected_notes.items():
            if manifest_notes.get(note_name) != expected_note:
                wrong_notes.append(note_name)
        if wrong_notes:
            flaw += f": {', '.join(wrong_notes)}"
        return flaw

    @property
    def _other_version(self) -> str:
        """What to do where another version may have made what this one would make otherwise."""
        version = self.result.provenance.leakbound
        if version == __version__:
            return ""
        return f"; if leakbound {version} made it, as it says, verify it by that version"

    def _check_inputs(self) -> _Outcome:
        recipe_json = self._read_json("audit.json")
        stored_layout = None
        if isinstance(recipe_json, dict):
            stored_layout = recipe_json.pop("layout", None)
        if type(stored_layout) is not int or stored_layout != manifest.LAYOUT:
            return False, "audit.json is of another layout"
        inputs = self.contents.archives["inputs.npz"]
        try:
            with open_archive(inputs, most=manifest.MOST_ARRAYS) as inputs_archive:
                array_count = len(inputs_archive.names)
                if array_count > _MOST_ARRAYS:
                    array_limit = f"at most {_MOST_ARRAYS:,} are read"
                    return False, f"inputs.npz holds {array_count:,} arrays: {array_limit}"
                stored_arrays = {name: inputs_archive[name] for name in inputs_archive.names}
        except FormatError as error:
            return False, f"inputs.npz: {error}"
        self.recipe = self._decoded_recipe(recipe_json, stored_arrays)
        audit_name = self.recipe.audit
        if audit_name != recipe.design_name(self.result):
            return False, f"{audit_name} does not give a {type(self.result).__name__}"
        member = self.recipe.arguments.get("member")
        if self.plan is not None and member is not self.plan:
            return False, "membership is not that of the plan"
        return True, f"{audit_name} with {len(stored_arrays)} arrays"

    def _decoded_recipe(self, recipe_json: object, stored_arrays: Arrays) -> Recipe | TablesRecipe:
        if isinstance(recipe_json, dict) and recipe_json.get("audit") == recipe.SYNTHETIC:
            return TablesRecipe.decoded(recipe_json, stored_arrays)
        return Recipe.decoded(recipe_json, stored_arrays, self.plan)

    def _check_protocol(self) -> _Outcome:
        if "protocol.json" not in self.contents.texts:
            return None, "none: you have to trust the auditor that options were chosen in advance"
        protocol = checked_protocol(self._read_json("protocol.json"))
        agreed = Agreement.of(protocol)
        departure = recipe.recipe_departure(agreed, result=self.result, recipe=self.recipe)
        if departure:
            return False, departure
        finding = "the audit matches it"
        if agreed.canaries_sha256:
            finding += f", on canaries of SHA-256 {agreed.canaries_sha256}"
        return True, finding

    def _check_commitment(self) -> _Outcome:
        stored_texts = self.contents.texts
        has_opening = "opening.json" in stored_texts
        has_commitment = "commitment.json" in stored_texts
        if not has_opening and not has_commitment:
            if self.published_commitment is not None:
                return False, "the bundle has no opening of a commitment"
            return None, "none: you have to trust the auditor that coins and protocol came first"
        has_both = has_opening and has_commitment
        if not has_both or self.plan is None or "protocol.json" not in stored_texts:
            return False, "plan, protocol, opening or commitment is missing; all four are needed"
        commitment = Commitment.from_json(stored_texts["commitment.json"])
        opening = read_opening(stored_texts["opening.json"], self.plan)
        commitment.check(opening)
        if opening.protocol != self._read_json("protocol.json"):
            return False, "protocol.json does not match the commitment"
        opens_commitment = f"opens {commitment.sha256[:16]}…"
        if self.published_commitment is None:
            return True, f"{opens_commitment}; compare this with the published digest"
        self.published_commitment.check(opening)
        return True, f"{opens_commitment}, as published"

    def _check_audit(self) -> _Outcome:
        recomputed = self.recipe.run()
        # The last bits of a model that was fitted to features depend on the kernel of the linear
        # algebra, which no version tells.
        is_fitted = self.recipe.fitted
        must_be_exact = self.same_environment and not is_fitted
        first_difference = recipe.difference_of_rerun(recomputed, self.result, exact=must_be_exact)
        if first_difference:
            if is_fitted:
                kernels_there = shown(self.kernels_there)
                kernels_here = shown(self.kernels_here)
                first_difference += (
                    f"; linear algebra was by {kernels_there} there, and is by {kernels_here} here"
                )
            return False, first_difference + self._other_version
        if must_be_exact:
            return True, "recomputed from its scores: the same, bit for bit"
        rounding = f"rounding (relative differences up to {recipe.SHARE:g})"
        if self.same_environment:
            return True, f"fitted and recomputed again: the same except for {rounding}"
        how_recomputed = "recomputed from its scores, with other versions or on another processor"
        return True, f"{how_recomputed}: the same except for {rounding}"

    def _check_report(self) -> _Outcome:
        try:
            redrawn_report = render(self.result).encode()
        except MissingExtraError as error:
            return None, f"not drawn again, so do not read report.html: {error}"
        if redrawn_report == self.contents.texts["report.html"]:
            return True, "drawn again: the same"
        return False, (
            "report.html is not the report of this result, or another matplotlib made it, or it "
            "has figures whose module is not imported here: install that version, import that "
            "module, or skip the page and do not trust it"
            f"{self._other_version}"
        )


def _bundle_error_in_words(check_name: str, error: Exception) -> str:
    """Return what an error says, after its type if it is no refusal of what was read."""
    message = one_line(error) or type(error).__name__
    if is_refusal(error):
        return message
    reads_only = check_name not in {"audit", "report"}
    if reads_only and isinstance(error, _ERRORS_OF_BUNDLE_SHAPE):
        return message
    return f"{type(error).__name__}: {message}"


def _bundle_file_that_differs(expected_sums: bytes, stored_sums: bytes) -> str:
    """Return what differs between two files of digests."""
    expected_lines = set(expected_sums.decode("ascii").split("\n"))
    stored_lines = set(stored_sums.decode("ascii", errors="replace").split("\n"))
    changed_file_names = [
        checksum_line[_NAME_START:] or checksum_line
        for checksum_line in expected_lines ^ stored_lines
    ]
    if not changed_file_names:
        return "lines moved"
    return f"{min(changed_file_names)!r:.80} was changed, added or removed"


def _expected_plan_of_bundle(plan: Plan) -> Plan:
    """Return the plan that follows from the seed of a plan."""
    plan_options: dict[str, Any] = {"seed": plan.seed, "ids": plan.ids, "copies": plan.copies}
    if plan.k:
        plan_options["k"] = plan.k
    else:
        plan_options["unit"] = plan.unit
    plan_type: Any = type(plan)
    expected: Plan = plan_type.create(len(plan), **plan_options)
    return expected


def _model_digest_of_bundle(statement: Any) -> str | None:
    """Return the digest of the model that a statement is about, if it is about one."""
    subject = statement["subject"][0]
    if subject["name"] != "model":
        return None
    model: str | None = subject["digest"]["sha256"]
    if model is not None and not is_digest(model):
        raise FormatError(f"the digest of its model is {shown(model)}")
    return model
