"""Bounds on MST from the published outputs of *Tight Auditing of DP in MST and AIM*.

    python benches/field/mst_aim.py features.pkl

The file is experimental/audit_dpmm/data/features.pkl in the branch audit-dpmm of sassoftware/dpmm
(pull request #23). It has 5,000 outputs of MST on ten records of zeros ("out") and 5,000 with one
record of ones more ("in"), at (1, 0.01)-DP, and is read without running code that is in it.
"""

import argparse
import pickle
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import leakbound as lb
from leakbound._base.types import BoolArray, FloatArray

IMPLIED = 0.455
"""The µ of the noise, by zCDP; the paper prints 0.43 at 90 %, by a Bayesian interval."""
ONES = [9, 11, 13]
"""Columns of the noisy counts of ones, to each of which the record of ones adds 1."""
RUNS = 9_600, 1_000
"""Fair coins take as many outputs of both kinds but for a few: of 10,000, they leave some."""
CONFIDENCES = 0.90, 0.95
ADMITTED = {
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy._core.multiarray", "_reconstruct"),
}


class ArraysOnly(pickle.Unpickler):
    """Reads arrays of NumPy and containers of Python, and nothing that would run code."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what makes arrays."""
        place = module.replace("numpy.core", "numpy._core")  # as it is called since 2.0
        if (place, name) not in ADMITTED:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of an array")
        return super().find_class(place, name)


def read(path: Path) -> dict[str, FloatArray]:
    """Return the features of outputs with ("in") and without ("out") the record."""
    with path.open("rb") as file:
        features: dict[str, FloatArray] = ArraysOnly(file).load()
    return features


def trials(features: dict[str, FloatArray], runs: int, seed: int) -> tuple[FloatArray, BoolArray]:
    """Return scores and coins: each coin takes the next output of its kind."""
    member = np.random.default_rng(seed).random(runs) < 0.5
    scores = np.empty(runs)
    for kind, is_of_kind in (("in", member), ("out", ~member)):
        noisy_ones = features[kind][:, ONES].sum(axis=1)
        outputs_taken = np.count_nonzero(is_of_kind)
        scores[is_of_kind] = noisy_ones[:outputs_taken]
    return scores, member


def main() -> None:
    """Print bounds for three draws of the coins."""
    parser = argparse.ArgumentParser(description="Bounds on MST from published outputs.")
    parser.add_argument("features", type=Path)
    features = read(parser.parse_args().features)
    table = Table("runs", "confidence", "bounds on µ", title=f"MST: the implied µ is {IMPLIED}")
    for runs in RUNS:
        for confidence in CONFIDENCES:
            bounds = []
            for seed in range(3):
                scores, member = trials(features, runs, seed)
                result = lb.audit(
                    scores,
                    lb.Trials(member),
                    claim=lb.GaussianDP(),
                    confidence=confidence,
                    seed=seed,
                )
                bounds.append(result.bound)
            rounded_bounds = ", ".join(f"{bound:.3f}" for bound in bounds)
            table.add_row(f"{runs:,}", f"{confidence:.0%}", rounded_bounds)
    Console().print(table)


if __name__ == "__main__":
    main()
