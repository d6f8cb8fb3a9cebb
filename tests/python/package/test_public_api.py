"""The public names: listed once, documented to the last parameter; a snapshot holds signatures."""

import inspect
from importlib.metadata import version
from types import ModuleType

import pytest

import leakbound as lb
from leakbound import errors
from public import FUNCTIONS, MODULES


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
def test_public_names_exist_are_listed_once_and_documented(module: ModuleType) -> None:
    names: list[str] = module.__all__
    assert len(names) == len(set(names))
    for name in names:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), f"{name} has no docstring"


def test_every_parameter_is_documented() -> None:
    missing = []
    for name, function in FUNCTIONS.items():
        lines = (inspect.getdoc(function) or "").replace("**", "").splitlines()
        told = {one for line in lines if " :" in line for one in line.split(" :")[0].split(", ")}
        if not set(inspect.signature(function).parameters) <= told:
            missing.append(name)
    # The method of results describes the parameters.
    assert sorted(missing) == ["leakbound.evidence.verify_result"]


def test_every_error_is_ours_and_a_builtin() -> None:
    builtin = (ValueError, TypeError, RuntimeError, ImportError)
    for error in (getattr(errors, name) for name in errors.__all__):
        assert issubclass(error, errors.LeakboundError)
        assert error is errors.LeakboundError or issubclass(error, builtin)


def test_the_version_is_that_of_the_distribution() -> None:
    assert lb.__version__ == version("leakbound")
