"""What other people's code relies on: the public names and the signatures behind them."""

import importlib
import inspect
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

__all__ = ["FUNCTIONS", "MODULES", "callables", "signatures"]

MODULES: dict[str, Any] = {
    name: importlib.import_module(name)
    for part in (
        *("", ".attacks", ".attacks.synthetic", ".audits", ".claims", ".cuts"),
        *(
            ".datasets",
            ".dp_sgd",
            ".errors",
            ".evidence",
            ".generators",
            ".integrations",
            ".mechanisms",
            ".panoramia",
        ),
        *(".planning", ".planning.canaries", ".propensity", ".results", ".simulate", ".stats"),
        ".testing",
        *(".torch", ".benchmark")[find_spec("torch") is None :],
    )
    for name in [f"leakbound{part}"]
}
HOMES: dict[int, tuple[str, Any]] = {}
"""Every name under the first module that hands it out."""
for _module, _found in MODULES.items():
    for _name in _found.__all__:
        _value = getattr(_found, _name)
        HOMES.setdefault(id(_value), (f"{_module}.{_name}", _value))
FUNCTIONS = {name: value for name, value in HOMES.values() if inspect.isfunction(value)}


def callables() -> Iterator[tuple[str, Any]]:
    """Yield functions, classes but for errors, and their public methods, by name."""
    for name, value in HOMES.values():
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value) and not issubclass(value, Exception):
            yield name, value
            for key, method in inspect.getmembers(value, inspect.isroutine):
                if not key.startswith("_") and callable(method):
                    yield f"{name}.{key}", method


def signatures() -> str:
    """Return a line for each function, class that is made, and method with described parameters."""
    told = {
        name: value
        for name, value in callables()
        if name in FUNCTIONS
        or ("__init__" in vars(value) if inspect.isclass(value) else _described(value))
    }
    return "\n".join(sorted(f"{name}{_bare(value)}" for name, value in told.items()))


def _described(method: Any) -> bool:
    return "Parameters\n" in (method.__doc__ or "")


def _bare(function: Any) -> str:
    """Return a signature without types."""
    signature = inspect.signature(function)
    parameters = [one.replace(annotation=one.empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))
