"""How helper, attack and audit are made: options that are checked when they are given."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from numpy.typing import NDArray

from leakbound._validate import choice, integer, real

if TYPE_CHECKING:
    from torch import nn

__all__ = ["Helper", "Inputs", "Trained"]

Inputs: TypeAlias = Callable[[NDArray[Any]], NDArray[Any]]
Trained: TypeAlias = Literal["generated", "real"]


@dataclass(frozen=True)
class Helper:
    """How to train the helper: a model for the target's task that saw no member.

    What the helper says of an example is a feature of the baseline, as what the target says is one
    of the attack: without it the baseline would be weaker for want of a model, and the difference
    would be put down to the target (Kazmi et al. 2024, section 5.1 and appendix C.1).

    Parameters
    ----------
    trained_on : {"generated", "real"}
        Generated examples, which is best by the paper's tables 2 and 5 and needs nothing else; or
        real non-members, which must then be given.
    network : callable, optional
        Returns a network of the helper's own; by default the target's architecture is initialised
        anew.
    epochs : int
        Most passes over its training data; it is kept as it was where its loss on a tenth held out
        was smallest.
    batch_size : int
        Examples in a batch.
    learning_rate : float
        Of Adam.

    Examples
    --------
    >>> Helper(epochs=10)
    Helper(trained_on='generated', network=None, epochs=10, batch_size=128, learning_rate=0.002)
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
