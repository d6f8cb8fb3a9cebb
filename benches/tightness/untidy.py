"""Games whose outermost scores are noise, and what the default proves of them.

export PYTHONPATH=benches/python
python benches/tightness/untidy.py    12 games of each row, 6 under Gaussian DP
python benches/tightness/untidy.py --tables noisy --claims pure --sizes 1000 --seeds 60
python benches/tightness/untidy.py --tables shifted --ways learnt --games Cauchy

Five tables. `noisy`: untidy games, beside `OutsideIn` and the best in hindsight, the largest mean
of `OutsideIn`, `KLScan`, a union bound, and numbers of guesses fixed in advance. `sides`: fixed
sides, beside a union bound. `learnt`: learnt ratios, beside `KLScan`. `standard`: games without
noise, beside `OutsideIn`. `shifted`: Zero-Run audits of untidy games whose members differ from the
others, beside numbers of guesses fixed in advance; three games of each row.
"""

import argparse
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

import leakbound as lb
import peers
from leakbound._base.checks import MOST_EXAMPLES, integer, real
from leakbound._base.odds import expit
from leakbound._base.types import BoolArray, FloatArray
from leakbound.claims import Claim
from leakbound.propensity import LogisticPropensity
from leakbound.simulate import Game
from leakbound.simulate.games import Profile, gaussian_profile, response_profile
from leakbound.stats import normal_cdf
from mechanisms import Gaussian, OfCoins, OneSidedTail, Shown, TwoSidedTail, generator

__all__ = [
    "GAMES",
    "Boilerplate",
    "Cauchy",
    "LabelNoise",
    "LearntRatios",
    "Middle",
    "Overconfident",
    "Plateau",
    "RoundedLaplace",
    "Saturated",
]

Way: TypeAlias = Literal["known", "learnt", "set"]
"""What a Zero-Run audit knows of log-odds: all, other labels, or the audited labels alone."""
Rows = Iterable[tuple[str, dict[str, float]]]
"""Rows of a table: its name, and means by kind of policy."""
Component = tuple[float, Profile]
"""A share of the examples, and the profile of what is seen of them."""


def _of_shares(*components: Component) -> Profile:
    """Return the profile of examples that show which of some components they are of."""

    def profile(epsilon: float) -> float:
        return sum(share * of(epsilon) for share, of in components)

    return profile


def _shares(scores: FloatArray, *components: Component) -> Shown:
    """Return what a game shows whose examples are of some components, others being noise."""
    profile = _of_shares(*components)
    return {"scores": scores, "truth": math.inf, "parameter": "epsilon", "profile": profile}


def _signs(rng: np.random.Generator, size: int) -> FloatArray:
    return np.where(rng.random(size) < 0.5, 1.0, -1.0)


def _share(value: float, name: str) -> float:
    return real(value, name=name, above=0, below=1)


@dataclass(frozen=True)
class Saturated(OfCoins):
    """N(μ), but for a share of examples whose scores are ±inf and say nothing."""

    share: float = 0.04
    mu: float = 1.0

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        share = _share(self.share, "share")
        mu = real(self.mu, name="mu", above=0, below=math.inf)
        scores = rng.normal(size=member.size) + mu * member
        far = rng.random(member.size) < share
        scores = np.where(far, np.inf * _signs(rng, member.size), scores)
        return _shares(scores, (1 - share, gaussian_profile(mu)))


@dataclass(frozen=True)
class Overconfident(OfCoins):
    """A network's logits: a share is extreme and right with odds e^ε, others are N(μ)."""

    share: float = 0.08
    epsilon: float = 0.2
    mu: float = 1.5

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        share = _share(self.share, "share")
        mu = real(self.mu, name="mu", above=0, below=math.inf)
        m = member.size
        epsilon = real(self.epsilon, name="epsilon", least=0, below=math.inf)
        scores = rng.normal(size=m) + mu * (member - 0.5)
        size = 7 + rng.exponential(size=m)
        said = np.where(_right(rng, size=m, epsilon=epsilon), member, ~member)
        scores = np.where(rng.random(m) < share, np.where(said, size, -size), scores)
        parts = (share, response_profile(epsilon)), (1 - share, gaussian_profile(mu))
        return _shares(scores, *parts)


