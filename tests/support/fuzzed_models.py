"""Functions that take models, tables or steps, and usual arguments of theirs, for the fuzzer."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

import leakbound as lb
import toy_steps
from fuzzed import CLAIMS, ODDS, SEEDS, TABLE, TOSSED, Calls, M
from leakbound import propensity
from leakbound import torch as of_torch

__all__ = ["MODELS"]

RNG = np.random.default_rng(1)
X = RNG.normal(size=(M, 3))
Y = (X[:, 0] + RNG.normal(size=M) > 0).astype(int)
HALVES: list[Any] = [(X[:30], Y[:30]), (X[30:], Y[30:]), (pd.DataFrame(X[:30]), Y[:30])]
MODEL = LogisticRegression().fit(*HALVES[0])
MADE = pd.DataFrame({"a": RNG.integers(0, 4, 40), "b": RNG.normal(size=40), "c": list("xyzw") * 10})
TABLES: list[Any] = [MADE, MADE.iloc[::-1].reset_index(drop=True), MADE.sample(30, random_state=0)]
TEXTS = torch.randint(10, (6, 5), generator=torch.Generator().manual_seed(0))
COLUMNS = {"id": [7, 8], "cat": [0.1, 0.4], "dog": [0.3, 0.2], "label": [0, 1]}
RECORDS: list[Any] = [pa.table(COLUMNS), pa.RecordBatch.from_pydict(COLUMNS)]


class Language(nn.Module):
    """A language model of ten tokens, which answers logits."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.rows = nn.Embedding(10, 10)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.rows(tokens)  # type: ignore[no-any-return]


def modelled(**given: Any) -> float:
    return lb.audit_model(MODEL, **given).bound


def generated(**given: Any) -> float:
    return lb.audit_synthetic(**given).bound


def random_split(scores: Any, member: Any, features: Any, seed: Any) -> float:
    return lb.audit(scores, lb.RandomSplit(member, features=features), seed=seed).bound


def probed(pairs: Any, **options: Any) -> str:
    step = toy_steps.Toy()
    return str(lb.probe_dp_step(step, pairs, noise_multiplier=toy_steps.SIGMA, **options))


def asked(records: Any, **options: Any) -> Any:
    scorer = of_torch.Scorer("torch.nn:Identity", device="cpu", **options)
    return scorer(records)["score"].to_numpy()


MODELS: Calls = {
    "audit_model": (
        modelled,
        {
            "train": HALVES[:1],
            "test": HALVES[1:2],
            "signal": ["logit_margin", "cross_entropy"],
            "seed": SEEDS,
        },
    ),
    "audit_model of claims": (
        modelled,
        {
            "train": HALVES[2:],
            "test": [(pd.DataFrame(X[30:]), Y[30:])],
            "claim": [None, *CLAIMS],
            "confidence": [0.9],
            "challenge": [True, False],
        },
    ),
    "audit_synthetic": (
        generated,
        {
            "members": TABLES,
            "nonmembers": TABLES,
            "synthetic": TABLES,
            "reference": [None, TABLES[2]],
        },
    ),
    "audit_synthetic of options": (
        partial(generated, members=TABLES[0], nonmembers=TABLES[1], synthetic=TABLES[2]),
        {
            "claim": CLAIMS[:3],
            "attacks": ["default", "nearest_synthetic"],
            "columns": [None, {"a": "stratum"}],
            "missing": [(), ("?",)],
            "seed": SEEDS,
        },
    ),
    "RandomSplit(features=)": (
        random_split,
        {
            "scores": [RNG.normal(size=M), RNG.normal(size=M).round(1)],
            "member": [np.arange(M) % 2 == 0, RNG.permutation(M) < 20],
            "features": [*TABLE, pd.DataFrame({"a": list("xyz") * 20, "b": range(M)}), None],
            "seed": SEEDS,
        },
    ),
    "probe_dp_step": (
        probed,
        {
            "pairs": [toy_steps.pairs_of()],
            "relation": ["add_remove"],
            "runs": [8, 32],
            "steps": [2, 6],
            "seed": SEEDS,
        },
    ),
    "probe_dp_step of steps": (
        lb.probe_dp_step,
        {
            "step": [toy_steps.Toy(), toy_steps.Toy(single=True)],
            "pairs": [toy_steps.pairs_of()],
            "noise_multiplier": [toy_steps.SIGMA, 2.0],
            "confidence": [0.9, 0.999],
        },
    ),
    "falsify": (
        propensity.falsify,
        {
            "log_odds": [np.log(p / (1 - p)) for p in ODDS],
            "X": TABLE,
            "member": TOSSED,
            "seed": SEEDS,
        },
    ),
    "token_losses": (
        partial(of_torch.token_losses, progress=False),
        {
            "model": [Language()],
            "data": [TEXTS, TEXTS.numpy(), {"input_ids": TEXTS}, [TEXTS[0], TEXTS[1]]],
            "batch_size": [2, 256],
            "device": ["cpu"],
        },
    ),
    "Scorer": (
        asked,
        {
            "records": RECORDS,
            "inputs": [("cat", "dog")],
            "label": ["label"],
            "keep": [(), ("label",)],
        },
    ),
    "Scorer of signals": (
        asked,
        {
            "records": RECORDS[:1],
            "inputs": [("cat", "dog")],
            "signal": ["cross_entropy", "logit_margin", None],
            "dtype": [None, "float32"],
            "batch_size": [1, 32],
        },
    ),
}
"""Audits of models, tables and steps, tests of propensities, and losses of networks."""
