"""Helpers: models for the target's task that saw no member that is audited."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from numpy.typing import NDArray

from leakbound._base.checks import choice, integer, real

if TYPE_CHECKING:
    from torch import nn

Inputs: TypeAlias = Callable[[NDArray[Any]], NDArray[Any]]
Trained: TypeAlias = Literal["generated", "members", "real"]


class Classifier(Protocol):
    """An estimator such as those of scikit-learn."""

    def predict_proba(self, X: Any, /) -> Any:  # noqa: N803 (as in scikit-learn)
        """Return probabilities, a row for each example and a column for each class."""


Target: TypeAlias = "nn.Module | Classifier | Callable[[Any], Any]"
"""A trained model: logits of a torch module, probabilities of an estimator or of a function."""


@dataclass(frozen=True)
class Helper:
    """How to train a helper: a model for the target's task that saw no member that is audited.

    What helpers say of an example are features of the baseline, as what the target says is one of
    the attack: without them the baseline would be weaker for want of a model, and the difference
    would be put down to the target (Kazmi et al. 2024, section 5.1 and appendix C.1).

    Parameters
    ----------
    trained_on : {"generated", "members", "real"}
        Generated examples, which need nothing else; the members that the generator learnt from,
        which are never audited; or real non-members, which must then be given.
    network : callable, optional
        Returns a torch network of the helper's own; by default the target's architecture is
        initialised anew, or an estimator like the target fitted. A target that is a function has
        no such default.
    epochs : int
        Most passes over its training data; it is kept as it was where its loss on a tenth held out
        was smallest.
    batch_size : int
        Examples in a batch.
    learning_rate : float
        Of Adam.

    Notes
    -----
    A target knows what real examples and their labels look like, even where it remembers none of
    them. A helper trained on generated examples does not, so that an attack on a target that leaks
    nothing may still tell generated examples better than the baseline, and ε̃ is too large. A helper
    trained on members knows it too. The two together are the stronger baseline.

    Both are valid, as the generator is: they are functions of the members D_G that it learnt from
    and of randomness of their own. All statements of the audit are made given D_G. If members are
    independent, or are divided at random, the members audited are as they would be without the
    helper; the coins are tossed later, and replacing a member that is audited changes no helper. So
    given D_G, what helpers say is a fixed function of the example, a baseline that sees it is still
    a function of the example alone, and P(member | example) ≤ σ(c) and, with an ε-DP target,
    ≤ σ(c + ε) hold as before.
    """

    trained_on: Trained = "generated"
    network: "Callable[[], nn.Module] | None" = None
    epochs: int = 20
    batch_size: int = 128
    learning_rate: float = 2e-3

    def __post_init__(self) -> None:
        choice(self.trained_on, "trained_on", Trained)
        integer(self.epochs, "epochs", least=1)
        integer(self.batch_size, "batch_size", least=1)
        real(self.learning_rate, "learning_rate", above=0)
