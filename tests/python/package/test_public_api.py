"""The public names: listed once, documented to the last parameter; a snapshot holds signatures."""

import inspect
from importlib.metadata import version

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
