"""Recorders in place of MLflow and W&B, whose packages tests do not install.

They take the calls that pages show, keep their arguments, and take nothing else.
"""

import contextlib
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Self

__all__ = ["at_hand"]


def _mlflow(kept: list[tuple[str, Any]]) -> Any:
    module: Any = ModuleType("mlflow")

    @contextlib.contextmanager
    def start_run() -> Iterator[None]:
        yield

    def log_metrics(metrics: Mapping[str, float]) -> None:
        # as MLflow: names of text, values that are floats
        assert all(isinstance(name, str) for name in metrics)
        kept.append(("mlflow", {name: float(value) for name, value in metrics.items()}))

    def log_params(params: Mapping[str, Any]) -> None:
        kept.append(("params", dict(params)))

    def log_artifact(local_path: str) -> None:
        kept.append(("artifact", Path(local_path).stat().st_size))

    module.start_run, module.log_metrics = start_run, log_metrics
    module.log_params, module.log_artifact = log_params, log_artifact
    return module


def _wandb(kept: list[tuple[str, Any]]) -> Any:
    module: Any = ModuleType("wandb")

    class Run:
        def __init__(self, config: Mapping[str, Any]) -> None:
            kept.append(("config", dict(config)))

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def log(self, data: Mapping[str, float]) -> None:
            kept.append(("wandb", {name: float(value) for name, value in data.items()}))

    def init(*, project: str, config: Mapping[str, Any]) -> Run:
        assert project
        return Run(config)

    module.init = init
    return module


@contextlib.contextmanager
def at_hand() -> Iterator[list[tuple[str, Any]]]:
    """Put a recorder where a tracker is not installed; yield what they are given."""
    kept: list[tuple[str, Any]] = []
    made = {"mlflow": _mlflow, "wandb": _wandb}
    absent = {name: make(kept) for name, make in made.items() if find_spec(name) is None}
    sys.modules.update(absent)
    try:
        yield kept
    finally:
        for name in absent:
            del sys.modules[name]
