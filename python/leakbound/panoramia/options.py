"""Options of a run, and how its helpers are trained; all are checked when they are given."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

from leakbound._base.checks import (
    MOST_BATCH,
    choice,
    complement,
    flag,
    instance,
    integer,
    real,
    seed_of,
)
from leakbound._base.types import AnyArray
from leakbound.audits.panoramia.rankings import refuse_second_look
from leakbound.cuts import CutPolicy, KLScan
from leakbound.cuts.policies import check_policy
from leakbound.errors import OptionError
from leakbound.panoramia.models.attack import StackedAttack

if TYPE_CHECKING:
    from torch import nn

Inputs: TypeAlias = Callable[[AnyArray], AnyArray]
Trained: TypeAlias = Literal["generated", "members", "real"]


class Classifier(Protocol):
    """An estimator such as those of scikit-learn."""

    def predict_proba(self, X: object, /) -> Any:  # noqa: N803 (as in scikit-learn)
        """Return probabilities, a row for each example and a column for each class."""


# A trained model: logits of a torch module, probabilities of an estimator or of a function.
Target: TypeAlias = "nn.Module | Classifier | Callable[[Any], Any]"


@dataclass(frozen=True)
class Helper:
    """How to train a helper: a model for the target's task that was trained on no audited member.

    The baseline uses the outputs of helpers as the attack uses those of the target (Kazmi et al.
    2024, section 5.1 and appendix C.1).

    Parameters
    ----------
    trained_on : {"generated", "members", "real"}
        Generated examples; the members that trained the generator, which are never audited; or
        real non-members, which must then be given.
    network : callable, optional
        Returns a torch network for the helper. By default the target's architecture with new
        weights, or an estimator like the target; there is no default for a function.
    epochs, batch_size, learning_rate : int, int and float
        Most passes of Adam over its training data, in batches; it is kept as it was where its loss
        on a tenth held out was smallest.

    Notes
    -----
    A target has learnt what real examples and their labels look like, even if it memorises none.
    A helper trained on generated examples has not, so ε̃ may be too large for a target that leaks
    nothing. A second helper, trained on members, gives the baseline that information. Given the
    members D_G that trained the generator, both helpers are fixed functions of an example, and all
    bounds hold as before: see `docs/theory/panoramia.md`.
    """

    trained_on: Trained = "generated"
    network: "Callable[[], nn.Module] | None" = None
    epochs: int = 20
    batch_size: int = 128
    learning_rate: float = 2e-3

    def __post_init__(self) -> None:
        choice(self.trained_on, name="trained_on", allowed=Trained)
        integer(self.epochs, name="epochs", least=1)
        integer(self.batch_size, name="batch_size", least=1, most=MOST_BATCH)
        real(self.learning_rate, name="learning_rate", above=0)


@dataclass(frozen=True, kw_only=True)
class Options:
    """How models are audited by `run`.

    Parameters
    ----------
    attack, helper : StackedAttack, and Helper, sequence of Helper, or None
        What baseline and attack are, and whose word the baseline has; None for nobody's.
    helper_examples : int, optional
        Generated examples that train helpers; by default as many as there are members.
    inputs : callable, optional
        Turns an array of examples into what targets and helper take; by default examples go in as
        they are.
    shares : (float, float, float)
        Of the members: those that train the generator, that train baseline and attack, and that
        choose among them; the rest is audited.
    saturation : sequence of float
        Shares of the training data, increasing, on which further baselines are trained to see
        whether c_lb still grows.
    seeds : sequence of int
        Of splits, training and coins: the whole second phase is repeated for each. By default three
        new ones, which the report records.
    confidence : float
        Of every result, in (0, 1).
    cuts : CutPolicy
        Which cuts of each ranking are tested.
    device : str, optional
        Where helpers and the networks of baseline and attack train, such as "cuda", or "auto" for
        an accelerator if there is one. By default where the first network among the models is.
    union, conditional : bool
        Whether the table also has the paper's union bound over all cuts, on the same scores; and
        lower bounds on ε by Zero-Run, which hold if the log-odds that an example is real are linear
        in the baseline's score (not for text, of whose tokens sceptics could make nothing).
    """

    attack: StackedAttack = field(default_factory=StackedAttack)
    helper: Helper | Sequence[Helper] | None = field(default_factory=Helper)
    helper_examples: int | None = None
    inputs: Inputs | None = None
    shares: tuple[float, float, float] = (0.3, 0.2, 0.08)
    saturation: tuple[float, ...] = (0.125, 0.25, 0.5)
    seeds: tuple[int, ...] = field(default_factory=lambda: tuple(seed_of(None) for _ in range(3)))
    confidence: float = 0.95
    cuts: CutPolicy = field(default_factory=KLScan)
    device: str | None = None
    union: bool = False
    conditional: bool = False

    def __post_init__(self) -> None:
        instance(self.attack, name="attack", types=StackedAttack)
        flag(self.union, name="union")
        flag(self.conditional, name="conditional")
        for helper in self.helpers:
            instance(helper, name="helper", types=Helper)
        shares_of_members = [real(share, name="shares", above=0, below=1) for share in self.shares]
        if len(shares_of_members) != 3 or sum(shares_of_members) >= 1:
            raise OptionError(
                f"shares must be three numbers that leave members to audit, got {self.shares}"
            )
        if self.helper_examples is not None:
            integer(self.helper_examples, name="helper_examples", least=20)
        training_shares = [
            real(share, name="saturation", above=0, below=1) for share in self.saturation
        ]
        if training_shares != sorted(set(training_shares)):
            raise OptionError(f"saturation must be increasing, got {self.saturation}")
        checked_seeds = [integer(seed, name="seeds", least=0) for seed in self.seeds]
        if not checked_seeds or len(set(checked_seeds)) < len(checked_seeds):
            raise OptionError(f"seeds must be different, and at least one, got {self.seeds}")
        complement(self.confidence)
        check_policy(self.cuts)
        refuse_second_look(self.cuts)
        if self.conditional and self.attack.modality == "text":
            raise OptionError(
                "conditional bounds need features, and tokens cannot be used as such: pass "
                "embeddings, with scores of the report's games, to Panoramia(features=...)"
            )

    @property
    def helpers(self) -> tuple[Helper, ...]:
        """Helpers one by one."""
        if self.helper is None:
            return ()
        if isinstance(self.helper, list | tuple):
            return tuple(self.helper)
        return (cast("Helper", self.helper),)
