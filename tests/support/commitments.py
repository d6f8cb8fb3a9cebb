"""A protocol and its coins, as tests commit to them."""

from typing import Any

import numpy as np

import leakbound as lb

__all__ = ["PROTOCOL", "protocol_toml", "scored"]

PROTOCOL: dict[str, Any] = {
    "claim": {"type": "PureDP"},
    "confidence": 0.95,
    "cuts": "auto",
    "sides": "auto",
    "seed": 0,
    "attacks": ["loss"],
    "unit": "one digit",
    "canaries": "300 mislabelled digits of seed 0, as listed in canaries.csv",
}


def protocol_toml(**changes: str) -> str:
    """Return the protocol as TOML, with lines replaced or added."""
    lines = {
        "confidence": "0.95",
        "cuts": '"auto"',
        "sides": '"auto"',
        "seed": "0",
        "attacks": '["loss"]',
        "unit": '"one digit"',
        "canaries": '"300 mislabelled digits of seed 0, as listed in canaries.csv"',
        "claim": '{ type = "PureDP" }',
    } | changes
    return "".join(f"{name} = {value}\n" for name, value in lines.items())


def scored(m: int = 300, leak: float = 2.0) -> tuple[lb.InclusionPlan, Any]:
    """Return coins, and scores that tell of them."""
    plan = lb.InclusionPlan.create(m, seed=5)
    scores = np.random.default_rng(8).normal(size=m) + leak * plan.member
    return plan, scores
