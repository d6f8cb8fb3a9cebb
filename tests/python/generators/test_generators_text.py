"""Text: chunks of documents, and a tiny language model that is built here, offline."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from transformers import GPT2Config

from leakbound.errors import InputError, InputTypeError, OptionError
from leakbound.generators import Generator, LanguageModel, Sampler, chunk_texts

LENGTH = 8
LETTERS = 6


def config(**changes: int) -> GPT2Config:
    options = {"vocab_size": 12, "n_positions": 16, "n_embd": 16, "n_layer": 1, "n_head": 2}
    return GPT2Config(**(options | changes))


def counting(chunks: int = 200) -> NDArray[np.int64]:
    """Return chunks of documents in which every token is one more than the last, cyclically."""
    starts = np.random.default_rng(0).integers(0, LETTERS, (chunks // 10, 1))
    return ((starts + np.arange(10 * LENGTH)) % LETTERS).reshape(-1, LENGTH)


def model(**options: Any) -> LanguageModel:
    return LanguageModel(config(), epochs=12, learning_rate=1e-2, **options)


def test_chunks_are_the_documents_cut_up() -> None:
    texts = ["abcdefghij", "klm", "nopqrstu"]
    chunks = chunk_texts(texts, length=4)
    assert ["".join(map(chr, row)) for row in chunks.values] == ["abcd", "efgh", "nopq", "rstu"]
    np.testing.assert_array_equal(chunks.documents, [0, 0, 2, 2])
    assert chunk_texts(["äö"], length=2).values.tolist() == [list("ä".encode()), list("ö".encode())]
    own = chunk_texts(["a b c d"], encode=lambda text: [len(w) for w in text.split()], length=2)
    assert own.values.tolist() == [[1, 1], [1, 1]]


def test_no_document_has_more_chunks_than_allowed() -> None:
    chunks = chunk_texts(["abcd" * 500, "efgh" * 10], length=4)
    np.testing.assert_array_equal(np.bincount(chunks.documents), [50, 10])
    text = "".join(chr(97 + i) for i in range(20))
    cut = (chunk_texts([text], length=2, most=3, seed=seed).values for seed in range(30))
    runs = {"".join(map(chr, run.ravel())) for run in cut}
    assert len(runs) > 4
    assert all(run in text and len(run) == 6 for run in runs)


def test_texts_without_chunks_are_refused() -> None:
    with pytest.raises(InputError, match="none of 2 documents has at least 64 tokens"):
        chunk_texts(["short", "too"])
    with pytest.raises(OptionError, match="most must be at least 1"):
        chunk_texts(["text"], most=0)


def test_the_model_learns_what_follows_and_its_prompts_are_held_out() -> None:
    chunks = counting()
    generator = model(prompts=0.25)
    sampler = generator.fit(chunks)
    np.testing.assert_array_equal(sampler.learnt[1], chunks[-50:])
    values = sampler.sample(300, seed=1).values
    assert values.shape == (300, LENGTH)
    assert values.dtype == chunks.dtype
    right = (values[:, 1:] - values[:, :-1]) % LETTERS == 1
    assert right.mean() > 0.9
    # With chance 1/6 of counting on; the first token continues the prompt, which is uniform.
    assert np.bincount(values[:, 0], minlength=LETTERS)[:LETTERS].min() > 10
    assert isinstance(generator, Generator)
    assert isinstance(sampler, Sampler)


def test_the_seeds_decide_all_and_nothing_else_is_drawn_from() -> None:
    chunks = counting(60)
    first = LanguageModel(config(), epochs=1).fit(chunks)
    np.random.seed(0)  # noqa: NPY002 - to see that it does not matter
    second = LanguageModel(config(), epochs=1).fit(chunks)
    one, again, other = (
        first.sample(40, seed=3),
        second.sample(40, seed=3),
        first.sample(40, seed=4),
    )
    np.testing.assert_array_equal(one.values, again.values)
    assert not np.array_equal(one.values, other.values)


def test_a_model_from_a_folder_is_fine_tuned(tmp_path: Path) -> None:
    trained = model().fit(counting())
    trained.learnt[0].save_pretrained(tmp_path)
    tuned = LanguageModel(tmp_path, epochs=1, learning_rate=1e-6).fit(counting())
    values = tuned.sample(100, seed=0).values
    assert ((values[:, 1:] - values[:, :-1]) % LETTERS == 1).mean() > 0.9
    with pytest.raises(OSError, match="nowhere"):
        LanguageModel(tmp_path / "nowhere").fit(counting())


@pytest.mark.parametrize(
    ("members", "error", "match"),
    [
        (counting() * 1.5, InputError, "chunks of tokens"),
        (counting() - 1, InputError, "non-negative"),
        (counting()[:, 0], InputError, "one row per member"),
        (counting()[:10], InputError, "10 members"),
        (counting() + 7, OptionError, "tokens 0 to 11 .* hold token 12"),
        (counting().reshape(-1, 16), OptionError, "takes 16 of them.* are 32"),
    ],
)
def test_bad_chunks_are_refused(members: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        model().fit(members)


@pytest.mark.parametrize(
    "options",
    [{"epochs": 0}, {"top_k": 1.5}, {"temperature": 0}, {"prompts": 1}, {"learning_rate": -1}],
    ids=str,
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises((OptionError, InputTypeError), match=next(iter(options))):
        LanguageModel(config(), **options)


def test_top_k_and_temperature_say_how_freely_it_writes() -> None:
    chunks = counting(60)
    greedy = LanguageModel(config(), epochs=1, top_k=1).fit(chunks)
    alone = greedy.sample(18, seed=0)
    np.testing.assert_array_equal(alone.values, greedy.sample(18, seed=0).values)
    free = LanguageModel(config(), epochs=1, temperature=100.0).fit(chunks).sample(100, seed=0)
    # Nearly uniform over 12 tokens, though the members use 6.
    assert (free.values >= LETTERS).mean() > 0.35
    few = LanguageModel(config(), epochs=1, temperature=100.0, top_k=2).fit(chunks)
    assert np.unique(few.sample(100, seed=0).values).size <= 12


def test_prompts_are_used_evenly_and_not_too_often() -> None:
    sampler = LanguageModel(config(), epochs=1, samples_per_prompt=2).fit(counting(100))
    assert len(sampler.learnt[1]) == 30
    assert len(sampler.sample(60, seed=0)) == 60
    with pytest.raises(InputError, match=r"61 samples .* 30 prompts .* give 60"):
        sampler.sample(61, seed=0)
