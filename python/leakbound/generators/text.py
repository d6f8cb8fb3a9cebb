"""Text from a causal language model."""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakbound._base.checks import MOST_EXAMPLES, integer, real, shown
from leakbound._base.imports import needs
from leakbound._base.streams import Purpose
from leakbound._base.types import AnyArray, ArrayInput, IntArray, PathInput
from leakbound.errors import InputError, InputTypeError, OptionError
from leakbound.generators.members import read_members
from leakbound.generators.protocol import FittedGenerator, Samples

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

MOST_GRADIENT_NORM = 1.0  # clipping keeps the first steps of a new model from blowing it up
PROMPTS_AT_ONCE = 256  # samples drawn at a time, to bound memory


@dataclass(frozen=True, eq=False, repr=False)
class Chunks:
    """Pieces of documents, of one length: what a member of a text audit is.

    Parameters
    ----------
    values, documents : ndarray of int64, of shapes (n, length) and (n,)
        Tokens, the pieces of a document in its order, and which document each is a piece of.
    """

    values: IntArray
    documents: IntArray

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        document_count = np.unique(self.documents).size
        return f"Chunks(n={len(self)}, length={self.values.shape[1]}, documents={document_count})"


def chunk_texts(
    texts: Sequence[str],
    *,
    encode: Callable[[str], Sequence[int]] | None = None,
    length: int = 64,
    most: int = 50,
    seed: int = 0,
) -> Chunks:
    """Cut documents into chunks of equal length.

    Guesses about chunks of one document are dependent: a limit keeps any one document from deciding
    an audit. A longer document gives a run of chunks from a random place.

    Parameters
    ----------
    texts : sequence of str
        Documents.
    encode : callable, optional
        Turns a text into tokens, such as the `encode` of a tokenizer of transformers; by default
        its bytes in UTF-8.
    length : int
        Tokens in a chunk; what is left of a document after the last whole one is not used.
    most : int
        Most chunks of one document.
    seed : int
        Seed of the places.

    Examples
    --------
    >>> chunk_texts(["to be or not to be, that is the question"] * 3, length=10, most=2)
    Chunks(n=6, length=10, documents=3)
    """
    length = integer(length, name="length", least=2, most=MOST_EXAMPLES)
    most = integer(most, name="most", least=1, most=MOST_EXAMPLES)
    first_chunk_rng = Purpose.CHUNKS.rng(integer(seed, name="seed", least=0))
    has_no_dimensions = getattr(texts, "shape", None) == ()  # an array without dimensions
    if isinstance(texts, str | bytes) or has_no_dimensions or not hasattr(texts, "__len__"):
        raise InputTypeError(f"texts must be a list of strings, got {shown(texts)}")
    chosen_chunks_of_documents = []
    document_of_each_chunk = []
    for document, text in enumerate(texts):
        tokens_of_document = np.asarray(list((encode or _utf8_bytes)(text)), np.int64)
        chunks_in_document = tokens_of_document.size // length
        last_first_chunk = max(chunks_in_document - most, 0)
        first_chunk = int(first_chunk_rng.integers(last_first_chunk + 1))
        whole_chunks = tokens_of_document[: chunks_in_document * length]
        chunks_of_document = whole_chunks.reshape(chunks_in_document, length)
        chosen_chunks = chunks_of_document[first_chunk : first_chunk + most]
        chosen_chunks_of_documents.append(chosen_chunks)
        document_of_each_chunk.append(np.full(len(chosen_chunks), document))
    if not any(map(len, chosen_chunks_of_documents)):
        raise InputError(
            f"none of {len(texts)} documents has at least {length} tokens, the length of a chunk"
        )
    return Chunks(
        values=np.concatenate(chosen_chunks_of_documents),
        documents=np.concatenate(document_of_each_chunk),
    )


