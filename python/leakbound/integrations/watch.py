"""Watch a training run with DP-SGD: one line around it, and an audit of it afterwards."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from leakbound._base.checks import real, shown
from leakbound._base.imports import needs
from leakbound._base.messages import hinted
from leakbound._base.types import Batches, Neighbours
from leakbound.audits.dp_sgd.audit import audit_dp_sgd
from leakbound.audits.dp_sgd.canaries import CanaryDesign, Observed
from leakbound.audits.dp_sgd.step.neighbours import Pair
from leakbound.audits.dp_sgd.step.probe import probe_dp_step
from leakbound.audits.dp_sgd.step.runs import Step
from leakbound.claims import Claim
from leakbound.errors import AbstentionError, InputTypeError, OptionError
from leakbound.results.dp_sgd import Accounted, DPSGDAudit
from leakbound.results.dp_step import DPStepAudit

if TYPE_CHECKING:
    from opacus.optimizers import DPOptimizer
    from torch.utils.data import DataLoader

    from leakbound.integrations.opacus import WatchedOptimizer


@hinted()
def watch_dp_sgd(
    optimizer: "DPOptimizer",
    *,
    canaries: int = 1_000,
    sampling_rate: float,
    max_steps: int,
    step_canaries: int | None = None,
    examples: "int | DataLoader[Any] | None" = None,
    seed: int | None = None,
    sampling: Batches = "poisson",
    relation: Neighbours | None = None,
    probe: DPStepAudit | None = None,
) -> "DPSGDWatch":
    """Put canaries in every batch of a training run with DP-SGD, to audit the run afterwards.

    The watch is a context manager: train in its block, then call `audit`.

    Parameters
    ----------
    optimizer : opacus.optimizers.DPOptimizer
        What `PrivacyEngine.make_private` returned, with flat or per-layer clipping; with ghost
        clipping if a probe vouches for it.
    canaries : int
        Membership canaries, at least 2: each is in training by its own fair coin.
    sampling_rate : float
        Probability that an example is in a batch, in (0, 1]: that of one logical step.
    max_steps : int
        Logical steps of the run, at least 1 and at most 10^6, declared before training. A run may
        end earlier; steps beyond are not watched.
    step_canaries : int, optional
        Canaries with a coin for every step, at least 2. If None, as many as give 200,000 coins,
        and no more than 200; runs of fewer than 100 steps have up to 500, for 20,000 coins.
    examples : int or torch.utils.data.DataLoader, optional
        Training examples N, without canaries: ``len(dataset)``, or the loader of the dataset. Pass
        it to have the sampling rate tested; otherwise it is not.
    seed : int, optional
        Seed of all coins; a new one if None. Keep it secret: it determines the coins.
    sampling : {"poisson", "fixed_size", "epochs"}
        How the loader makes batches: Poisson samples, a fresh uniform subset of a fixed size in
        each step, or batches of epochs that have each example once, in any order (opacus with
        ``poisson_sampling=False``). The rate of epochs is ``1 / len(loader)``.
    relation : {"add_remove", "zero_out", "replace"}, optional
        How the compared runs differ. With Poisson samples an example is added (the default) or
        replaced; with batches of a fixed size one is replaced. Epochs need a relation: "zero_out",
        where the place of an example stays empty, or "replace".
    probe : DPStepAudit, optional
        A probe of this optimizer's step that shows no fault, which ghost clipping needs: canaries
        are then added after clipping, and the audit tests noise and sampling only.

    Raises
    ------
    InputTypeError
        If the optimizer clips inside the backward pass and was not probed, or adapts its norm.
    OptionError
        If a probe is refuted or inconclusive, or if there is no claim for a sampling under a
        relation: adding an example moves the borders of all later batches of an epoch, and changes
        the rate of batches of a fixed size.

    Notes
    -----
    A canary is one more row of the gradients per example, in four parameter vectors that no model
    uses: norms of examples, the divisor of the sum and the counted steps remain unchanged. Half
    of the step canaries, and q/2 of the membership canaries, are rows of each batch. The vectors
    are in the optimizer during its steps only, so that checkpoints and copies are without them.

    References
    ----------
    M. Nasr et al., "Tight auditing of differentially private machine learning", 2023
    (arXiv 2302.07956); T. Steinke, M. Nasr and M. Jagielski, "Privacy auditing with one (1)
    training run", 2023 (arXiv 2305.08846), on Dirac canaries.

    Examples
    --------
    >>> import torch
    >>> from opacus.optimizers import DPOptimizer
    >>> layer = torch.nn.Linear(2, 1)
    >>> optimizer = DPOptimizer(
    ...     torch.optim.SGD(layer.parameters(), lr=0.1),
    ...     noise_multiplier=1.0,
    ...     max_grad_norm=1.0,
    ...     expected_batch_size=4,
    ... )
    >>> with watch_dp_sgd(optimizer, sampling_rate=0.5, max_steps=1, seed=0) as watch:
    ...     for p in layer.parameters():
    ...         p.grad_sample = torch.zeros(3, *p.shape)
    ...     optimizer.step()
    >>> watch
    DPSGDWatch(1 of 1 steps, 1000 canaries, 500 step canaries)
    """
    design = CanaryDesign.create(
        canaries=canaries,
        step_canaries=step_canaries,
        sampling_rate=sampling_rate,
        max_steps=max_steps,
        seed=seed,
        sampling=sampling,
        relation=relation,
    )
    with needs("dp", "watch_dp_sgd"):
        from leakbound.integrations.opacus import (
            check_watchable_optimizer,
            number_of_training_examples,
        )
    check_watchable_optimizer(optimizer, probe)
    number = None
    if examples is not None:
        number = number_of_training_examples(examples, optimizer)
    return DPSGDWatch(optimizer=optimizer, design=design, examples=number, probe=probe)


class DPSGDWatch:
    """A training run with canaries, from the beginning to the end of its block: `watch_dp_sgd`."""

    def __init__(
        self,
        optimizer: "DPOptimizer",
        design: CanaryDesign,
        examples: int | None,
        probe: DPStepAudit | None = None,
    ) -> None:
        self._optimizer = optimizer
        self._design = design
        self._examples = examples
        self._watched: WatchedOptimizer | None = None
        self._observed: Observed | None = None
        self._probes = list[DPStepAudit]()
        if probe is not None:
            self._probes.append(probe)

    def __enter__(self) -> Self:
        if self._watched is not None or self._observed is not None:
            raise OptionError("this watch has been used: call watch_dp_sgd again for another run")
        from leakbound.integrations.opacus import (
            WatchedGhost,
            WatchedOptimizer,
            check_watchable_optimizer,
            has_ghost_clipping,
        )

        watched = WatchedOptimizer
        if has_ghost_clipping(self._optimizer):
            watched = WatchedGhost
        # Once more: another watch, or a frozen layer, may have come in between.
        check_watchable_optimizer(self._optimizer, next(iter(self._probes), None))
        self._watched = watched(optimizer=self._optimizer, design=self._design)
        return self

    def __exit__(self, *_: object) -> None:
        """Take the canaries out of the optimizer, whatever ended the block."""
        assert self._watched is not None
        self._watched.detach()
        self._observed = self._watched.recorder.observed()

    def probe(
        self,
        step: Step,
        pairs: Iterable[Pair | tuple[Sequence[object], Sequence[object]]],
        **options: Any,
    ) -> DPStepAudit:
        """Probe the step within the block, best before training and at its end.

        The results are in `DPSGDAudit.probes`. A watch has neither model nor loss, so it makes no
        step itself.

        Parameters
        ----------
        step : callable
            What `leakbound.integrations.opacus_step` gives of this optimizer; the watch does not
            count its runs.
        pairs : iterable of Pair or of (D, D')
            Neighbouring batches, as for `leakbound.probe_dp_step`.
        **options : object
            Its other options; the noise multiplier is that of the optimizer.
        """
        if self._watched is None or self._observed is not None:
            raise OptionError("probe the step within the block of the watch")
        noise_multiplier = float(self._optimizer.noise_multiplier)
        options = {"noise_multiplier": noise_multiplier, **options}
        audit = probe_dp_step(step, pairs, **options)
        self._probes.append(audit)
        return audit

    def audit(
        self,
        *,
        accounted: Accounted | tuple[float, float] | None = None,
        claim: Claim | None = None,
        confidence: float = 0.95,
    ) -> DPSGDAudit:
        """Audit the run, once its block has been left.

        Parameters
        ----------
        accounted : Accounted or tuple of float, optional
            The accountant's (ε, δ) of the run, or what `accounted_by` returns.
        claim : PureDP, ApproxDP or a family of trade-off functions, optional
            What membership is audited under; by default `SubsampledGaussianDP` at the rate and
            number of steps declared, `GaussianDP` of epochs, or `ApproxDP` if the noise varied.
        confidence : float
            Of each audit by itself, and of the verdict, in (0, 1).
        """
        observed = self.observed
        assert self._watched is not None
        if not self._watched.is_first_process:
            raise OptionError(
                "canaries are on the first process of distributed training: audit the run there"
            )
        # Each process of distributed training counts its own share of the examples.
        limits_of_examples = self._watched.examples
        if self._examples is not None:
            own_examples = -(-self._examples // self._watched.processes)
            limits_of_examples = (own_examples, own_examples)
        audit = audit_dp_sgd(
            observed,
            accounted=accounted,
            claim=claim,
            confidence=confidence,
            examples=limits_of_examples,
        )
        options = audit.options
        if self._is_ghost:
            options = options | {"clipping": "probed"}
        return replace(audit, options=options, probes=tuple(self._probes))

    @property
    def observed(self) -> Observed:
        """Coins, scores and sizes of batches, once the block has been left."""
        if self._observed is None:
            state = "left"
            if self._watched is None:
                state = "entered"
            raise OptionError(
                f"the block of this watch has not been {state}: audit after training in it"
            )
        return self._observed

    @property
    def _is_ghost(self) -> bool:
        from leakbound.integrations.opacus import has_ghost_clipping

        return has_ghost_clipping(self._optimizer)

    def __repr__(self) -> str:
        design = self._design
        steps = 0
        if self._watched is not None:
            steps = self._watched.recorder.steps
        return (
            f"DPSGDWatch({steps} of {design.max_steps} steps, {design.canaries} canaries, "
            f"{design.step_canaries} step canaries)"
        )


def accounted_by(engine: object, *, delta: float) -> Accounted:
    """Return the ε of the steps so far by the accountant of an opacus PrivacyEngine.

    Sampling rate and noise multiplier are told if they never changed.

    Parameters
    ----------
    engine : opacus.PrivacyEngine
        The engine that made the run private.
    delta : float
        The δ to state ε at, in (0, 1).

    Examples
    --------
    >>> from opacus import PrivacyEngine
    >>> engine = PrivacyEngine(accountant="prv")
    >>> for _ in range(100):
    ...     engine.accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    >>> accounted = accounted_by(engine, delta=1e-5)
    >>> accounted.source, accounted.steps, round(accounted.epsilon, 1)
    ('opacus prv', 100, 0.7)
    """
    checked_delta = real(delta, name="delta", above=0, below=1)
    with needs("dp", "accounted_by"):
        from opacus import PrivacyEngine
    if not isinstance(engine, PrivacyEngine):
        raise InputTypeError(f"engine must be an opacus PrivacyEngine, got {shown(engine)}")
    accountant = engine.accountant
    if not accountant.history:
        raise AbstentionError("the engine has counted no step: ask after training")
    # The history counts steps in runs of one noise multiplier and one rate each.
    *values_of_runs, steps = zip(*accountant.history, strict=True)
    noise_multiplier, sampling_rate = map(_only_value_of_history, values_of_runs)
    return Accounted(
        epsilon=float(engine.get_epsilon(checked_delta)),
        delta=checked_delta,
        source=f"opacus {accountant.mechanism()}",
        sampling_rate=sampling_rate,
        steps=int(sum(steps)),
        noise_multiplier=noise_multiplier,
    )


def _only_value_of_history(values: tuple[float, ...]) -> float | None:
    """Return the value that all have, or None if they differ."""
    if len(set(values)) > 1:
        return None
    return float(values[0])
