"""Guarantees that are true of a system, as questions to the result of an audit of it."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from leakbound.claims import FAMILIES, ApproxDP, Claim, GaussianDP
from leakbound.errors import OptionError
from leakbound.results.base import Audit

__all__ = ["ENDLESS", "Question", "endless", "epsilon_at", "joint", "questions", "refuted"]

ENDLESS = 1_000.0
"""An ε that is asked at a δ at which no curve of a family has a finite one."""
_DELTAS = (0.0, 1e-6, 1e-3, 0.1)
"""δ at which a family is asked for its ε, where that is finite."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A true guarantee, as `check` and the other doors of a result take it.

    A question that is not `certain` need not be answered: an `OptionError` may say why not.
    """

    claimed: Mapping[str, Any]
    certain: bool = True

    def __str__(self) -> str:
        """Return the question as a call."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.claimed.items())
        return f"check({given})"


def refuted(result: Audit, question: Question) -> bool:
    """Return whether a result refutes what it is asked; what it must answer, it answers."""
    try:
        verdict = result.check(**question.claimed)
    except OptionError as error:
        if not question.certain:
            return False
        error.add_note(f"asked: {question}")
        raise
    return verdict == "refuted"


def epsilon_at(claim: Claim, truth: float, delta: float) -> float:
    """Return the least ε at δ that is sure of a system at the boundary of a claim."""
    if isinstance(claim, FAMILIES):
        return float(claim.tradeoff(truth).epsilon(delta))
    return truth if delta >= claim.delta else math.inf


def questions(claim: Claim, truth: float, *, replaced: bool) -> tuple[Question, ...]:
    """Return what a result is asked about a system at the boundary of a claim.

    `truth` is the claim's parameter, in what the bound compares. A bound on replacing one example
    is also asked about a system that is at the boundary for adding or removing one, at half of
    that.
    """
    if replaced:
        return tuple(_of_replacing(claim, truth))
    return tuple(_of_adding(claim, truth))


def _of_adding(claim: Claim, truth: float) -> Iterator[Question]:
    for claimed in _stated(claim, truth):
        yield Question(claimed=claimed)
        yield Question(claimed=claimed | {"relation": "add_remove"})
        yield Question(claimed=claimed | {"relation": "replace"}, certain=False)
    for number, claimed in enumerate(endless(claim, truth)):
        relation = {"relation": "add_remove"} if number else {}
        yield Question(claimed=claimed | relation, certain=False)


def _of_replacing(claim: Claim, truth: float) -> Iterator[Question]:
    for claimed in _stated(claim, truth):
        yield Question(claimed=claimed | {"relation": "replace"})
        yield Question(claimed=claimed, certain=False)
    yield from _converted(claim, truth / 2)
    for number, claimed in enumerate(endless(claim, truth)):
        relation = {"relation": "replace" if number else "add_remove"}
        yield Question(claimed=claimed | relation, certain=False)


def _converted(claim: Claim, truth: float) -> Iterator[Question]:
    """Yield claims about adding or removing one example to a bound on replacing one."""
    relation = {"relation": "add_remove"}
    if isinstance(claim, ApproxDP):
        # what follows for replacing one is at the δ of the bound
        delta = claim.delta / (1 + math.exp(truth))
        yield Question(claimed={"epsilon": truth, "delta": delta} | relation)
        # at its own δ the claim says less than the bound could refute
        yield Question(claimed={"parameter": truth} | relation, certain=False)
        return
    # of the families only Gaussian curves without failures become others of theirs
    gaussian = isinstance(claim, GaussianDP) and not claim.delta
    certain = gaussian or not isinstance(claim, FAMILIES)
    for claimed in _stated(claim, truth):
        yield Question(claimed=claimed | relation, certain=certain)


def _stated(claim: Claim, truth: float) -> Iterator[dict[str, Any]]:
    """Yield the boundary, by the claim's parameter and by ε."""
    yield {"parameter": truth}
    for delta in _DELTAS if isinstance(claim, FAMILIES) else (claim.delta,):
        epsilon = epsilon_at(claim, truth, delta)
        if math.isfinite(epsilon):
            yield {"epsilon": epsilon, "delta": delta}
            if not delta:
                yield {"epsilon": epsilon}


def endless(claim: Claim, truth: float) -> Iterator[dict[str, Any]]:
    """Yield an ε at every kind of δ at which no curve of a family has one."""
    if not isinstance(claim, FAMILIES) or math.isfinite(epsilon_at(claim, truth, 0.0)):
        return
    yield {"epsilon": ENDLESS}
    yield {"epsilon": ENDLESS, "delta": 0.0}
    if claim.delta:
        yield {"epsilon": ENDLESS, "delta": claim.delta / 10}
        yield {"epsilon": ENDLESS, "delta": claim.delta}


def joint(epsilon: float, c: float, delta: float) -> tuple[Question, ...]:
    """Return what PANORAMIA is asked: ε together with c, and alone."""
    stated = [{"epsilon": epsilon, "delta": delta}]
    if not delta:
        stated.append({"epsilon": epsilon})
    together = [claimed | {"c": c} for claimed in stated]
    return tuple(Question(claimed=claimed) for claimed in (*stated, *together))
