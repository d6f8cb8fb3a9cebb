"""PANORAMIA from a trained model and its members to the table of bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from leakbound._base.checkpoints import Checkpoints
from leakbound._base.validation import complement, flag, instance, integer, real
from leakbound.cuts import CUT_POLICIES, CutPolicy, KLScan
from leakbound.errors import IncompatibleOptionsError, OptionError, OptionTypeError
from leakbound.panoramia.examples import Examples
from leakbound.panoramia.models.attack import StackedAttack
from leakbound.panoramia.options import Helper, each_helper
from leakbound.panoramia.phases import Run

if TYPE_CHECKING:
    import os

    from torch import nn

    from leakbound._base.types import ArrayInput
    from leakbound.generators import Generator, Sampler
    from leakbound.panoramia.options import Inputs
    from leakbound.panoramia.phases import Progress
    from leakbound.panoramia.report.report import PanoramiaReport

__all__ = ["Panoramia"]


@dataclass(frozen=True)
class Panoramia:
    """An audit of trained models without retraining them: every phase, from members to bounds.

    Some members train a generator; the others are compared with what it generates. A baseline says
    how well the two can be told apart from the examples alone, an attack how well with what the
    target says of them; what the attack proves beyond the baseline is put down to the target.

    Parameters
    ----------
    generator : Generator
        Learns from members that are then not audited; see `leakbound.generators`. One that is
        fitted already, a `Sampler`, needs `generator_ids` when it is run.
    attack : StackedAttack
        What baseline and attack are.
    helper : Helper, sequence of Helper, or None
        The model whose word the baseline has, or several; None for a baseline without one.
    inputs : callable, optional
        Turns an array of examples into what targets and helper take; by default examples go in as
        they are.
    generator_share, train_share, validation_share : float
        Shares of the members that train the generator, train baseline and attack, and choose among
        them; the rest is audited.
    helper_examples : int, optional
        Generated examples that train helpers; by default as many as there are members.
    saturation : sequence of float
        Shares of the training data, increasing, on which further baselines are trained to see
        whether c_lb still grows.
    seeds : sequence of int
        Of splits, training and coins: the whole second phase is repeated for each.
    confidence : float
        Of every result, in (0, 1).
    cuts : CutPolicy
        Which cuts of each ranking are tested.
    union : bool
        Whether the table also has the paper's union bound over all cuts, on the same scores.
    conditional : bool
        Whether it also has lower bounds on ε by Zero-Run on the same scores. They hold if the
        probability that an example is real, given the baseline's score, is what a model learnt from
        the validation part says; a sceptic tries to refute it. Not for text, of whose tokens the
        sceptic could make nothing.
    columns : sequence of str, optional
        Names of a table's columns, by which the report names those whose extremes give members
        away; "feature 0" and so on if None.

    Examples
    --------
    >>> from leakbound.generators import GaussianCopula
    >>> audit = Panoramia(GaussianCopula(), seeds=(0, 1, 2, 3, 4))
    >>> # report = audit.run(target=model, members=(x, y), nonmembers=(x_test, y_test))
    """

    generator: Generator | Sampler
    _: KW_ONLY
    attack: StackedAttack = field(default_factory=StackedAttack)
    helper: Helper | Sequence[Helper] | None = field(default_factory=Helper)
    inputs: Inputs | None = None
    generator_share: float = 0.3
    train_share: float = 0.2
    validation_share: float = 0.08
    helper_examples: int | None = None
    saturation: tuple[float, ...] = (0.125, 0.25, 0.5)
    seeds: tuple[int, ...] = (0, 1, 2)
    confidence: float = 0.95
    cuts: CutPolicy = field(default_factory=KLScan)
    union: bool = False
    conditional: bool = False
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not (hasattr(self.generator, "fit") or hasattr(self.generator, "sample")):
            message = (
                f"generator must have a method fit or sample, got {self.generator!r}; see "
                "leakbound.generators"
            )
            raise OptionTypeError(message)
        instance(self.attack, "attack", StackedAttack)
        flag(self.union, "union")
        flag(self.conditional, "conditional")
        each_helper(self.helper)
        shares = ("generator_share", "train_share", "validation_share")
        for name in shares:
            real(getattr(self, name), name, above=0, below=1)
        if sum(getattr(self, name) for name in shares) >= 1:
            message = f"{', '.join(shares)} must leave members to audit: their sum must be below 1"
            raise IncompatibleOptionsError(message)
        if self.helper_examples is not None:
            integer(self.helper_examples, "helper_examples", least=20)
        ends = [0.0, *(real(x, "saturation", above=0, below=1) for x in self.saturation)]
        if any(high <= low for low, high in pairwise(ends)):
            message = f"saturation must increase, got {self.saturation}"
            raise OptionError(message)
        seeds = [integer(seed, "seeds", least=0) for seed in self.seeds]
        if not seeds or len(set(seeds)) < len(seeds):
            message = f"seeds must be different, and at least one, got {self.seeds}"
            raise OptionError(message)
        complement(self.confidence)
        instance(self.cuts, "cuts", CUT_POLICIES)
        if self.conditional and self.attack.modality == "text":
            message = (
                "conditional bounds need features that a sceptic can bet on, and tokens are none; "
                "pass features such as embeddings, with the scores of the report's games, to "
                "audit_panoramia(features=...)"
            )
            raise IncompatibleOptionsError(message)

    def run(
        self,
        *,
        target: nn.Module | Mapping[str, nn.Module],
        members: object,
        ids: ArrayInput | None = None,
        documents: ArrayInput | None = None,
        nonmembers: object = None,
        initial: nn.Module | None = None,
        generator_ids: ArrayInput | None = None,
        checkpoints: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> PanoramiaReport:
        """Audit one target, or several that were trained on the same members.

        Parameters
        ----------
        target : nn.Module, or mapping of str to nn.Module
            Trained models, by name if they are several. Only their outputs are used.
        members : pair of array-like, or array-like
            Inputs and labels of examples that all targets were trained on.
        ids : array-like, shape (n,), optional
            A different number or string for each member; by default 0, 1, …, n - 1.
        documents : array-like, shape (n,), optional
            Which document each member is a piece of, where members are pieces of documents: those
            of one document train the generator together or not at all.
        nonmembers : pair of array-like, or array-like, optional
            Real examples of the same distribution that no target was trained on. With them the
            table has the rows RM;RN and O(1) beside those of PANORAMIA.
        initial : nn.Module, optional
            A target before training, for O(1): the score is then the drop of the loss.
        generator_ids : array-like, optional
            Ids of the members that train the generator, or did; they are not audited. By default
            drawn at random.
        checkpoints : str or os.PathLike, optional
            A folder, made if need be, in which each phase leaves its outcome. A run that is
            interrupted goes on from there when it is started again with the same data and options.
        progress : callable, optional
            Called with what is being done and the share done.

        Returns
        -------
        PanoramiaReport
            One row for each target and audit, with every seed's result.

        Raises
        ------
        ArrayTypeError, ShapeError, LengthMismatchError
            If members or non-members are no such data.
        DuplicateIdsError
            If an id occurs twice.
        GeneratedDuplicatesError
            If the generator returns more copies of members than chance explains.
        CheckpointError
            If the folder holds outcomes of other data or options, or a damaged one.
        IncompatibleOptionsError
            If a helper learns from real non-members and there are none, or from members of the
            generator and there are fewer than 20, the generator is fitted
            and `generator_ids` are not given, or too few examples are left for a part.
        NaNScoresError
            If a model says NaN of an example.
        MissingExtraError
            If torch or scikit-learn is not installed.
        OSError
            If the checkpoints cannot be written.

        Notes
        -----
        All of a run is random by its seeds alone: members for the generator and samples are the
        same for all `seeds`; splits, training of baseline and attack and coins are not. Coins are
        tossed when everything that scores is trained, and no part that trains is ever audited.
        """
        run = Run.of(
            self,
            dict(target) if isinstance(target, Mapping) else {"target": target},
            Examples.read(members, "members"),
            None if nonmembers is None else Examples.read(nonmembers, "nonmembers"),
            initial,
            ids,
            documents,
            generator_ids,
            progress,
        )
        return run.report(Checkpoints(checkpoints, run.made_of()))
