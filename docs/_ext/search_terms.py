"""Words that people search for, and the page that answers: main entries of the index.

The search puts main entries of the index before words in text. So `sklearn` leads to the page on
random splits, whose text rarely has the word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sphinx import addnodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

TERMS = {
    "audits/random-split": (
        *("sklearn", "scikit-learn", "lightgbm", "xgboost", "catboost", "train/test split"),
        "overfitting",
    ),
    "audits/canaries": ("canary", "pytorch", "secret sharer"),
    "tutorials/fine_tune": ("llm", "huggingface", "hugging face", "transformers", "lora", "peft"),
    "audits/dp-sgd": ("opacus", "epsilon of dp-sgd", "accountant"),
    "audits/deletion": ("unlearning", "right to be forgotten", "gdpr"),
    "audits/synthetic": ("synthetic data", "sdv", "gan"),
    "guides/claims-and-thresholds": ("epsilon", "delta"),
    "guides/comparing": ("mlflow", "wandb", "weights & biases", "pandas", "load"),
    "guides/gate": ("pytest", "github actions"),
    "guides/engines": ("spark", "duckdb", "ray"),
    "pitfalls": ("federated", "federated learning", "p-hacking"),
}
"""The words of each page."""


def add_terms(app: Sphinx, doctree: Any) -> None:
    """Add the words of a page as entries of the index, which readers do not see."""
    words = TERMS.get(app.env.docname, ())
    doctree += addnodes.index(entries=[("single", word, "", "main", None) for word in words])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the words."""
    app.connect("doctree-read", add_terms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
