"""The step of transformers' and Lightning's trainers, with their own losses, through the probe."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from opacus import PrivacyEngine
from torch import Tensor, nn
from torch.utils.data import DataLoader

import leakbound as lb
from leakbound.dp_sgd import neighbouring_batches
from leakbound.integrations import opacus_step

with warnings.catch_warnings():  # of the libraries' own imports
    warnings.simplefilter("ignore")
    from lightning import pytorch as lightning
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        Trainer,
        TrainingArguments,
        default_data_collator,
    )

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries about each other
NOISE = 1.1


def private(network: nn.Module, data: Any, collate: Any = None) -> tuple[Any, Any]:
    model, optimizer, _ = PrivacyEngine().make_private(
        module=network.train(),
        optimizer=torch.optim.SGD(network.parameters(), lr=0.1),
        data_loader=DataLoader(data, batch_size=8, collate_fn=collate),
        noise_multiplier=NOISE,
        max_grad_norm=1.0,
    )
    return model, optimizer


def probed(step: Any, data: list[Any], **options: Any) -> lb.dp_sgd.DPStepAudit:
    pairs = neighbouring_batches([data[:8]], data[8:11], sweep=False, **options)
    return lb.probe_dp_step(step, pairs, noise_multiplier=NOISE, runs=16, seed=0)


def test_the_step_of_transformers_trainer(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=32,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=8,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    network = BertForSequenceClassification(config)
    data = [
        {
            "input_ids": torch.randint(32, (8,)),
            "position_ids": torch.arange(8),  # opacus needs these of each example
            "labels": torch.tensor(row % 2),
        }
        for row in range(16)
    ]
    arguments = TrainingArguments(output_dir=str(tmp_path), use_cpu=True, report_to=[])
    trainer = Trainer(model=network, args=arguments, data_collator=default_data_collator)
    model, optimizer = private(network, data, default_data_collator)
    with opacus_step(model, optimizer, trainer.compute_loss, collate=trainer.data_collator) as step:
        audit = probed(step, data, empty=False)  # attention takes no empty batch
    assert audit.refuted_by == ()
    assert 0.5 / NOISE < audit.bound < 1 / NOISE


class Module(lightning.LightningModule):  # type: ignore[misc]
    """Two layers, and the loss of training."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, x: Tensor) -> Any:
        return self.layers(x)

    def training_step(self, batch: Any, _index: int) -> Tensor:
        return nn.functional.cross_entropy(self(batch[0]), batch[1])


def test_the_step_of_a_lightning_module() -> None:
    module = Module()
    data = [(torch.randn(12), torch.tensor(row % 2)) for row in range(16)]
    model, optimizer = private(module, data)
    with opacus_step(model, optimizer, lambda _, batch: module.training_step(batch, 0)) as step:
        audit = probed(step, data)
    assert audit.refuted_by == ()
    assert 0.4 / NOISE < audit.bound < 1 / NOISE
