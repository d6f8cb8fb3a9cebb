"""The public names: listed once, documented to the last parameter; a snapshot holds signatures."""

import inspect
import re
from importlib.metadata import version
from pathlib import Path

import leakbound as lb
from leakbound import errors
from public import FUNCTIONS, MODULES


def test_public_names_are_listed_once() -> None:
    """Reading `public` has asked for each; ruff sees that they are documented."""
    lists = {name: module.__all__ for name, module in MODULES.items()}
    assert [name for name, names in lists.items() if len(set(names)) < len(names)] == []


def test_every_parameter_is_documented() -> None:
    missing = []
    for name, function in FUNCTIONS.items():
        lines = (inspect.getdoc(function) or "").replace("**", "").splitlines()
        told = {one for line in lines if " :" in line for one in line.split(" :")[0].split(", ")}
        if not set(inspect.signature(function).parameters) <= told:
            missing.append(name)
    assert missing == []


def test_every_error_is_ours_and_a_builtin() -> None:
    builtin = (ValueError, TypeError, RuntimeError, ImportError)
    for error in (getattr(errors, name) for name in errors.__all__):
        assert issubclass(error, errors.LeakboundError)
        assert error is errors.LeakboundError or issubclass(error, builtin)


def test_the_version_is_that_of_the_distribution() -> None:
    assert lb.__version__ == version("leakbound")


SECTIONS = {
    *("Parameters", "Returns", "Yields", "Raises", "Notes", "References", "Examples"),
    *("Attributes", "Sources"),
}


def test_sections_of_docstrings_have_titles() -> None:
    """A rule without a title runs the section into the last parameter."""
    lost = []
    for path in Path(lb.__file__).parent.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for place, line in enumerate(lines):
            title = lines[place - 1].strip()
            if re.fullmatch(r" *-{3,}", line) and title not in SECTIONS:
                lost.append(f"{path.name}: {place}")
    assert lost == []


def test_signatures_name_claims_and_policies() -> None:
    for function in (lb.audit, lb.audit_model, lb.audit_synthetic, lb.Stream):
        shown = str(inspect.signature(function))
        assert "Claim" in shown
        assert "SubsampledGaussianDP" not in shown
        assert "~" not in shown
    assert "cuts: CutPolicy | None" in str(inspect.signature(lb.audit))