def _utf8_bytes(text: object) -> bytes:
    """Return a text as its bytes in UTF-8."""
    if not isinstance(text, str):
        raise InputTypeError(f"texts must be a list of strings, one of which is {shown(text)}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InputError(f"a text has half of a surrogate pair: {shown(text)}") from None


@dataclass(frozen=True)
class LanguageModel:
    """Text: a causal language model that continues prompts it was not trained on.

    The model is trained on most of the members, in pairs of chunks that follow each other, and
    given the others as prompts; what it writes after a prompt, as long as a member, is a sample.
    Give members in the order of their documents, as `chunk_texts` and `split_members` do: prompts
    are then from other documents than the training.

    Parameters
    ----------
    model : str, os.PathLike or transformers.PretrainedConfig
        The folder of a causal language model to fine-tune, or a configuration, such as
        ``GPT2Config(...)``, of one to train from scratch. Nothing is downloaded. It must take two
        chunks at a time.
    epochs, batch_size, learning_rate : int, int and float
        How often training sees each member, pairs of chunks at a time, and the rate of AdamW.
    prompts : float
        Share of the members that are kept for prompts.
    samples_per_prompt : int
        Most samples that follow one prompt.
    top_k, temperature : int and float
        How many of the likeliest tokens are drawn from, and with how much variety.
    seed, device : int and str
        Seed of the training, and where to train and to sample, such as ``"cuda"``.

    Examples
    --------
    >>> from transformers import GPT2Config
    >>> config = GPT2Config(vocab_size=256, n_positions=16, n_embd=8, n_layer=1, n_head=1)
    >>> chunks = chunk_texts(["abcdefgh" * 40], length=8)
    >>> LanguageModel(config, epochs=1).fit(chunks.values).sample(5, seed=0)
    Samples(n=5, shape=(8,))
    """

    model: "PathInput | PretrainedConfig"
    _: KW_ONLY
    epochs: int = 10
    batch_size: int = 32
    learning_rate: float = 5e-4
    prompts: float = 0.3
    samples_per_prompt: int = 8
    top_k: int = 200
    temperature: float = 1.0
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "samples_per_prompt", "top_k"):
            integer(getattr(self, name), name=name, least=1)
        real(self.learning_rate, name="learning_rate", above=0)
        real(self.prompts, name="prompts", above=0, below=1)
        real(self.temperature, name="temperature", above=0)
        integer(self.seed, name="seed", least=0)

    def fit(self, members: ArrayInput, labels: ArrayInput | None = None) -> FittedGenerator:
        """Train the model on the first members, and keep the last for prompts.

        Members are at least 20 chunks of tokens, of shape (n, length), without labels: see
        `Generator.fit`.
        """
        member_chunks = read_members(members)
        if (
            member_chunks.ndim != 2
            or member_chunks.dtype.kind not in "iu"
            or member_chunks.min() < 0
        ):
            raise InputError(
                "members must be chunks of tokens, non-negative integers of shape (n, length), got "
                f"{member_chunks.dtype} of shape {member_chunks.shape}"
            )
        if labels is not None:
            raise OptionError("a language model takes no labels: fit it with members only")
        with needs("hf", "LanguageModel"):
            import transformers  # noqa: F401
        from leakbound.torch.device import reproducible

        # The last members are other documents than the first.
        prompt_count = max(1, round(self.prompts * len(member_chunks)))
        with reproducible():
            language_model = _causal_language_model(self.model, seed=self.seed).to(self.device)
            _check_model_fits_chunks(language_model, member_chunks)
            _train_on_chunk_pairs(
                language_model,
                chunks=member_chunks[:-prompt_count].astype(np.int64),
                options=self,
            )
        prompt_chunks = member_chunks[-prompt_count:]
        samples_per_prompt = self.samples_per_prompt

        def draw(n: int, seed: int) -> Samples:
            prompt_rng = Purpose.LANGUAGE_PROMPTS.rng(seed)
            most_samples = prompt_count * samples_per_prompt
            if n > most_samples:
                raise InputError(
                    f"{n} samples are needed, but {prompt_count} prompts with "
                    f"samples_per_prompt={samples_per_prompt} give {most_samples}"
                )
            # Every prompt once before any twice.
            rounds_of_prompts = math.ceil(n / prompt_count)
            orders_of_prompts = [
                prompt_rng.permutation(prompt_count) for _ in range(rounds_of_prompts)
            ]
            prompt_numbers = np.concatenate(orders_of_prompts)[:n]
            shuffled_prompts = prompt_rng.permutation(prompt_numbers)
            prompts_of_samples = prompt_chunks[shuffled_prompts].astype(np.int64)
            with reproducible():
                continuations = _continuations(
                    language_model, prompts=prompts_of_samples, options=self, seed=seed
                )
            return Samples(continuations.astype(prompt_chunks.dtype))

        return FittedGenerator(draw=draw, learnt=(language_model, prompt_chunks))


