"""Designs by name, and audits of options that were stored as one set."""

from inspect import signature
from typing import Any, Literal, TypeAlias

from leakbound import audits
from leakbound._base.records import derived
from leakbound.audits.road import AnyDesign, Design, audit
from leakbound.audits.subgroups import SUBGROUP, one_of
from leakbound.errors import FormatError

DESIGNS = {
    "coins": "Coins",
    "trials": "Trials",
    "random_split": "RandomSplit",
    "panoramia": "Panoramia",
    "zero_run": "ZeroRun",
    "choices": "Choices",
}
"""Classes of designs by the names that results have of them; each is imported when it is used."""
DesignOfProtocol: TypeAlias = Literal["coins", "random_split", "choices"]
"""Names of designs of one run in which members are drawn, which a protocol can fix in advance."""
SHARED = ("claim", "confidence", "cuts", "sides", "ids", "by", "seed")
"""Options of `leakbound.audit`, whatever the design; others are the design's own."""


def design_of(name: str) -> type[AnyDesign]:
    """Return the class of a design by its name, one from outside the package too."""
    if name in DESIGNS:
        design_of_package: type[AnyDesign] = getattr(audits, DESIGNS[name])
        return design_of_package
    derived_design: type[AnyDesign] | None = derived(Design, name, attribute="name")
    if derived_design is None:
        raise FormatError(f"unknown design {name!r:.60}: import the module that defines it")
    return derived_design


def is_known(name: str) -> bool:
    """Return whether a design of this name is in the package, or was derived outside it."""
    return name in DESIGNS or derived(Design, name, attribute="name") is not None


def parameters_of(name: str) -> set[str]:
    """Return what an audit takes; what `Choices` drew is stored as `member`."""
    parameter_names = {"scores", *SHARED, *SUBGROUP, *signature(design_of(name)).parameters}
    if name == "choices":
        return parameter_names - {"chosen"} | {"member"}
    return parameter_names


def audit_of(design: str, scores: Any, **options: Any) -> Any:
    """Audit scores by the name of a design and all options together, as they are stored."""
    shared_options = {name: options.pop(name) for name in SHARED if name in options}
    if design == "choices":
        options["chosen"] = options.pop("member")
    options_of_subgroup = {name: options.pop(name) for name in SUBGROUP if name in options}
    design_result = audit(scores, design_of(design)(**options), **shared_options)
    if options_of_subgroup:
        return one_of(design_result, **options_of_subgroup)
    return design_result
