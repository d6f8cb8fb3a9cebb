"""Results for Hugging Face model cards, as plain dictionaries."""

import math

from leakbound._base.formatting import percent
from leakbound._base.types import JsonValue
from leakbound.errors import OptionError
from leakbound.report.description import KINDS
from leakbound.results.base import Audit

# Names of what a refuted curve implies.
_IMPLIED = {
    "advantage": "membership advantage",
    "tpr_at_fpr_0_001": "true positive rate at a false positive rate of 0.1 %",
    "tpr_at_fpr_0_01": "true positive rate at a false positive rate of 1 %",
    "posterior": "posterior of a flagged member, prior 1/2",
}


def model_index(result: Audit, *, model: str, dataset: str) -> list[JsonValue]:
    """Return the bounds of a result as the `model-index` of a Hugging Face model card.

    Parameters
    ----------
    result : AuditResult, PanoramiaResult or ZeroRunResult
        A result that proves something, or tried to: not an estimate, nor an exploratory number.
    model, dataset : str
        Name of the model, and what was audited, in a few words.

    Examples
    --------
    >>> import numpy as np, leakbound as lb
    >>> member = np.arange(300) % 2 == 0
    >>> result = lb.audit(member + np.arange(300) / 1e4, lb.Coins(member))
    >>> index = model_index(result, model="digits", dataset="300 canaries")
    >>> index[0]["results"][0]["metrics"][0]["type"]
    'epsilon_lower_bound'
    """
    names: dict[str, object] = {"model": model, "dataset": dataset}
    for name, text in names.items():
        if not isinstance(text, str) or not text.strip():
            raise OptionError(f"{name} must be a non-empty name, got {text!r:.80}")
    implied, said = result.implied(), result.summary()
    if implied is None:
        raise OptionError(
            f"a result of kind {result.kind!r} is not a bound, not a metric of a model card"
        )
    tag = f"{KINDS[result.kind].tag} at {percent(result.confidence)} confidence"
    at = said.terms.at.strip() or f"at δ = {result.claim.delta:g}"
    bounds = [("epsilon", said.epsilon, f"ε {at}: {tag}")]
    for name, words in _IMPLIED.items():
        value = float(getattr(implied, name))
        bounds.append((name, value, f"{words}: {tag}, implied by the refuted curve"))
    metrics: list[JsonValue] = [
        {"type": f"{name}_lower_bound", "value": value, "name": words}
        for name, value, words in bounds
        if math.isfinite(value)
    ]
    audit: JsonValue = {
        "task": {"type": "privacy-audit", "name": "Privacy audit"},
        "dataset": {"type": "canaries", "name": dataset},
        "metrics": metrics,
    }
    return [{"name": model, "results": [audit]}]