@dataclass(frozen=True)
class LabelNoise(OfCoins):
    """The outermost scores have many wrong labels, the next ones few, and the rest are N(μ)."""

    share: float = 0.03
    wrong: float = 0.4
    next_share: float = 0.1
    next_wrong: float = 0.03
    mu: float = 0.3

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        share = _share(self.share, "share")
        beyond = _share(self.next_share, "next_share")
        mu = real(self.mu, name="mu", above=0, below=math.inf)
        m = member.size
        scores = rng.normal(size=m) + mu * (member - 0.5)
        place = rng.random(m)
        size = rng.exponential(size=m)
        outer = place < share
        told = place < share + beyond
        mistaken = rng.random(m) < np.where(outer, self.wrong, self.next_wrong)
        far = np.where(member ^ mistaken, 1.0, -1.0) * (np.where(outer, 20.0, 8.0) + size)
        odds = [math.log((1 - one) / one) for one in (self.wrong, self.next_wrong)]
        return _shares(
            np.where(told, far, scores),
            (share, response_profile(odds[0])),
            (beyond, response_profile(odds[1])),
            (1 - share - beyond, gaussian_profile(mu)),
        )


@dataclass(frozen=True)
class Boilerplate(OfCoins):
    """Losses of a language model: boilerplate and garbled texts are outermost, members or not.

    A share of the other members is memorised, and the rest is N(μ).
    """

    share: float = 0.02
    memorised: float = 0.1
    mu: float = 0.3

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        share = _share(self.share, "share")
        known = _share(self.memorised, "memorised")
        mu = real(self.mu, name="mu", above=0, below=math.inf)
        m = member.size
        losses = 3 + 0.5 * (rng.normal(size=m) - mu * member)
        low = 0.5 + 0.2 * rng.random(m)
        losses = np.where(member & (rng.random(m) < known), low, losses)
        place = rng.random(m)
        losses = np.where(place < share, 0.05 * rng.random(m), losses)
        garbled = (place >= share) & (place < 2 * share)
        losses = np.where(garbled, 8 + rng.random(m), losses)
        return _shares(-losses, (1 - 2 * share, _memorised(known, mu)))


@dataclass(frozen=True)
class Cauchy(OfCoins):
    """Membership, 0 or 1, times a shift, with Cauchy noise of scale 1: far scores say little."""

    shift: float = 4.0

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        shift = real(self.shift, name="shift", above=0, below=math.inf)
        scores = shift * member + rng.standard_cauchy(member.size)
        # The largest likelihood ratio is where its derivative is 0.
        truth = 2 * math.asinh(shift / 2)
        return {"scores": scores, "truth": truth, "parameter": "epsilon"}


@dataclass(frozen=True)
class Plateau(OfCoins):
    """The outermost share is coins, the next one is right with odds e^ε, and the rest is coins."""

    share: float = 0.06
    next_share: float = 0.3
    epsilon: float = 1.5

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        share = _share(self.share, "share")
        beyond = _share(self.next_share, "next_share")
        epsilon = real(self.epsilon, name="epsilon", least=0, below=math.inf)
        m = member.size
        place = rng.random(m)
        told = (place >= share) & (place < share + beyond)
        right = np.where(told, _right(rng, size=m, epsilon=epsilon), rng.random(m) < 0.5)
        scores = np.where(right == member, 1.0, -1.0) * (1 - place)
        return _shares(scores, (beyond, response_profile(epsilon)))


@dataclass(frozen=True)
class Middle(OfCoins):
    """A share in the middle of the scores is right with odds e^ε, the others with e^outer."""

    share: float = 0.2
    epsilon: float = 2.0
    outer: float = 0.2

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        share = _share(self.share, "share")
        m = member.size
        epsilon = real(self.epsilon, name="epsilon", least=0, below=math.inf)
        outer = real(self.outer, name="outer", least=0, below=math.inf)
        place = rng.random(m)
        right = np.where(
            place > 1 - share,
            _right(rng, size=m, epsilon=epsilon),
            _right(rng, size=m, epsilon=outer),
        )
        scores = np.where(right == member, 1.0, -1.0) * (1 - place)
        parts = (share, response_profile(epsilon)), (1 - share, response_profile(outer))
        return _shares(scores, *parts)


