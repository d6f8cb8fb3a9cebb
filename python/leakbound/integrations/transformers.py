"""Audits of a training run by transformers' `Trainer`, planned before it and made at its end.

Loading this module loads PyTorch and transformers.

Examples
--------
>>> import torch
>>> from leakbound.planning import InclusionPlan
>>> canaries = [{"input_ids": row, "labels": row} for row in torch.randint(9, (40, 6))]
>>> callback = AuditCallback(InclusionPlan.create(40, seed=0), canaries, "cross_entropy")
>>> len(callback.insert([{"input_ids": row, "labels": row} for row in torch.randint(9, (8, 6))]))
28
"""

from typing import TYPE_CHECKING

from leakbound._base.imports import needs

with needs("hf", "leakbound.integrations.transformers"):
    import torch as _torch
    from transformers import TrainerCallback

from leakbound.integrations.planned import PlannedCallback

if TYPE_CHECKING:
    from transformers import TrainerState, TrainingArguments


class AuditCallback(PlannedCallback, TrainerCallback):  # type: ignore[misc]
    """Train on the included canaries, score all of them at the end, leave the audit in a folder.

    ::

        callback = AuditCallback(plan, canaries, "loss_drop")
        trainer = Trainer(model, train_dataset=callback.insert(dataset), callbacks=[callback], …)
        trainer.train()
        callback.result  # also result.json and report.html, in output_dir/audit

    Canaries are batched by the collator of training, so that they are padded as its examples are;
    tokens that an attention mask leaves out have no part in a score. The model may be one of PEFT:
    what is audited is what was trained. A canary that cannot be scored is refused before training.

    Parameters
    ----------
    plan : InclusionPlan
        A fair coin for each canary, tossed before training. Each canary must be unique and must not
        occur in the training data.
    canaries : Dataset, sequence or mapping
        One for each coin: items such as those of the training data, or columns under their names.
    signal : str or callable
        As for `leakbound.torch.score`, such as "cross_entropy", "logit_margin", or "loss_drop"
        from the beginning of training to its end, without a copy of the model.
    claim : PureDP, ApproxDP or a family of trade-off functions, optional
        What to refute; if None, `ApproxDP` at the accountant's δ, or `PureDP` without one.
    confidence : float
        Of the bound, in (0, 1).
    accounted : Accounted or callable, optional
        The accountant's (ε, δ) of the run, put beside what is proved; a function without arguments
        is asked after training, such as ``lambda: accounted_by(engine, delta=1e-5)``.
    out : str or os.PathLike, optional
        Folder for ``result.json`` and ``report.html``; ``audit`` in the run's own if None.
    """

    def on_train_begin(
        self,
        args: "TrainingArguments",
        *_: object,
        model: _torch.nn.Module,
        train_dataloader: object,
        **__: object,
    ) -> None:
        """Check that the canaries are where they should be."""
        is_spread = bool(getattr(args, "deepspeed", None) or getattr(args, "fsdp", None))
        self._begin_training(model, train_dataloader, is_spread=is_spread)

    def on_train_end(
        self,
        args: "TrainingArguments",
        state: "TrainerState",
        *_: object,
        model: _torch.nn.Module,
        train_dataloader: object,
        **__: object,
    ) -> None:
        """Score the canaries, audit, and write; by one process only."""
        if state.is_world_process_zero:
            self._end_training(model, train_dataloader, args.output_dir)
