"""Audits by callbacks of real trainers, transformers' and Lightning's, on tiny models."""

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import leakbound as lb
from leakbound import errors
from leakbound.integrations.planned import PlannedCallback
from leakbound.results import Accounted

with warnings.catch_warnings():  # of the libraries' own imports
    warnings.simplefilter("ignore")
    from lightning import pytorch as lightning
    from transformers import (
        BertConfig,
        BertForTokenClassification,
        GPT2Config,
        GPT2LMHeadModel,
        T5Config,
        T5ForConditionalGeneration,
        Trainer,
        TrainingArguments,
    )

    from leakbound.integrations.lightning import AuditCallback as LightningCallback
    from leakbound.integrations.transformers import AuditCallback

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries about each other

CANARIES, LENGTH, WORDS = 60, 8, 32
ACCOUNTED = Accounted(epsilon=0.25, delta=1e-5, source="a wish")


@pytest.fixture
def unwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the report, which takes longer than training."""
    monkeypatch.setattr(lb.AuditResult, "report", lambda _, path: path.touch())


def sentences(n: int, seed: int) -> list[dict[str, Tensor]]:
    drawn = torch.randint(WORDS, (n, LENGTH), generator=torch.Generator().manual_seed(seed))
    return [{"input_ids": row, "labels": row} for row in drawn]


def language_model() -> Any:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=WORDS,
        n_positions=LENGTH,
        n_embd=32,
        n_layer=1,
        n_head=2,
        bos_token_id=0,
        eos_token_id=0,
    )
    config.pad_token_id = 0
    return GPT2LMHeadModel(config)


def train(callback: Any, out: Path, **given: Any) -> Any:
    arguments = TrainingArguments(
        output_dir=str(out),
        num_train_epochs=given.pop("epochs", 20),
        per_device_train_batch_size=16,
        learning_rate=1e-2,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        seed=0,
    )
    given.setdefault("train_dataset", None)
    given["train_dataset"] = given["train_dataset"] or callback.insert(sentences(32, 1))
    trainer = Trainer(
        given.pop("model", None) or language_model(), arguments, callbacks=[callback], **given
    )
    trainer.train()
    return trainer


def test_transformers_leaves_a_result_and_a_report(tmp_path: Path) -> None:
    plan = lb.InclusionPlan.create(CANARIES, seed=3)
    callback = AuditCallback(plan, sentences(CANARIES, 2), "loss_drop", accounted=lambda: ACCOUNTED)
    train(callback, tmp_path)
    assert callback.result is not None
    assert callback.scores is not None
    assert callback.scores.signal == "loss_drop"
    assert callback.result.bound > 1
    assert callback.result.claim == lb.ApproxDP(delta=1e-5)
    assert callback.result.checked is not None
    assert callback.result.checked.verdict == "refuted"
    stored = lb.AuditResult.from_json(tmp_path / "audit" / "result.json")
    assert stored == callback.result
    page = (tmp_path / "audit" / "report.html").read_text(encoding="utf-8")
    assert "a wish" in page
    with pytest.raises(errors.OptionError, match="coins are tossed for one"):
        callback.on_train_begin(
            TrainingArguments(output_dir=str(tmp_path), use_cpu=True),
            None,
            None,
            model=torch.nn.Identity(),
            train_dataloader=None,
        )


@pytest.mark.usefixtures("unwritten")
def test_transformers_scores_are_those_of_the_trained_model(tmp_path: Path) -> None:
    plan, canaries = lb.InclusionPlan.create(CANARIES, seed=3), sentences(CANARIES, 2)
    callback = AuditCallback(plan, canaries, "cross_entropy", out=tmp_path / "here")
    trainer = train(callback, tmp_path, epochs=2)
    from leakbound.torch import score

    tokens = torch.stack([one["input_ids"] for one in canaries])
    again = score(trainer.model, tokens, signal="cross_entropy", progress=False)
    assert callback.scores is not None
    np.testing.assert_allclose(callback.scores.values, again.values, rtol=1e-5)
    assert (tmp_path / "here" / "report.html").exists()
    assert not (tmp_path / "audit").exists()


def test_training_data_without_canaries_is_refused(tmp_path: Path) -> None:
    callback = AuditCallback(lb.InclusionPlan.create(4), sentences(4, 2), "cross_entropy")
    with pytest.raises(errors.OptionError, match=r"callback\.insert"):
        train(callback, tmp_path, train_dataset=sentences(32, 1))


class Padding:
    """A collator that pads with 0 on the right, and has labels for padding too."""

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Tensor]:
        longest = max(len(row["input_ids"]) for row in rows)
        tokens = torch.zeros(len(rows), longest, dtype=torch.int64)
        mask = torch.zeros_like(tokens)
        for i, row in enumerate(rows):
            tokens[i, : len(row["input_ids"])] = row["input_ids"]
            mask[i, : len(row["input_ids"])] = 1
        return {"input_ids": tokens, "attention_mask": mask, "labels": tokens}


def ragged(n: int) -> list[dict[str, Tensor]]:
    return [{"input_ids": row["input_ids"][: 4 + i % 4]} for i, row in enumerate(sentences(n, 5))]


@pytest.mark.usefixtures("unwritten")
def test_ragged_canaries_are_padded_by_the_collator_of_training(tmp_path: Path) -> None:
    canaries = ragged(CANARIES)
    callback = AuditCallback(lb.InclusionPlan.create(CANARIES, seed=3), canaries, "cross_entropy")
    trainer = train(callback, tmp_path, epochs=1, data_collator=Padding())
    assert callback.scores is not None
    from leakbound.torch import score

    for i in (0, 1, 2, 3):  # alone, without padding, nothing has to be masked
        tokens = canaries[i]["input_ids"][None]
        (alone,) = score(trainer.model, tokens, signal="cross_entropy", progress=False).values
        np.testing.assert_allclose(callback.scores.values[i], alone, rtol=1e-5)


@pytest.mark.usefixtures("unwritten")
def test_a_model_with_low_rank_adapters(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft", reason="in the group test")
    adapters = peft.LoraConfig(
        r=16, lora_alpha=64, target_modules="all-linear", init_lora_weights=False
    )
    model = peft.get_peft_model(language_model(), adapters)
    frozen = {n: p.detach().clone() for n, p in model.named_parameters() if not p.requires_grad}
    callback = AuditCallback(
        lb.InclusionPlan.create(CANARIES, seed=3), sentences(CANARIES, 2), "loss_drop"
    )
    train(callback, tmp_path, model=model, epochs=20)
    assert callback.result is not None
    assert callback.result.auc > 0.6
    now = dict(model.named_parameters())
    assert all(torch.equal(now[name], old) for name, old in frozen.items())


class Classifier(lightning.LightningModule):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 5))

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.layers(x)
        return logits

    def training_step(self, batch: Any, _: int) -> Tensor:
        return nn.functional.cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), lr=1e-2, eps=1e-4)  # 1e-8 is 0 in half


def points(n: int, seed: int) -> TensorDataset:
    source = torch.Generator().manual_seed(seed)
    return TensorDataset(
        torch.randn(n, 20, generator=source), torch.randint(5, (n,), generator=source)
    )


def fit(callback: Any, out: Path, data: Any, **options: Any) -> None:
    trainer = lightning.Trainer(
        **options,
        default_root_dir=out,
        callbacks=[callback],
        max_epochs=20,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(), DataLoader(data, batch_size=32, shuffle=True))


def test_lightning_leaves_a_result_and_a_report(tmp_path: Path) -> None:
    plan = lb.InclusionPlan.create(CANARIES, seed=3)
    callback = LightningCallback(plan, points(CANARIES, 2), "loss_drop", accounted=ACCOUNTED)
    fit(callback, tmp_path, callback.insert(points(64, 1)))
    assert callback.result is not None
    assert callback.result.bound > 1
    assert callback.result.checked is not None
    assert callback.result.checked.proved == callback.result.bound
    assert lb.AuditResult.from_json(tmp_path / "audit" / "result.json") == callback.result
    assert "a wish" in (tmp_path / "audit" / "report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("unwritten")
@pytest.mark.parametrize("precision", ["bf16-true", "16-true", "64-true", "bf16-mixed"])
def test_lightning_in_every_precision(precision: str, tmp_path: Path) -> None:
    plan = lb.InclusionPlan.create(CANARIES, seed=3)
    callback = LightningCallback(plan, points(CANARIES, 2), "logit_margin")
    fit(callback, tmp_path, callback.insert(points(64, 1)), precision=precision)
    assert callback.result is not None
    assert callback.result.auc > 0.85


class Recurrent(lightning.LightningModule):  # type: ignore[misc]
    """Tags of words: which of two ways its outputs are labelled, nobody can tell from them."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, 8)
        self.memory = nn.GRU(8, 8, batch_first=True)
        self.tags = nn.Linear(8, WORDS)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.tags(self.memory(self.words(x))[0])
        return logits

    def training_step(self, *_: Any) -> Tensor:
        raise AssertionError("training has begun")

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), lr=1e-2)