@dataclass(frozen=True)
class RoundedLaplace(OfCoins):
    """Membership with integer noise whose log-ratios of neighbours vary, and learnt scores.

    Scores are log-ratios of frequencies in a pilot sample of the noise: those of rare outputs are
    noise.
    """

    steps: tuple[float, float, float] = (0.34, 0.16, 0.51)
    pilot: int = 200_000

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        values, chances = _integers(self.steps)
        outputs = rng.choice(values, member.size, p=chances) + member
        pilot = integer(self.pilot, name="pilot", least=1, most=MOST_EXAMPLES)
        seen = rng.multinomial(pilot, chances) + 0.5
        likely = np.log(seen + seen[::-1])
        last = values[-1]
        now = np.clip(outputs, -last, last) + last
        before = np.clip(outputs - 1, -last, last) + last
        scores = likely[before] - likely[now]
        # Of the last values, which one in a billion outputs has, nothing is said.
        profile = _of_laws(chances[1:], chances[:-1])
        truth = max(self.steps)
        return {"scores": scores, "truth": truth, "parameter": "epsilon", "profile": profile}


@dataclass(frozen=True)
class LearntRatios(OfCoins):
    """One of 64 outputs with frequencies of Zipf; scores are ratios learnt from a pilot sample."""

    pilot: int = 4000
    common: float = 0.6
    rare: float = 0.1

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        place = np.arange(64)
        tilt = np.where(place % 2 == 0, 1, -1) * np.where(place < 16, self.common, self.rare)
        each = [np.exp(sign * tilt) / (1 + place) ** 1.3 for sign in (-1, 1)]
        laws = [law / law.sum() for law in each]
        pilot = integer(self.pilot, name="pilot", least=1, most=MOST_EXAMPLES)
        counts = [rng.multinomial(pilot, law) + 0.5 for law in laws]
        learnt = np.log(counts[1] / counts[1].sum()) - np.log(counts[0] / counts[0].sum())
        outputs = [rng.choice(64, member.size, p=law) for law in laws]
        scores = learnt[np.where(member, outputs[1], outputs[0])]
        truth = float(np.abs(np.log(laws[1] / laws[0])).max())
        profile = _of_laws(*laws)
        return {"scores": scores, "truth": truth, "parameter": "epsilon", "profile": profile}


def _of_laws(*laws: FloatArray) -> Profile:
    """Return the profile of an output with one of two laws."""

    def profile(epsilon: float) -> float:
        largest = 0.0
        for one, two in (laws, laws[::-1]):
            gap = one - math.exp(epsilon) * two
            largest = max(largest, float(np.maximum(0, gap).sum()))
        return largest

    return profile


def _right(rng: np.random.Generator, size: int, epsilon: float) -> BoolArray:
    """Return which of some guesses are right, with odds e^ε."""
    return np.asarray(rng.random(size) * (1 + math.exp(-epsilon)) < 1)


def _memorised(share: float, mu: float) -> Profile:
    """Return the profile of N(μ) of which a share of the members shows that they are members."""

    def excess(first: float, second: float) -> float:
        """Return sup over events of first · N(μ) less second · N(0)."""
        at = math.log(second / first) / mu
        inside, outside = normal_cdf(np.array([mu / 2 - at, -mu / 2 - at]))
        return float(first * inside - second * outside)

    def profile(epsilon: float) -> float:
        factor = math.exp(epsilon)
        return max(share + excess(1 - share, factor), excess(1.0, factor * (1 - share)))

    return profile


@lru_cache(maxsize=8)
def _integers(steps: tuple[float, ...]) -> tuple[Any, FloatArray]:
    """Return integers, and a law whose logarithm falls from 0 on by these steps in turn."""
    falls = np.cumsum(np.array(steps)[np.arange(60) % len(steps)])
    down = np.concatenate([falls[::-1], [0.0], falls])
    chances = np.exp(-down)
    return np.arange(-60, 61), chances / chances.sum()


@dataclass(frozen=True, kw_only=True)
class Shifted:
    """An untidy game whose members differ: log-odds are N(0, 1), the first of two features."""

    game: OfCoins
    way: Way

    def __call__(self, m: int, *, seed: int) -> Game:
        """Play the game of a seed, with as many other labels where log-odds are learnt."""
        rng = generator(m, seed)
        features = rng.normal(size=(2 * m, 2))
        odds = features[:, 0]
        members = rng.random(2 * m) < expit(odds)
        audited, others = slice(m), slice(m, None)
        member = members[audited]
        design: partial[lb.ZeroRun] = partial(lb.ZeroRun, member, expit(odds[audited]))
        if self.way != "known":
            model: Any = LogisticPropensity()
            if self.way == "learnt":
                model = model.fit(features[others], members[others], seed=seed)
            seen = features[audited]
            design = partial(lb.ZeroRun, member, model, features=seen, falsify=False)
        return replace(self.game.shown(rng, member), design=design)


