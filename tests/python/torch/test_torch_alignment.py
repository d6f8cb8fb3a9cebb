"""Which labels a model predicts, what it is given beside the data, and padding on the left."""

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from leakbound.errors import InputError, InputTypeError, OptionError
from leakbound.torch import score, token_losses

with warnings.catch_warnings():  # of the libraries' own imports
    warnings.simplefilter("ignore")
    import transformers as hf
    from lightning import pytorch as lightning

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore")  # of transformers about its options

VOCABULARY, LENGTH, EXAMPLES = 40, 9, 6
SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "max_position_embeddings": 32,
}
GPT2 = hf.GPT2Config(
    vocab_size=VOCABULARY, n_positions=32, n_embd=32, n_layer=1, n_head=2, num_labels=VOCABULARY
)
BART = hf.BartConfig(
    vocab_size=VOCABULARY,
    d_model=32,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=2,
    decoder_attention_heads=2,
    encoder_ffn_dim=32,
    decoder_ffn_dim=32,
    max_position_embeddings=32,
)
T5 = hf.T5Config(
    vocab_size=VOCABULARY,
    d_model=32,
    d_ff=32,
    num_layers=1,
    num_heads=2,
    d_kv=16,
    decoder_start_token_id=0,
)


class Wrapped(lightning.LightningModule):  # type: ignore[misc]
    """A module around a model of transformers, which returns its logits alone."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tensor, **others: Tensor) -> Tensor:
        logits: Tensor = self.model(tokens, **others).logits
        return logits


def adapted(model: Any, **options: Any) -> Any:
    peft = pytest.importorskip("peft", reason="in the group test")
    return peft.get_peft_model(model, peft.LoraConfig(init_lora_weights=False, **options))


MODELS: dict[str, Callable[[], Any]] = {
    "GPT-2": lambda: hf.GPT2LMHeadModel(GPT2),
    "Llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES)),
    "half precision": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES)).bfloat16(),
    "BERT as a decoder": lambda: hf.BertLMHeadModel(hf.BertConfig(**SIZES, is_decoder=True)),
    "masked BERT": lambda: hf.BertForMaskedLM(hf.BertConfig(**SIZES)),
    "RoBERTa as a decoder": lambda: hf.RobertaForCausalLM(
        hf.RobertaConfig(**SIZES, is_decoder=True, pad_token_id=1)
    ),
    "tags by BERT": lambda: hf.BertForTokenClassification(
        hf.BertConfig(**SIZES, num_labels=VOCABULARY)
    ),
    "tags by GPT-2": lambda: hf.GPT2ForTokenClassification(GPT2),
    "BART": lambda: hf.BartForConditionalGeneration(BART),
    "the decoder of BART": lambda: hf.BartForCausalLM(
        copy.deepcopy(BART)
    ),  # whose labels are shifted before
    "T5": lambda: hf.T5ForConditionalGeneration(T5),
    "adapted GPT-2": lambda: adapted(hf.GPT2LMHeadModel(GPT2), task_type="CAUSAL_LM"),
    "adapted T5": lambda: adapted(hf.T5ForConditionalGeneration(T5), task_type="SEQ_2_SEQ_LM"),
    "adapted without a task": lambda: adapted(
        hf.BertForTokenClassification(hf.BertConfig(**SIZES, num_labels=VOCABULARY)),
        target_modules=["query"],
    ),
    "GPT-2 in parallel": lambda: nn.DataParallel(hf.GPT2LMHeadModel(GPT2)),
    "GPT-2 in a module": lambda: Wrapped(hf.GPT2LMHeadModel(GPT2)),
    "BERT in a module": lambda: Wrapped(hf.BertForMaskedLM(hf.BertConfig(**SIZES))),
    "T5 in a module": lambda: Wrapped(hf.T5ForConditionalGeneration(T5)),
}
SEQUENCES = {"BART", "T5", "adapted T5", "T5 in a module"}


def model_of(name: str) -> Any:
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    for weights in model.parameters():  # far from the equal logits of the beginning
        weights.data = 3 * weights.data if weights.ndim > 1 else weights.data
    return model


def tokens(seed: int = 1) -> Tensor:
    return torch.randint(
        5, VOCABULARY, (EXAMPLES, LENGTH), generator=torch.Generator().manual_seed(seed)
    )


def some_labels() -> Tensor:
    labels = tokens(2)
    labels[:, 3] = -100
    return labels


def own_scores(model: nn.Module, **given: Tensor) -> list[float]:
    """Return minus the loss that a model of transformers computes itself, row by row."""
    inner: Any = model.model if isinstance(model, Wrapped) else model
    with torch.no_grad():
        rows = [{part: table[i : i + 1] for part, table in given.items()} for i in range(EXAMPLES)]
        return [-float(inner(**row).loss) for row in rows]


def scores(model: nn.Module, data: Any, **options: Any) -> Any:
    found = score(model, data, signal="cross_entropy", batch_size=4, progress=False, **options)
    return found.values


@pytest.mark.parametrize("labels", ["the tokens", "others"])
@pytest.mark.parametrize("name", MODELS)
def test_scores_are_of_the_loss_that_the_model_is_trained_by(name: str, labels: str) -> None:
    model, given = model_of(name), tokens() if labels == "the tokens" else some_labels()
    found = scores(model, {"input_ids": tokens(), "labels": given})
    expected = own_scores(model, input_ids=tokens(), labels=given)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(scores(model, (tokens(), given)), expected, rtol=1e-5)


@pytest.mark.parametrize("name", ["BART", "T5", "adapted T5", "T5 in a module"])
def test_labels_of_a_decoder_with_inputs_of_its_own(name: str) -> None:
    model, labels = model_of(name), some_labels()
    read = torch.cat([torch.zeros(EXAMPLES, 1, dtype=torch.int64), tokens(2)[:, :-1]], 1)
    parts = {"input_ids": tokens()[:, :5], "decoder_input_ids": read, "labels": labels}
    np.testing.assert_allclose(scores(model, parts), own_scores(model, **parts), rtol=1e-5)


def test_labels_of_a_decoder_are_padded_on_the_right() -> None:
    model, labels = model_of("T5"), tokens(2)
    right, left = labels.clone(), labels.clone()
    right[1, 4:] = left[1, :4] = -100
    found = scores(model, (tokens(), right))
    np.testing.assert_allclose(
        found[1], scores(model, (tokens()[1:2], labels[1:2, :4]))[0], rtol=1e-5
    )
    with pytest.raises(InputError, match="pad labels on the right, or pass decoder_input_ids"):
        scores(model, (tokens(), left))


@pytest.mark.parametrize("name", MODELS)
def test_tokens_alone_are_of_models_that_predict_the_next_one(name: str) -> None:
    model = model_of(name)
    if name in SEQUENCES:
        with pytest.raises(InputError, match="pass what it should write as labels"):
            scores(model, tokens())
    elif ("BERT" in name and "decoder" not in name) or "without a task" in name:
        for function in (scores, token_losses):
            with pytest.raises(InputError, match=r"depends on the tokens after it.*pass labels"):
                function(model, tokens())
    else:
        with torch.no_grad():
            answer = model(tokens())
        logits = getattr(answer, "logits", answer)[:, :-1].float().transpose(1, 2)
        losses = functional.cross_entropy(logits, tokens()[:, 1:], reduction="none")
        np.testing.assert_allclose(scores(model, tokens()), -losses.mean(1), rtol=1e-5)
        np.testing.assert_allclose(token_losses(model, tokens()), losses, rtol=1e-4)


def left_padded(name: str) -> tuple[dict[str, Tensor], list[dict[str, Tensor]]]:
    """Return rows with padding on the left, and the same rows without, one by one."""
    x, labels = tokens(), some_labels()
    padding = [i % 4 for i in range(EXAMPLES)]
    mask, padded, given = torch.ones_like(x), x.clone(), labels.clone()
    rows = []
    for i, columns in enumerate(padding):
        mask[i, :columns] = 0
        padded[i, :columns] = 1
        own = labels[i : i + 1] if name in SEQUENCES else labels[i : i + 1, columns:]
        row = {"input_ids": x[i : i + 1, columns:], "attention_mask": mask[i : i + 1, columns:]}
        rows.append({**row, "labels": own})
    return {"input_ids": padded, "attention_mask": mask, "labels": given}, rows


@pytest.mark.parametrize("name", MODELS)
def test_padding_on_the_left_changes_no_score(name: str) -> None:
    model, (together, rows) = model_of(name), left_padded(name)
    if "BART" in name:  # learned places, which it takes from nobody
        with pytest.raises(InputError, match="padding on the left changes"):
            scores(model, together)
        return
    alone = [float(scores(model, row)[0]) for row in rows]
    near = 2e-2 if name == "half precision" else 1e-5
    np.testing.assert_allclose(scores(model, together), alone, rtol=near)
    halves = [
        {part: table[some] for part, table in together.items()}
        for some in (slice(0, 3), slice(3, None))
    ]
    np.testing.assert_allclose(
        np.concatenate([scores(model, one) for one in halves]), alone, rtol=near
    )


def test_places_that_are_given_are_kept() -> None:
    model = model_of("GPT-2")
    together, _ = left_padded("GPT-2")
    places = (together["attention_mask"].cumsum(1) - 1).clamp(min=0)
    given = scores(model, {**together, "position_ids": places})
    np.testing.assert_allclose(given, scores(model, together), rtol=1e-5)
    moved = scores(model, {**together, "position_ids": places + 1})
    assert np.abs(moved - given).min() > 1e-3


class Plain(nn.Module):
    """A network that transformers does not know: it looks back, or both ways."""

    def __init__(self, *, both: bool = False) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.tokens = nn.Embedding(VOCABULARY, 16)
        self.memory = nn.GRU(16, 16, batch_first=True, bidirectional=both)
        self.head = nn.Linear(32 if both else 16, VOCABULARY)

    def forward(self, inputs: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        del attention_mask
        logits: Tensor = self.head(self.memory(self.tokens(inputs))[0])
        return logits


def losses_of(model: nn.Module, labels: Tensor) -> np.ndarray[Any, Any]:
    """Return minus the mean loss of labels in their places."""
    with torch.no_grad():
        logits = model(tokens()).transpose(1, 2)
    each = functional.cross_entropy(logits, labels, reduction="none", ignore_index=-100)
    found: np.ndarray[Any, Any] = -(each.sum(1) / (labels != -100).sum(1)).numpy()
    return found


def next_of(labels: Tensor) -> Tensor:
    return functional.pad(labels[:, 1:], (0, 1), value=-100)


def test_labels_tell_by_themselves_where_they_are_the_tokens_or_the_next_ones() -> None:
    model, x = Plain(), tokens()
    some = x.masked_fill(torch.arange(LENGTH) % 3 == 0, -100)
    for data, expected in (
        (x, next_of(x)),
        ((x, x), next_of(x)),
        ((x, some), next_of(some)),
        ((x, next_of(x)), next_of(x)),
        (
            (x, torch.cat([x[:, 1:], tokens(5)[:, :1]], 1)),
            torch.cat([x[:, 1:], tokens(5)[:, :1]], 1),
        ),
    ):
        np.testing.assert_allclose(scores(model, data), losses_of(model, expected), rtol=1e-5)


def test_where_nothing_tells_the_user_is_asked() -> None:
    x, tags = tokens(), tokens(7)
    for model, labels in ((Plain(), tags), (Plain(both=True), tags), (Plain(both=True), x)):
        for signal in ("cross_entropy", "loss_drop"):
            more = {"reference": Plain()} if signal == "loss_drop" else {}
            with pytest.raises(OptionError, match=r"next_token=True if .* or next_token=False"):
                score(model, (x, labels), signal=signal, progress=False, **more)  # type: ignore[arg-type]
        for told, expected in ((True, next_of(labels)), (False, labels)):
            found = scores(model, (x, labels), next_token=told)
            np.testing.assert_allclose(found, losses_of(model, expected), rtol=1e-5)
    # A later batch must not say otherwise.
    mixed = torch.cat([x[:4], tags[4:]])
    with pytest.raises(OptionError, match="next_token"):
        scores(Plain(), (x, mixed))
    with pytest.raises(InputTypeError, match="next_token must be True or False"):
        scores(Plain(), (x, x), next_token=1)


def test_an_answer_overrules_the_model() -> None:
    model, labels = model_of("masked BERT"), some_labels()
    data = {"input_ids": tokens(), "labels": labels}
    with torch.no_grad():
        logits = model(tokens()).logits[:, :-1].transpose(1, 2)
    each = functional.cross_entropy(logits, labels[:, 1:], reduction="none", ignore_index=-100)
    expected = -each.sum(1) / (labels[:, 1:] != -100).sum(1)
    np.testing.assert_allclose(scores(model, data, next_token=True), expected, rtol=1e-5)


def test_token_losses_are_of_next_tokens_alone() -> None:
    x = tokens()
    assert token_losses(Plain(), (x, tokens(7))).shape == (EXAMPLES, LENGTH - 1)
    for model, data in (
        (model_of("masked BERT"), {"input_ids": x, "labels": some_labels()}),
        (model_of("T5"), {"input_ids": x, "labels": some_labels()}),
        (Plain(), (x, next_of(x))),
    ):
        with pytest.raises(InputError, match="predicts labels in their own places: use score"):
            token_losses(model, data)


def test_padding_that_a_plain_network_does_not_see_is_refused_on_the_left_only() -> None:
    x, mask = tokens(), torch.ones(EXAMPLES, LENGTH, dtype=torch.int64)
    mask[2, -3:] = 0
    right = scores(Plain(), {"input_ids": x, "attention_mask": mask})
    np.testing.assert_allclose(right[2], scores(Plain(), x[2:3, :-3])[0], rtol=1e-5)
    with pytest.raises(InputError, match=r"pad on the right.*uses attention_mask"):
        scores(Plain(), {"input_ids": x, "attention_mask": mask.flip(1)})


def test_labels_of_padding_have_no_part_in_a_score() -> None:
    for name in ("GPT-2", "tags by BERT"):
        model, x, mask = model_of(name), tokens(), torch.ones(EXAMPLES, LENGTH, dtype=torch.int64)
        mask[2, -3:] = 0
        parts = {"input_ids": x, "attention_mask": mask}
        ignored = some_labels().masked_fill(mask == 0, -100)
        with_labels = scores(model, {**parts, "labels": some_labels()})
        np.testing.assert_array_equal(with_labels, scores(model, {**parts, "labels": ignored}))
