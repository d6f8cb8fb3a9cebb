"""Audits of a training run by Lightning's `Trainer`, planned before it and made at its end.

Loading this module loads PyTorch and Lightning.
"""

from typing import TYPE_CHECKING

from leakbound._base.imports import needs

with needs("lightning", "leakbound.integrations.lightning"):
    import torch as _torch  # noqa: F401
    from lightning.pytorch.callbacks import Callback

from leakbound.integrations.planned import PlannedCallback

if TYPE_CHECKING:
    from lightning.pytorch import LightningModule, Trainer

# Strategies that leave a process only a part of the model.
_SHARDING_STRATEGIES = ("DeepSpeedStrategy", "FSDPStrategy", "ModelParallelStrategy")


class AuditCallback(PlannedCallback, Callback):  # type: ignore[misc]
    """Train on the included canaries, score all of them at the end, leave the audit in a folder.

    ::

        callback = AuditCallback(plan, canaries, "logit_margin")
        trainer = Trainer(callbacks=[callback], …)
        trainer.fit(module, DataLoader(callback.insert(dataset), batch_size=64, shuffle=True))
        callback.result  # also result.json and report.html, in default_root_dir/audit

    Scores come from the module's `forward`, which returns logits; canaries are batched by the
    collator of training. A data module calls `insert` where it makes its training data.

    Arguments, attributes and errors are those of
    `leakbound.integrations.transformers.AuditCallback`; a canary is what an item of the training
    data is, such as a pair (x, y), and ``audit`` is a folder of the trainer's default_root_dir.
    """

    def on_train_start(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """Check that the canaries are where they should be."""
        is_spread = type(trainer.strategy).__name__ in _SHARDING_STRATEGIES
        self._begin_training(pl_module, trainer.train_dataloader, is_spread=is_spread)

    def on_train_end(self, trainer: "Trainer", pl_module: "LightningModule") -> None:
        """Score the canaries, audit, and write; by one process only."""
        if trainer.is_global_zero:
            self._end_training(pl_module, trainer.train_dataloader, trainer.default_root_dir)