GAMES: tuple[OfCoins, ...] = (
    RoundedLaplace(),
    LearntRatios(),
    Overconfident(),
    LabelNoise(),
    Boilerplate(),
    Saturated(),
    Cauchy(),
    Plateau(),
    Middle(),
)
_CLAIMS: dict[str, Claim] = {
    "pure": lb.PureDP(),
    "approximate": lb.ApproxDP(delta=peers.DELTA),
    "gaussian": lb.GaussianDP(),
}
_RATIO = 2.0


def _fixed(m: int) -> list[int]:
    """Return numbers of guesses to fix in advance."""
    most = int(math.log(m / 16, _RATIO))
    return [*(math.ceil(16 * _RATIO**step) for step in range(most + 1)), m]


def _policies(claim: Claim, m: int) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield what is compared: its kind, and options of an audit."""
    yield "default", {}
    yield "outside-in", {"cuts": lb.OutsideIn()}
    yield "best", {"cuts": lb.OutsideIn(), "sides": "both"}
    yield "best", {"cuts": lb.UnionBound(grid="geometric"), "sides": "both"}
    if isinstance(claim, lb.PureDP):
        yield "best", {"cuts": lb.KLScan()}
    for guesses, sides in product(_fixed(m), ("both", "member")):
        yield "best", {"cuts": lb.Fixed(guesses), "sides": sides}


def means(
    game: Any, m: int, claim: Claim, seeds: int, policies: Iterable[tuple[str, dict[str, Any]]]
) -> dict[str, float]:
    """Return the largest mean bound of each kind of policy on the same games."""
    found: dict[str, float] = {}
    played = [game(m, seed=seed) for seed in range(seeds)]
    for kind, options in policies:
        how = {name: value for name, value in options.items() if name != "design"}
        bounds = []
        for seed, one in enumerate(played):
            design = one.design or partial(options.get("design", lb.Coins), one.member)
            result = lb.audit(one.scores, design(), claim=claim, seed=seed, **how)
            bounds.append(result.bound)
        found[kind] = max(found.get(kind, 0.0), float(np.mean(bounds)))
    return found


def row(game: Any, m: int, claim: Claim, seeds: int) -> dict[str, float]:
    """Return mean bounds of the default, of outside-in, and of the best in hindsight."""
    found = means(game, m=m, claim=claim, seeds=seeds, policies=_policies(claim, m))
    found["best"] = max(found["best"], found["outside-in"])
    return found


def beside_fixed(game: Any, m: int, claim: Claim, seeds: int) -> dict[str, float]:
    """Return mean bounds of the default, and of the best number of guesses fixed in advance."""
    fixed = [("best", {"cuts": lb.Fixed(guesses)}) for guesses in _fixed(m)]
    return means(game, m=m, claim=claim, seeds=seeds, policies=[("default", {}), *fixed])


def _table(heads: str, rows: Rows) -> None:
    """Print a table: means of two kinds or three, and the first two's last share."""
    peers.say(f"\n| {heads} |\n|{'---|' * (heads.count('|') + 1)}")
    for name, found in rows:
        last = found["best"]
        share = math.nan
        if last:
            share = found["default"] / last
        said = " | ".join(f"{number:.2f}" for number in [*found.values(), share])
        peers.say(f"| {name} | {said} |")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Which rows are played: games by name (all if None), claims, what is known, and how often."""

    games: list[str] | None
    claims: tuple[Claim, ...]
    ways: list[Way]
    seeds: int | None

    @property
    def untidy(self) -> list[OfCoins]:
        """The untidy games that are asked for."""
        return [one for one in GAMES if self.games is None or type(one).__name__ in self.games]

    def of(self, claim: Claim) -> int:
        """Return the games of a row: few of a family's, whose audits are slow."""
        if self.seeds is not None:
            return self.seeds
        if isinstance(claim, lb.GaussianDP):
            return 6
        return 12


def _noisy(asked: Asked, sizes: list[int]) -> Rows:
    """Yield rows of all untidy games, of fair coins from either end."""
    for claim, game, m in product(asked.claims, asked.untidy, sizes):
        name = f"{type(game).__name__} | {m:,} | {claim.name}"
        yield name, row(game, m=m, claim=claim, seeds=asked.of(claim))


