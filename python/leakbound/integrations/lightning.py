"""Audits of a training run by Lightning's `Trainer`, planned before it and made at its end.

Loading this module loads PyTorch and Lightning.
"""

from __future__ import annotations

from typing import Any

from leakbound._base.extras import needs
from leakbound.integrations.planned import PlannedCallback

with needs("lightning", "leakbound.integrations.lightning"):
    from lightning.pytorch.callbacks import Callback

__all__ = ["AuditCallback"]

_SPREAD = ("DeepSpeedStrategy", "FSDPStrategy", "ModelParallelStrategy")


class AuditCallback(PlannedCallback, Callback):  # type: ignore[misc]
    """Train on the included canaries, score all of them at the end, leave the audit in a folder.

    ::

        callback = AuditCallback(plan, canaries, "logit_margin")
        trainer = Trainer(callbacks=[callback], …)
        trainer.fit(module, DataLoader(callback.insert(dataset), batch_size=64, shuffle=True))
        callback.result  # also result.json and report.html, in default_root_dir/audit

    Scores come from the module's `forward`, which returns logits; canaries are batched by the
    collator of training. A data module calls `insert` where it makes its training data.

    Parameters
    ----------
    plan : InclusionPlan
        A fair coin for each canary, tossed before training; each canary an example of its own,
        which the training data has nowhere else.
    canaries : Dataset, sequence or mapping
        One for each coin: what an item of the training data is, such as a pair (x, y).
    signal : str or callable
        As for `leakbound.torch.score`; "loss_drop" is from the beginning of training to its end,
        without a copy of the model.
    claim : PureDP, ApproxDP or a family of trade-off functions, optional
        What to refute; if None, `ApproxDP` at the accountant's δ, or `PureDP` without one.
    confidence : float
        Of the bound, in (0, 1).
    accounted : Accounted or callable, optional
        What an accountant says of the run, put beside what is proved; a function without arguments
        is asked after training.
    out : str or os.PathLike, optional
        Folder for ``result.json`` and ``report.html``; ``audit`` in the run's own if None.

    Attributes
    ----------
    result : AuditResult or None
        The audit, once training has ended.
    scores : Scores or None
        The scores of all canaries.

    Raises
    ------
    LengthMismatchError
        If there is not one canary for each coin.
    OptionError, OptionTypeError, IncompatibleOptionsError
        If an option is outside its range, of the wrong type, or the signal needs a copy of the
        model. At the start of training: if the training data is not what `insert` returned, the
        model is spread over processes, or the callback has audited a run already.
    MissingExtraError
        If Lightning or matplotlib is not installed.
    """

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Check that the canaries are where they should be."""
        spread = type(trainer.strategy).__name__ in _SPREAD
        self._audit.begin(pl_module, trainer.train_dataloader, spread=spread)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Score the canaries, audit, and write; by one process only."""
        if trainer.is_global_zero:
            self._audit.end(pl_module, trainer.train_dataloader, trainer.default_root_dir)
