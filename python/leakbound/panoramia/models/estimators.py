"""Targets and helpers that are no torch modules: estimators of scikit-learn, and functions."""

import hashlib
import pickle
import secrets
from typing import Any

import numpy as np

from leakbound._base.streams import Purpose
from leakbound._base.types import FloatArray
from leakbound.attacks import score
from leakbound.errors import IncompatibleOptionsError
from leakbound.panoramia.examples import Examples
from leakbound.panoramia.options import Inputs

__all__ = ["digest_of", "margins_of", "taught"]

SURE = 37.0
"""Log-odds beyond those that a probability in double precision can have, short of 0 and 1."""


def margins_of(model: Any, examples: Examples, inputs: Inputs | None) -> FloatArray:
    """Return the log-odds of each label; those of probabilities 0 and 1 are ±37.

    They are inputs of baseline and attack, which are models themselves: no bound is cut off.
    """
    if examples.y is None:
        message = "a target that is no torch module must be a classifier: members must have labels"
        raise IncompatibleOptionsError(message)
    x = examples.x if inputs is None else inputs(examples.x)
    found: FloatArray = np.clip(score(model, x, examples.y).values, -SURE, SURE)
    return found[:, None]


def taught(target: Any, lesson: Examples, inputs: Inputs | None, seed: int) -> Any:
    """Return an estimator like the target, fitted to other examples."""
    if not hasattr(target, "get_params"):
        message = (
            f"the target, {type(target).__name__}, is a function, which cannot be trained anew: "
            "pass helper=Helper(network=...), a function that returns a torch network, or "
            "helper=None"
        )
        raise IncompatibleOptionsError(message)
    from sklearn.base import clone

    helper = clone(target)
    drawn = [name for name in helper.get_params() if name.split("__")[-1] == "random_state"]
    helper.set_params(**dict.fromkeys(drawn, Purpose.HELPER_ESTIMATOR.derived(seed, bits=32)))
    return helper.fit(lesson.x if inputs is None else inputs(lesson.x), lesson.y)


def digest_of(model: Any) -> str:
    """Return a digest of an estimator; of a function, whose state nobody knows, a new one."""
    if not hasattr(model, "get_params"):
        return secrets.token_hex(32)
    return hashlib.sha256(pickle.dumps(model)).hexdigest()