def _fixed_sides(asked: Asked, sizes: list[int]) -> Rows:
    """Yield rows of random splits and of fixed sides, beside a union bound of the same design."""
    ways: dict[str, dict[str, Any]] = {
        "random split": {"design": lb.RandomSplit},
        "both": {"sides": "both"},
        "member": {"sides": "member"},
    }
    union = {"cuts": lb.UnionBound(grid="geometric")}
    for claim, (name, how), m in product(asked.claims, ways.items(), sizes):
        policies = [("default", how), ("best", {**how, **union})]
        found = means(Saturated(), m=m, claim=claim, seeds=asked.seeds or 6, policies=policies)
        yield f"{name} | {m:,} | {claim.name}", found


def _learnt(asked: Asked, sizes: list[int]) -> Rows:
    """Yield rows of rounded Laplace noise, beside the scan of all thresholds."""
    claim = lb.PureDP()
    policies: list[tuple[str, dict[str, Any]]] = [("default", {}), ("best", {"cuts": lb.KLScan()})]
    for m in sizes:
        game = RoundedLaplace()
        found = means(game, m=m, claim=claim, seeds=asked.of(claim), policies=policies)
        yield f"{m:,}", found


def _shifted(asked: Asked, sizes: list[int]) -> Rows:
    """Yield rows of Zero-Run audits, beside numbers of guesses fixed in advance."""
    for way, claim, game, m in product(asked.ways, asked.claims, asked.untidy, sizes):
        shifted = Shifted(game=game, way=way)
        found = beside_fixed(shifted, m=m, claim=claim, seeds=asked.seeds or 3)
        yield f"{way} | {type(game).__name__} | {m:,} | {claim.name}", found


def _standard(asked: Asked, sizes: list[int]) -> Rows:
    """Yield rows of games whose surest scores are outermost, beside `OutsideIn`."""
    policies: list[tuple[str, dict[str, Any]]] = [
        ("default", {}),
        ("best", {"cuts": lb.OutsideIn()}),
    ]
    shapes = (
        *(Gaussian(mu=mu) for mu in (0.5, 1.0, 2.0, 4.0)),
        *(TwoSidedTail(share=0.05, shift=20.0), OneSidedTail(share=0.2, shift=3.0)),
        *(OneSidedTail(share=0.05, shift=4.0), TwoSidedTail(share=0.05, shift=4.0)),
    )
    for claim, game, m in product(asked.claims, shapes, sizes):
        seeds = asked.seeds or 12
        yield (
            f"{game!r} | {m:,} | {claim.name}",
            means(game, m=m, claim=claim, seeds=seeds, policies=policies),
        )


_START = "game | m | claim"
_TABLES: dict[str, tuple[str, Callable[[Asked, list[int]], Rows], list[int]]] = {
    "noisy": (
        f"{_START} | default | `OutsideIn` | best in hindsight | default / best",
        _noisy,
        [10**3, 10**4],
    ),
    "sides": ("Saturated | m | claim | default | union bound | share", _fixed_sides, [10**4]),
    "learnt": (
        "RoundedLaplace, m | default | `KLScan` | share",
        _learnt,
        [10**4, 4 * 10**4, 10**5, 2 * 10**5],
    ),
    "shifted": (
        f"known | {_START} | default | best fixed number | share",
        _shifted,
        [10**4],
    ),
    "standard": (f"{_START} | default | `OutsideIn` | share", _standard, [10**3, 10**4]),
}
"""Tables by name: their head, their rows, and the numbers of examples of these."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", choices=_TABLES, default=list(_TABLES))
    parser.add_argument("--games", nargs="+", choices=[type(game).__name__ for game in GAMES])
    parser.add_argument("--claims", nargs="+", choices=_CLAIMS, default=list(_CLAIMS))
    parser.add_argument("--ways", nargs="+", choices=get_args(Way), default=list(get_args(Way)))
    parser.add_argument("--sizes", nargs="+", type=int, help="examples, in place of each table's")
    parser.add_argument("--seeds", type=int, help="games of each row, in place of each table's")
    given = parser.parse_args()
    claims = tuple(_CLAIMS[name] for name in given.claims)
    asked = Asked(games=given.games, claims=claims, ways=given.ways, seeds=given.seeds)
    for name in given.tables:
        heads, rows, sizes = _TABLES[name]
        _table(heads, rows(asked, given.sizes or sizes))


if __name__ == "__main__":
    main()
