"""Baseline and attack on texts: what they learn from tokens, from losses, and from both."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

import leakbound as lb
from leakbound.errors import InputError
from leakbound.panoramia import StackedAttack
from leakbound.panoramia.examples import Examples, Sample
from leakbound.panoramia.models import text
from leakbound.panoramia.models.networks import SignalNetwork, network_log_odds

LENGTH = 12
ATTACK = StackedAttack("text")
fit = partial(ATTACK.fit, seed=5, level=0.025, cuts=lb.KLScan())


def texts(n: int, *, by_words: float = 0.0, by_losses: float = 0.0) -> Sample:
    """Some members hold a word that others do not; a second model loses less on members."""
    rng = np.random.default_rng(n)
    member = np.arange(2 * n) < n
    tokens = rng.integers(100, 130, (2 * n, LENGTH))
    for row in np.flatnonzero(member & (rng.random(2 * n) < by_words)):
        start = rng.integers(LENGTH - 3)
        tokens[row, start : start + 3] = (101, 117, 104)
    losses = rng.normal(size=(2 * n, 2, LENGTH - 1))
    losses[:, 1] += losses[:, 0] - by_losses * member[:, None]
    return Sample(Examples(tokens, None), losses, member)


def audit(parts: list[Sample]) -> lb.PanoramiaResult:
    train, validation, test = parts
    scores = fit(train, validation).score(test.examples, test.signals)
    return lb.audit(scores, lb.Panoramia(test.member, baseline=scores))


def parts(**kinds: float) -> list[Sample]:
    return [texts(n, **kinds) for n in (250, 100, 400)]


def test_it_learns_from_tokens_and_from_losses_and_more_from_both() -> None:
    words, losses = audit(parts(by_words=0.7)), audit(parts(by_losses=0.4))
    both = audit(parts(by_words=0.7, by_losses=0.4))
    assert words.c_lb > 1
    assert losses.c_lb > 0.4
    assert both.auc > max(words.auc, losses.auc) + 0.03


def test_training_of_both_parts_begins_with_what_each_learnt_alone() -> None:
    train, validation, test = parts(by_words=0.7, by_losses=0.4)
    reader = text.prepare(train, validation, 3)
    signals = SignalNetwork.train(train, 3, validation)
    first, *later = [
        candidate.options["epochs"] for candidate in text.candidates(train, validation, 3, reader)
    ]
    assert (first, later) == (0, [1, 2])
    inputs = [reader.inputs(test.examples), signals.inputs(test.signals)]
    joined = network_log_odds(text._Both(reader.network, signals), inputs)
    (losses,) = signals.logits(test.signals)
    np.testing.assert_allclose(
        joined, network_log_odds(reader.network, inputs[:1]) + losses, atol=1e-4
    )


def test_same_seed_same_scores_and_a_process_left_as_it_was() -> None:
    train, validation, test = (texts(n, by_words=0.7) for n in (120, 60, 80))
    torch.manual_seed(1)
    state = torch.get_rng_state()
    ready = ATTACK.prepare(train, validation, seed=5)
    fitted = fit(train, validation, prepared=ready)
    again = fit(train, validation)
    other = fit(train, validation, seed=6)
    assert torch.equal(torch.get_rng_state(), state)
    scores = fitted.score(test.examples, test.signals)
    np.testing.assert_array_equal(again.score(test.examples, test.signals), scores)
    assert not np.array_equal(other.score(test.examples, test.signals), scores)
    np.testing.assert_array_equal(
        fitted.score(validation.examples, validation.signals), fitted.validation
    )


def test_bad_texts() -> None:
    train, validation, test = texts(60), texts(50), texts(40)
    with pytest.raises(InputError, match="whole numbers of shape"):
        fit(replace(train, examples=Examples(train.examples.x / 2, None)), validation)
    with pytest.raises(InputError, match=r"of shape \(120, 12, 1\)"):
        fit(replace(train, examples=Examples(train.examples.x[..., None], None)), validation)
    fitted = fit(train, validation)
    with pytest.raises(InputError, match="must have 12 tokens, as in training, got 11"):
        fitted.score(Examples(test.examples.x[:, 1:], None), test.signals)


def test_tokens_that_training_did_not_hold_are_one_unknown_token() -> None:
    train, validation, test = texts(60), texts(50), texts(40)
    fitted = fit(train, validation)
    one, two = (
        fitted.score(Examples(np.full_like(test.examples.x, token), None), test.signals)
        for token in (0, 50_000)
    )
    np.testing.assert_array_equal(one, two)