def _causal_language_model(
    model: "PathInput | PretrainedConfig", *, seed: int
) -> "PreTrainedModel":
    """Return a model from a folder, or a new one of a configuration; torch's seed is changed."""
    import torch
    from transformers import AutoModelForCausalLM, PretrainedConfig

    from leakbound.torch.loading import quiet

    torch.manual_seed(Purpose.LANGUAGE_WEIGHTS.derived(seed))
    if isinstance(model, PretrainedConfig):
        return AutoModelForCausalLM.from_config(model)
    with quiet():
        return AutoModelForCausalLM.from_pretrained(os.fspath(model), local_files_only=True)


def _check_model_fits_chunks(network: "PreTrainedModel", chunks: AnyArray) -> None:
    """Check that a model knows the tokens of chunks, and takes a prompt and a sample."""
    vocabulary_size = network.get_input_embeddings().num_embeddings
    positions_needed = 2 * chunks.shape[1]
    positions_of_model = (
        getattr(network.config, "max_position_embeddings", None) or positions_needed
    )
    if chunks.max() >= vocabulary_size or positions_of_model < positions_needed:
        raise OptionError(
            f"the model knows tokens 0 to {vocabulary_size - 1} and takes {positions_of_model} of "
            f"them; members hold token {chunks.max()}, and a prompt and a sample are "
            f"{positions_needed} tokens"
        )


def _train_on_chunk_pairs(
    network: "PreTrainedModel", chunks: IntArray, options: LanguageModel
) -> None:
    """Train on every two chunks that follow each other, each predicted token counting the same."""
    import torch

    consecutive_chunks = np.concatenate([chunks[:-1], chunks[1:]], axis=1)
    tokens_of_chunk_pairs = torch.from_numpy(consecutive_chunks)
    torch.manual_seed(Purpose.LANGUAGE_TRAINING.derived(options.seed))
    optimizer = torch.optim.AdamW(network.parameters(), lr=options.learning_rate)
    network.train()
    for _ in range(options.epochs):
        for rows_of_batch in torch.split(
            torch.randperm(len(tokens_of_chunk_pairs)), options.batch_size
        ):
            tokens_of_batch = tokens_of_chunk_pairs[rows_of_batch].to(options.device)
            logits: torch.Tensor = network(input_ids=tokens_of_batch, use_cache=False).logits
            predicted_logits = logits[:, :-1].flatten(0, 1).float()
            following_tokens = tokens_of_batch[:, 1:].flatten()
            loss = torch.nn.functional.cross_entropy(predicted_logits, following_tokens)
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_(network.parameters(), MOST_GRADIENT_NORM)
            optimizer.step()
    network.eval()


def _continuations(
    network: "PreTrainedModel", prompts: IntArray, options: LanguageModel, *, seed: int
) -> IntArray:
    """Return what the model writes after each prompt, as many tokens as the prompt has."""
    import torch

    torch_rng = torch.Generator().manual_seed(Purpose.LANGUAGE_SAMPLES.derived(seed))
    continuations = list[torch.Tensor]()
    with torch.no_grad():
        for batch_of_prompts in torch.split(torch.from_numpy(prompts), PROMPTS_AT_ONCE):
            input_tokens = batch_of_prompts.to(network.device)
            key_value_cache = None
            tokens_written_so_far = list[torch.Tensor]()
            for _ in range(prompts.shape[1]):
                model_output = network(
                    input_ids=input_tokens, past_key_values=key_value_cache, use_cache=True
                )
                # Drawn on the processor, so that every device writes the same.
                next_token_logits = model_output.logits[:, -1].float().cpu() / options.temperature
                top_logits, top_tokens = next_token_logits.topk(
                    min(options.top_k, next_token_logits.shape[1])
                )
                drawn_token_places = torch.multinomial(
                    top_logits.softmax(1), 1, generator=torch_rng
                )
                tokens_written_so_far.append(top_tokens.gather(1, drawn_token_places))
                input_tokens = tokens_written_so_far[-1].to(network.device)
                key_value_cache = model_output.past_key_values
            continuations.append(torch.cat(tokens_written_so_far, 1))
    return torch.cat(continuations).numpy()
