"""PANORAMIA from a trained model and its members to the table of bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from leakbound._base.files import Checkpoints
from leakbound.panoramia.examples import Examples
from leakbound.panoramia.phases import Run
from leakbound.panoramia.settings import Settings

if TYPE_CHECKING:
    import os

    from leakbound._base.types import ArrayInput
    from leakbound.panoramia.options import Target
    from leakbound.panoramia.phases import Progress
    from leakbound.panoramia.report import PanoramiaReport


@dataclass(frozen=True)
class Panoramia(Settings):
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
        Of splits, training and coins: the whole second phase is repeated for each. By default three
        new ones, which the report records.
    confidence : float
        Of every result, in (0, 1).
    cuts : CutPolicy
        Which cuts of each ranking are tested.
    union : bool
        Whether the table also has the paper's union bound over all cuts, on the same scores.
    conditional : bool
        Whether it also has lower bounds on ε by Zero-Run on the same scores. They hold if the
        log-odds that an example is real are linear in the baseline's score, with any coefficients
        that the coins do not rule out; tests try to refute it. Not for text, of whose tokens
        sceptics could make nothing.

    Examples
    --------
    >>> from leakbound.generators import GaussianCopula
    >>> audit = Panoramia(GaussianCopula(), seeds=(0, 1, 2, 3, 4))
    >>> # report = audit.run(target=model, members=(x, y), nonmembers=(x_test, y_test))
    """

    def run(
        self,
        *,
        target: Target | Mapping[str, Target],
        members: object,
        ids: ArrayInput | None = None,
        documents: ArrayInput | None = None,
        nonmembers: object = None,
        initial: Target | None = None,
        generator_ids: ArrayInput | None = None,
        checkpoints: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> PanoramiaReport:
        """Audit one target, or several that were trained on the same members.

        Parameters
        ----------
        target : nn.Module, classifier or callable, or mapping of str to them
            Trained models, by name if they are several. Only their outputs are used: logits of a
            torch module, probabilities of a classifier with `predict_proba`, such as those of
            scikit-learn, or of a function that takes inputs.
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
        initial : nn.Module, classifier or callable, optional
            A target before training, for O(1): the score is then the drop of the loss.
        generator_ids : array-like, optional
            Ids of the members that train the generator, or did; they are not audited. By default
            drawn at random.
        checkpoints : str or os.PathLike, optional
            A folder, made if need be, in which each phase leaves its outcome. A run that is
            interrupted goes on from there when it is started again with the same data and options:
            pass `seeds`.
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
        same for all `seeds`, drawn by the first; splits, training of baseline and attack and coins
        are not. Coins are tossed when everything that scores is trained, and no part that trains is
        ever audited.
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
