"""Whole runs on text: documents, prompts, helpers, checkpoints; and nothing found in nothing."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import GPT2Config

import leakbound as lb
from gpt import GPT
from leakbound import panoramia, stats
from leakbound.generators import LanguageModel, Samples, chunk_texts, split_members
from leakbound.panoramia import Helper, Options, PanoramiaReport, StackedAttack

LENGTH = 10
LETTERS = 20
NOMINAL = 0.05
ERROR = 1e-4
"""Probability that a valid audit fails its test."""


@dataclass(frozen=True)
class Babble:
    """Texts of a made-up language: every letter depends on the one before."""

    def fit(self, *_: object) -> "Babble":
        return self

    def sample(self, n: int, *, seed: int) -> Samples:
        likely = np.random.default_rng(1).dirichlet(np.full(LETTERS, 2.0), LETTERS).cumsum(axis=1)
        dice = np.random.default_rng(seed).random((n, LENGTH))
        text = np.zeros((n, LENGTH), dtype=np.int64)
        for place in range(LENGTH):
            before = text[:, place - 1] if place else np.zeros(n, dtype=np.int64)
            chosen = (likely[before] < dice[:, place, None]).sum(axis=1)
            text[:, place] = np.minimum(chosen, LETTERS - 1)
        return Samples(text)


def network() -> GPT:
    return GPT(LENGTH, 8)


def untrained(seed: int) -> GPT:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return network()


WRITER = LanguageModel(
    GPT2Config(vocab_size=256, n_positions=2 * LENGTH, n_embd=8, n_layer=1, n_head=1),
    epochs=1,
    samples_per_prompt=40,
)
HELPER = Helper(network=network, epochs=1)
OPTIONS = Options(
    attack=StackedAttack("text"),
    helper=(HELPER, replace(HELPER, trained_on="members")),
    saturation=(0.5,),
    seeds=(0, 1),
    union=True,
)
WORDS = Babble().sample(60, seed=0).values + 97
CHUNKS = chunk_texts(
    [bytes(WORDS[topic : topic + 20].ravel().tolist()).decode() for topic in range(20)],
    length=LENGTH,
)


def test_documents_are_audited_or_teach_and_every_phase_is_kept(tmp_path: Path) -> None:
    def run() -> PanoramiaReport:
        return panoramia.run(
            untrained(0),
            CHUNKS.values,
            WRITER,
            options=replace(OPTIONS, seeds=(0,)),
            documents=CHUNKS.documents,
            nonmembers=Babble().sample(200, seed=5).values + 97,
            initial=untrained(2),
            checkpoints=tmp_path,
        )

    found = run()
    phases = {"generated", "helper-0", "helper-1", "targets"}
    phases |= {"game-0-generated", "game-0-real"}
    assert {path.stem for path in tmp_path.glob("*.npz")} == phases
    assert run() == found
    shares = {"generator": 0.3, "audit": 0.7}
    split = split_members(len(CHUNKS), shares=shares, documents=CHUNKS.documents, seed=0)
    teaching = split["generator"]
    assert found.sizes["generator"] == teaching.size
    audited = np.setdiff1d(np.arange(len(CHUNKS)), teaching)
    assert not np.intersect1d(CHUNKS.documents[teaching], CHUNKS.documents[audited]).size
    for place, name in enumerate(("helper", "helper 2")):
        with np.load(tmp_path / f"helper-{place}.npz") as said:
            assert said[f"{name} members"].shape == (audited.size, LENGTH - 1)
    audits = ["PANORAMIA", "PANORAMIA, union", "RM;RN", "O(1)"]
    assert [row.audit for row in found.rows[:4]] == audits
    assert found.saturation.examples.size == 2


@pytest.mark.validity
def test_a_process_as_its_own_generator_is_not_told_from_members() -> None:
    """Count false bounds of baselines and attacks, and judge them exactly.

    With the process itself as the generator c = 0, and no member was seen: ε = 0. Each bound
    exceeds the truth with probability at most half of the nominal error.
    """
    results, trials = list[lb.PanoramiaResult](), 60
    for seed in range(trials):
        options = Options(attack=StackedAttack("text"), helper=None, saturation=(), seeds=(seed,))
        members = Babble().sample(500, seed=1000 + seed).values
        found = panoramia.run(untrained(seed), members, Babble(), options=options)
        results += found.row("target").estimates
    for bounds in ([one.c_lb for one in results], [one.c_plus_epsilon_lb for one in results]):
        false = int(np.count_nonzero(np.array(bounds) > 0))
        assert stats.binomial_tail(false, trials, NOMINAL / 2) > ERROR, f"{false} of {trials}"
