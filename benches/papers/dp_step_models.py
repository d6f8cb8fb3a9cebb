"""Right steps of DP-SGD on opacus, by every way it has to get gradients of examples."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import torch
from opacus import PrivacyEngine
from opacus.layers import DPLSTM, DPMultiheadAttention
from torch import Tensor, nn
from torch.utils.data import DataLoader

import leakbound as lb
from leakbound.integrations import opacus_step
from leakbound.torch.device import reproducible
from streams import derived
from training import loss_of_labels, quiet_opacus

__all__ = [
    "NOISE",
    "RIGHT",
    "Case",
    "Example",
    "bag",
    "mlp",
    "probed",
    "summed_loss",
    "tokens",
    "vectors",
]

NOISE = 1.1
"""The noise multiplier of all steps."""
BATCH = 8
Example: TypeAlias = tuple[Tensor, Tensor]


def _torch_generator(data: str) -> torch.Generator:
    """Return a generator of the seed of some data."""
    generator = torch.Generator()
    generator.manual_seed(derived(f"demos/dp-step-{data}", 0))
    return generator


def _seed_network() -> None:
    """Seed the weights of a network that is made next."""
    torch.manual_seed(derived("demos/dp-step-network", 0))


def vectors(number: int = 40) -> list[Example]:
    """Return vectors with two labels."""
    inputs = torch.randn(number, 12, generator=_torch_generator("vectors"))
    return [(vector, (vector[0] > 0).long()) for vector in inputs]


def images(number: int = 40) -> list[Example]:
    """Return small images with two labels."""
    inputs = torch.randn(number, 1, 8, 8, generator=_torch_generator("images"))
    return [(image, (image.mean() > 0).long()) for image in inputs]


def tokens(number: int = 40) -> list[Example]:
    """Return sequences of 6 of 50 tokens with two labels."""
    inputs = torch.randint(0, 50, (number, 6), generator=_torch_generator("tokens"))
    return [(sequence, (sequence[0] > 25).long()) for sequence in inputs]


def mlp() -> nn.Module:
    """Return a network of 242 parameters."""
    _seed_network()
    return nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 2))


def mlp_with_dropout() -> nn.Module:
    """Return the same with dropout."""
    hidden, activation, output = mlp().children()
    return nn.Sequential(hidden, nn.Dropout(0.3), activation, output)


def convolution() -> nn.Module:
    """Return a convolutional network with group normalisation."""
    _seed_network()
    return nn.Sequential(
        nn.Conv2d(in_channels=1, out_channels=4, kernel_size=3, padding=1),
        nn.GroupNorm(2, 4),
        nn.Tanh(),
        nn.Conv2d(in_channels=4, out_channels=4, kernel_size=3, stride=2),
        nn.Flatten(),
        nn.Linear(36, 2),
    )


class _Bag(nn.Module):
    """The mean of embeddings, and a linear layer that may share their weights."""

    def __init__(self, *, tied: bool) -> None:
        super().__init__()
        outputs = 2
        if tied:
            outputs = 50
        self.table = nn.Embedding(50, 8)
        self.out = nn.Linear(8, outputs, bias=not tied)
        if tied:
            self.out.weight = self.table.weight

    def forward(self, inputs: Tensor) -> Tensor:
        mean_embedding = self.table(inputs).mean(1)
        logits: Tensor = self.out(torch.tanh(mean_embedding))
        return logits


def bag(*, tied: bool = False) -> nn.Module:
    """Return a bag of embeddings."""
    _seed_network()
    return _Bag(tied=tied)


class _Recurrent(nn.Module):
    """An LSTM over embeddings."""

    def __init__(self) -> None:
        super().__init__()
        _seed_network()
        self.table = nn.Embedding(50, 6)
        self.cell = DPLSTM(6, 8, batch_first=True)
        self.out = nn.Linear(8, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        hidden_states, _ = self.cell(self.table(inputs))
        last_state = hidden_states[:, -1]
        logits: Tensor = self.out(last_state)
        return logits


class _Attentive(nn.Module):
    """Self-attention over embeddings."""

    def __init__(self) -> None:
        super().__init__()
        _seed_network()
        self.table = nn.Embedding(50, 8)
        self.attention = DPMultiheadAttention(8, 2, batch_first=True)
        self.norm = nn.LayerNorm(8)
        self.out = nn.Linear(8, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        embedded = self.table(inputs)
        attended, _ = self.attention(embedded, embedded, embedded)
        normalised = self.norm(embedded + attended)
        logits: Tensor = self.out(normalised.mean(1))
        return logits


def gpt2(saved: Sequence[str] | None = None) -> nn.Module:
    """Return a GPT-2 of two layers with dropout, fine-tuned by LoRA."""
    from peft import LoraConfig, get_peft_model
    from transformers import GPT2Config, GPT2ForSequenceClassification

    _seed_network()
    config = GPT2Config(
        vocab_size=50, n_positions=16, n_embd=16, n_layer=2, n_head=2, num_labels=2, pad_token_id=0
    )
    lora = LoraConfig(
        r=4,
        lora_alpha=8,
        target_modules=["c_attn"],
        task_type="SEQ_CLS",
        modules_to_save=saved,
        lora_dropout=0.1,
        fan_in_fan_out=True,
    )
    model: nn.Module = get_peft_model(GPT2ForSequenceClassification(config), lora)
    return model


def summed_loss(model: nn.Module, batch: Any) -> Tensor:
    inputs, labels = batch
    return nn.functional.cross_entropy(model(inputs), labels, reduction="sum")


def _loss_with_positions(model: Any, batch: Any) -> Tensor:
    inputs, labels = batch
    rows, length = inputs.shape
    # opacus reads the size of the batch from the positions
    positions = torch.arange(length).repeat(rows, 1)
    logits = model(input_ids=inputs, position_ids=positions).logits
    return nn.functional.cross_entropy(logits, labels)


def _relabelled(example: Example, classes: int) -> list[Example]:
    """Return an example with its label, and with the next one."""
    inputs, label = example
    return [(inputs, label), (inputs, (label + 1) % classes)]


@dataclass(frozen=True, kw_only=True)
class Case:
    """A step: a network, how opacus makes it private, and examples."""

    network: Callable[[], nn.Module] = mlp
    examples: Callable[[], list[Example]] = vectors
    loss: Callable[[Any, Any], Any] = loss_of_labels
    classes: int = 2
    norm: float = 1.0
    physical: int | None = None
    empty: bool = True
    """Whether opacus takes empty batches this way."""
    options: dict[str, Any] = field(default_factory=dict)
    """Further options of `make_private`."""
    optimizer: Any = None
    """What `step` is called of, in place of what opacus makes."""
    reduction: str = "mean"
    sweep: bool = True

    @property
    def pairs(self) -> list[lb.dp_sgd.Pair]:
        """Neighbouring batches from its examples."""
        examples = self.examples()
        candidates = list[Example]()
        for example in examples[8:10]:
            candidates += _relabelled(example, self.classes)
        return lb.dp_sgd.neighbouring_batches(
            [examples[:BATCH]],
            candidates,
            empty=self.empty,
            sweep=self.sweep,
        )

    def train_on(
        self,
        model: nn.Module,
        optimizer: Any,
        loss: Callable[[Any, Any], Any],
        batch: list[Example],
    ) -> None:
        """Take one step of training, in three physical batches where the case has such."""
        physical_batches = [batch]
        if self.physical:
            physical_batches = [batch[:3], batch[3:6], batch[6:]]
        last = len(physical_batches) - 1
        for number, physical_batch in enumerate(physical_batches):
            if self.physical:
                optimizer.signal_skip_step(do_skip=number < last)
            optimizer.zero_grad()
            collated = torch.utils.data.default_collate(physical_batch)
            loss(model, collated).backward()
            optimizer.step()

    def private(self) -> tuple[nn.Module, Any, Callable[[Any, Any], Any]]:
        """Return model, optimizer and loss."""
        network = self.network().train()
        trained = [weights for weights in network.parameters() if weights.requires_grad]
        sgd = torch.optim.SGD(trained, lr=0.1)
        clipping_norm: Any = self.norm
        if self.options.get("clipping") == "per_layer":
            norm_of_layer = self.norm / len(trained) ** 0.5
            clipping_norm = [norm_of_layer] * len(trained)
        if self.optimizer is not None:
            from opacus import GradSampleModule

            model = GradSampleModule(network, loss_reduction=self.reduction)
            optimizer = self.optimizer(
                sgd,
                noise_multiplier=NOISE,
                max_grad_norm=clipping_norm,
                expected_batch_size=BATCH,
            )
            return model, optimizer, self.loss
        engine = PrivacyEngine(accountant="rdp")
        model, optimizer, *criteria, _ = engine.make_private(
            module=network,
            optimizer=sgd,
            data_loader=DataLoader(self.examples(), batch_size=BATCH),  # type: ignore[arg-type]
            noise_multiplier=NOISE,
            max_grad_norm=clipping_norm,
            **self.options,
        )
        if not criteria:
            return model, optimizer, self.loss
        # Of ghost clipping: a loss that opacus has wrapped.
        (criterion,) = criteria

        def wrapped_loss(model: Any, batch: Any) -> Any:
            inputs, labels = batch
            return criterion(model(inputs), labels)

        return model, optimizer, wrapped_loss

    @contextmanager
    def step(self) -> Iterator[Any]:
        """Yield the step."""
        model, optimizer, loss = self.private()
        with opacus_step(model, optimizer, loss, physical_batch_size=self.physical) as step:
            yield step


def probed(case: Case, seed: int, **options: Any) -> lb.DPStepAudit:
    """Probe a step."""
    with reproducible(), quiet_opacus(), case.step() as step:
        return lb.probe_dp_step(step, case.pairs, noise_multiplier=NOISE, seed=seed, **options)


def _ghost(**how: Any) -> dict[str, Any]:
    return {"grad_sample_mode": "ghost", "criterion": nn.CrossEntropyLoss(), **how}


_MLP = Case()
_CONVOLUTION = Case(network=convolution, examples=images)
_BAG = Case(network=bag, examples=tokens)
_GPT2 = Case(network=gpt2, examples=tokens, loss=_loss_with_positions, empty=False)
_ADAPTIVE = {
    "clipping": "adaptive",
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.2,
    "max_clipbound": 1e8,
    "min_clipbound": 1e-3,
    "unclipped_num_std": 2.0,
}

RIGHT: dict[str, Case] = {
    "hooks": _MLP,
    "functorch": replace(_MLP, options={"grad_sample_mode": "functorch"}),
    "expanded weights": replace(_MLP, options={"grad_sample_mode": "ew"}, empty=False),
    "per layer": replace(_MLP, options={"clipping": "per_layer"}),
    "virtual steps": replace(_MLP, physical=3),
    "ghost": replace(_MLP, options=_ghost()),
    "ghost, virtual steps": replace(_MLP, options=_ghost(), physical=3),
    "sums": replace(_MLP, options={"loss_reduction": "sum"}, loss=summed_loss),
    "norm of 0.1": replace(_MLP, norm=0.1),
    "adaptive norm": replace(_MLP, options=_ADAPTIVE, empty=False),
    "dropout": replace(_MLP, network=mlp_with_dropout),
    "convolution": _CONVOLUTION,
    "convolution, ghost": replace(_CONVOLUTION, options=_ghost()),
    "embedding": _BAG,
    "embedding, ghost": replace(_BAG, options=_ghost(), empty=False),
    "tied embedding": replace(_BAG, network=lambda: bag(tied=True), classes=50),
    "LSTM": replace(_BAG, network=_Recurrent),
    "attention": replace(_BAG, network=_Attentive, empty=False),
    "GPT-2, LoRA": _GPT2,
    "GPT-2, LoRA, head saved": replace(_GPT2, network=lambda: gpt2(["score"])),
}
"""Right steps on one process, by name."""