def test_what_cannot_be_scored_is_refused_before_training(tmp_path: Path) -> None:
    words = torch.randint(WORDS, (CANARIES, LENGTH), generator=torch.Generator().manual_seed(8))
    canaries = TensorDataset(words, (words * 7 + 3) % WORDS)
    callback = LightningCallback(lb.InclusionPlan.create(CANARIES), canaries, "cross_entropy")
    trainer = lightning.Trainer(
        default_root_dir=tmp_path,
        callbacks=[callback],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    rows = DataLoader(callback.insert(canaries), batch_size=32)
    with pytest.raises(errors.OptionError, match="next_token=True"):
        trainer.fit(Recurrent(), rows)


def tagger() -> Any:
    torch.manual_seed(0)
    return BertForTokenClassification(
        BertConfig(
            vocab_size=WORDS,
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            num_labels=5,
        )
    )


def writer() -> Any:
    torch.manual_seed(0)
    return T5ForConditionalGeneration(
        T5Config(
            vocab_size=WORDS,
            d_model=32,
            d_ff=32,
            num_layers=1,
            num_heads=2,
            d_kv=16,
            decoder_start_token_id=0,
            pad_token_id=0,
        )
    )


@pytest.mark.usefixtures("unwritten")
@pytest.mark.parametrize("model", [tagger, writer])
def test_transformers_scores_are_of_the_models_own_loss(model: Any, tmp_path: Path) -> None:
    canaries = [
        {**row, "labels": row["input_ids"] % 5, "attention_mask": torch.ones(LENGTH).long()}
        for row in sentences(CANARIES, 2)
    ]
    for row in canaries:  # of an encoder, whose padding says nothing of the labels of a decoder
        row["attention_mask"][-1] = 0
    callback = AuditCallback(
        lb.InclusionPlan.create(CANARIES, seed=3), canaries, "cross_entropy", out=tmp_path
    )
    data = callback.insert(canaries[:16])
    trainer = train(callback, tmp_path, epochs=1, model=model(), train_dataset=data)
    assert callback.scores is not None
    trained = trainer.model.eval()
    for row, found in zip(canaries[:4], callback.scores.values, strict=False):
        given = {name: part[None] for name, part in row.items()}
        if model is tagger:
            given["labels"] = given["labels"].masked_fill(given["attention_mask"] == 0, -100)
        with torch.no_grad():
            np.testing.assert_allclose(found, -float(trained(**given).loss), rtol=1e-5)


@pytest.mark.parametrize("library", ["transformers", "lightning"])
def test_without_torch_the_extra_is_named(library: str) -> None:
    code = f"import sys; sys.modules['torch'] = None; import leakbound.integrations.{library}"
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert f"MissingExtraError: leakbound.integrations.{library} needs torch" in run.stderr


PLAN = lb.InclusionPlan.create(4)


def planned(**options: Any) -> PlannedCallback:
    usual: dict[str, Any] = {"plan": PLAN, "canaries": points(4, 0), "signal": "logit_margin"}
    return PlannedCallback(**usual | options)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"canaries": points(5, 0)}, errors.InputError, "5 elements but the plan has 4"),
        ({"canaries": {"input_ids": [1, 2]}}, errors.InputError, "2 elements but the plan has 4"),
        ({"plan": [0, 1, 0, 1]}, errors.InputTypeError, "plan must be"),
        ({"accounted": (8, 1e-5)}, errors.InputTypeError, "accounted must be one of Accounted"),
        (
            {"accounted": ACCOUNTED, "claim": lb.GaussianDP(delta=1e-4)},
            errors.OptionError,
            "has no ε without a δ above 0.0001",
        ),
        (
            {"accounted": ACCOUNTED, "claim": lb.PureDP()},
            errors.OptionError,
            "says nothing about delta = 1e-05",
        ),
    ],
)
def test_what_cannot_be_planned(given: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        planned(**given)


def test_canaries_are_rows_like_those_of_the_training_data() -> None:
    for rows in (sentences(4, 0), list(torch.zeros(4, 3)), {"input_ids": torch.zeros(4, 3)}):
        with pytest.raises(errors.InputTypeError, match=r"tuples, got (mappings|Tensor)"):
            planned(canaries=rows).insert(points(6, 1))


def test_training_data_is_the_users_and_then_the_included_canaries() -> None:
    audit, data = planned(), points(6, 1)
    found: Any = audit.insert(data)
    canaries: Any = PLAN.included(points(4, 0))
    included = [tuple(one) for one in canaries]
    expected = [*(tuple(data[i]) for i in range(6)), *included]
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one[0], other[0])
