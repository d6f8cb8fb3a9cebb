"""`audit_model`: the scores of both sets and the audit of their split, in one call."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
from torch.utils.data import TensorDataset

import leakbound as lb
from leakbound.errors import InputError, InputTypeError


def test_it_is_the_audit_of_both_sets_within_classes() -> None:
    inputs, digits = load_digits(return_X_y=True)
    names = np.array(list("abcdefghij"))[digits]
    x, x2, y, y2 = train_test_split(inputs, names, random_state=0, stratify=names)
    model = RandomForestClassifier(30, random_state=0).fit(x, y)
    result = lb.audit_model(model, train=(x, y), test=(x2, y2), confidence=0.9, seed=1)
    scores = [lb.attacks.score(model, *part).values for part in ((x, y), (x2, y2))]
    member = np.arange(len(names)) < len(x)
    design = lb.RandomSplit(member, strata=np.concatenate([y, y2]))
    assert result == lb.audit(np.concatenate(scores), design, confidence=0.9, seed=1)
    assert result.bound > 0
    assert result.options["strata"] == 10


def test_a_network_is_scored_from_tensors_or_datasets() -> None:
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(300, 5, generator=generator), torch.arange(300) % 3
    model = torch.nn.Linear(5, 3)
    train, test = (x[:200], y[:200]), (x[200:], y[200:])
    within = lb.audit_model(model, train=train, test=test, claim=lb.GaussianDP(), seed=0)
    assert within.options["strata"] == 3
    sets = [TensorDataset(*part) for part in (train, test)]
    across = lb.audit_model(model, train=sets[0], test=sets[1], signal="cross_entropy", seed=0)
    assert across.options["pairs"] == 100
    assert "strata" not in across.options


def test_targets_of_a_signal_of_ones_own_are_no_classes() -> None:
    x = np.random.default_rng(0).normal(size=(100, 1))
    train, test = (x[:50], x[:50, 0]), (x[50:], x[50:, 0])
    result = lb.audit_model(
        lambda inputs: 2 * inputs[:, 0],
        train=train,
        test=test,
        signal=lambda answer, target: -abs(answer - target),
        seed=0,
    )
    assert result.options["pairs"] == 50
    assert "strata" not in result.options


def test_what_cannot_be_scored_is_refused_by_name() -> None:
    pair = (np.zeros((4, 2)), np.zeros(4, int))

    def sure(inputs: np.ndarray) -> np.ndarray:
        return np.tile([0.7, 0.3], (len(inputs), 1))

    with pytest.raises(InputTypeError, match="test must be a tuple of inputs and"):
        lb.audit_model(sure, train=pair, test=[1, 2])
    with pytest.raises(InputTypeError, match="model must have predict_proba"):
        lb.audit_model(object(), train=pair, test=pair)
    with pytest.raises(InputError, match="y has the class 2 at index 0"):
        lb.audit_model(sure, train=(pair[0], pair[1] + 2), test=pair)
