"""Untidy games: their outermost scores are noise, as those of real attacks often are.

Each is a frozen dataclass of its parameters, as in `mechanisms`; ``GAMES`` has one of each.
`Shifted` plays one as a Zero-Run game, whose members differ from the others.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Literal, TypeAlias

import numpy as np

import leakbound as lb
from leakbound._base.numerics import expit, logit
from leakbound._base.types import BoolArray, FloatArray, IntArray
from leakbound.propensity import LogisticPropensity
from leakbound.simulate import Game
from leakbound.simulate.games import Profile, gaussian_profile, response_profile
from leakbound.stats import normal_cdf
from mechanisms import OfCoins, Shown, generator

Way: TypeAlias = Literal["known", "learnt", "set"]
"""What a Zero-Run audit knows of log-odds: all, other labels, or the audited labels alone."""
Component: TypeAlias = tuple[float, Profile]
"""A share of the examples, and the profile of what is seen of them."""


def _game_of_components(scores: FloatArray, *components: Component) -> Shown:
    """Return what a game shows whose examples are of some components, others being noise."""

    def profile(epsilon: float) -> float:
        return sum(share * profile_of_share(epsilon) for share, profile_of_share in components)

    return {
        "scores": scores,
        "truth": math.inf,
        "parameter": "epsilon",
        "profile": profile,
    }


def _random_signs(rng: np.random.Generator, size: int) -> FloatArray:
    return np.where(rng.random(size) < 0.5, 1.0, -1.0)


@dataclass(frozen=True)
class Saturated(OfCoins):
    """N(μ), but for a share of examples whose scores are ±inf and say nothing."""

    share: float = 0.04
    mu: float = 1.0

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        gaussian_noise = rng.normal(size=member.size)
        gaussian_scores = gaussian_noise + self.mu * member
        is_saturated = rng.random(member.size) < self.share
        infinite_scores = np.inf * _random_signs(rng, member.size)
        return _game_of_components(
            np.where(is_saturated, infinite_scores, gaussian_scores),
            (1 - self.share, gaussian_profile(self.mu)),
        )


@dataclass(frozen=True)
class Overconfident(OfCoins):
    """A network's logits: a share is extreme and right with odds e^ε, others are N(μ)."""

    share: float = 0.08
    epsilon: float = 0.2
    mu: float = 1.5

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        gaussian_noise = rng.normal(size=member.size)
        gaussian_scores = gaussian_noise + self.mu * (member - 0.5)
        magnitudes = 7 + rng.exponential(size=member.size)
        is_correct = _correct_guesses(rng, size=member.size, epsilon=self.epsilon)
        is_extreme = rng.random(member.size) < self.share
        extreme_scores = np.where(is_correct == member, magnitudes, -magnitudes)
        return _game_of_components(
            np.where(is_extreme, extreme_scores, gaussian_scores),
            (self.share, response_profile(self.epsilon)),
            (1 - self.share, gaussian_profile(self.mu)),
        )


@dataclass(frozen=True)
class LabelNoise(OfCoins):
    """The outermost scores have many wrong labels, the next ones few, and the rest are N(μ)."""

    share: float = 0.03
    wrong: float = 0.4
    next_share: float = 0.1
    next_wrong: float = 0.03
    mu: float = 0.3

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        gaussian_noise = rng.normal(size=member.size)
        gaussian_scores = gaussian_noise + self.mu * (member - 0.5)
        distances_from_end = rng.random(member.size)
        excesses = rng.exponential(size=member.size)
        is_outermost = distances_from_end < self.share
        is_labelled = distances_from_end < self.share + self.next_share
        error_rates = np.where(is_outermost, self.wrong, self.next_wrong)
        is_mistaken = rng.random(member.size) < error_rates
        signs = np.where(member ^ is_mistaken, 1.0, -1.0)
        magnitudes = np.where(is_outermost, 20.0, 8.0) + excesses
        return _game_of_components(
            np.where(is_labelled, signs * magnitudes, gaussian_scores),
            (self.share, response_profile(-logit(self.wrong))),
            (self.next_share, response_profile(-logit(self.next_wrong))),
            (1 - self.share - self.next_share, gaussian_profile(self.mu)),
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
        gaussian_noise = rng.normal(size=member.size)
        losses = 3 + 0.5 * (gaussian_noise - self.mu * member)
        losses_if_memorised = 0.5 + 0.2 * rng.random(member.size)
        is_memorised = member & (rng.random(member.size) < self.memorised)
        losses = np.where(is_memorised, losses_if_memorised, losses)

        uniforms = rng.random(member.size)
        losses_of_boilerplate = 0.05 * rng.random(member.size)
        losses_of_garbled_texts = 8 + rng.random(member.size)
        losses = np.where(uniforms < 2 * self.share, losses_of_garbled_texts, losses)
        losses = np.where(uniforms < self.share, losses_of_boilerplate, losses)
        return _game_of_components(
            -losses,
            (1 - 2 * self.share, _profile_of_memorised(self.memorised, self.mu)),
        )


@dataclass(frozen=True)
class Cauchy(OfCoins):
    """Membership, 0 or 1, times a shift, with Cauchy noise of scale 1: far scores say little."""

    shift: float = 4.0

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        cauchy_noise = rng.standard_cauchy(member.size)
        scores = self.shift * member + cauchy_noise
        # The largest likelihood ratio is where its derivative is 0.
        truth = 2 * math.asinh(self.shift / 2)
        return {"scores": scores, "truth": truth, "parameter": "epsilon"}


@dataclass(frozen=True)
class Plateau(OfCoins):
    """The outermost share is coins, the next one is right with odds e^ε, and the rest is coins."""

    share: float = 0.06
    next_share: float = 0.3
    epsilon: float = 1.5

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        distances_from_end = rng.random(member.size)
        is_outermost = distances_from_end < self.share
        is_informative = ~is_outermost & (distances_from_end < self.share + self.next_share)
        informed_guesses = _correct_guesses(rng, size=member.size, epsilon=self.epsilon)
        coin_tosses = rng.random(member.size) < 0.5
        is_correct = np.where(is_informative, informed_guesses, coin_tosses)
        return _game_of_components(
            _scores_of_guesses(is_correct, member, distances_from_end),
            (self.next_share, response_profile(self.epsilon)),
        )


@dataclass(frozen=True)
class Middle(OfCoins):
    """A share in the middle of the scores is right with odds e^ε, the others with e^outer."""

    share: float = 0.2
    epsilon: float = 2.0
    outer: float = 0.2

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        distances_from_end = rng.random(member.size)
        is_correct = np.where(
            distances_from_end > 1 - self.share,
            _correct_guesses(rng, size=member.size, epsilon=self.epsilon),
            _correct_guesses(rng, size=member.size, epsilon=self.outer),
        )
        return _game_of_components(
            _scores_of_guesses(is_correct, member, distances_from_end),
            (self.share, response_profile(self.epsilon)),
            (1 - self.share, response_profile(self.outer)),
        )


def _scores_of_guesses(
    is_correct: BoolArray, member: BoolArray, distances_from_end: FloatArray
) -> FloatArray:
    """Return scores in [-1, 1], positive if the guess is "member", the surest at both ends."""
    guesses = np.where(is_correct == member, 1.0, -1.0)
    return guesses * (1 - distances_from_end)


@dataclass(frozen=True)
class RoundedLaplace(OfCoins):
    """Membership with integer noise whose log-ratios of neighbours vary, and learnt scores.

    Scores are log-ratios of frequencies in a pilot sample of the noise: those of rare outputs are
    noise.
    """

    steps: tuple[float, float, float] = (0.34, 0.16, 0.51)
    pilot: int = 200_000

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        noise_values, probabilities = _integer_noise(self.steps)
        noise = rng.choice(noise_values, size=member.size, p=probabilities)
        outputs = noise + member
        pilot_counts = rng.multinomial(self.pilot, probabilities) + 0.5
        # The noise is symmetric.
        log_frequencies = np.log(pilot_counts + pilot_counts[::-1])

        def log_frequencies_of(noise: IntArray) -> FloatArray:
            """Return those of the nearest noise in the sample."""
            positions = np.clip(noise - noise_values[0], a_min=0, a_max=noise_values.size - 1)
            return np.asarray(log_frequencies[positions])

        return {
            "scores": log_frequencies_of(outputs - 1) - log_frequencies_of(outputs),
            "truth": max(self.steps),
            "parameter": "epsilon",
            # Of the last values, which one in a billion outputs has, nothing is said.
            "profile": _profile_of_two_laws(probabilities[1:], probabilities[:-1]),
        }


@dataclass(frozen=True)
class LearntRatios(OfCoins):
    """One of 64 outputs with frequencies of Zipf; scores are ratios learnt from a pilot sample."""

    pilot: int = 4000
    common: float = 0.6
    rare: float = 0.1

    def _show(self, rng: np.random.Generator, member: BoolArray) -> Shown:
        nonmember_law, member_law = self._output_laws()
        nonmember_counts = rng.multinomial(self.pilot, nonmember_law) + 0.5
        member_counts = rng.multinomial(self.pilot, member_law) + 0.5
        member_frequencies = member_counts / member_counts.sum()
        nonmember_frequencies = nonmember_counts / nonmember_counts.sum()
        learnt_log_ratios = np.log(member_frequencies) - np.log(nonmember_frequencies)
        nonmember_outputs = rng.choice(64, size=member.size, p=nonmember_law)
        member_outputs = rng.choice(64, size=member.size, p=member_law)
        outputs = np.where(member, member_outputs, nonmember_outputs)
        log_likelihood_ratios = np.log(member_law / nonmember_law)
        return {
            "scores": learnt_log_ratios[outputs],
            "truth": float(np.abs(log_likelihood_ratios).max()),
            "parameter": "epsilon",
            "profile": _profile_of_two_laws(nonmember_law, member_law),
        }

    def _output_laws(self) -> tuple[FloatArray, FloatArray]:
        """Return the laws of outputs of a non-member and of a member.

        Zipf's law is tilted up and down in turn, and less where outputs are rare.
        """
        output = np.arange(64)
        tilts = np.where(output < 16, self.common, self.rare)
        tilts[1::2] *= -1
        zipf_weights = (1 + output) ** 1.3
        nonmember_weights = np.exp(-tilts) / zipf_weights
        member_weights = np.exp(tilts) / zipf_weights
        nonmember_law = nonmember_weights / nonmember_weights.sum()
        return nonmember_law, member_weights / member_weights.sum()


def _profile_of_two_laws(first_law: FloatArray, second_law: FloatArray) -> Profile:
    """Return the profile of an output with one of two laws."""

    def profile(epsilon: float) -> float:
        """Return the largest probability of an event beyond e^ε times the other one."""
        factor = math.exp(epsilon)
        first_excesses = np.maximum(0, first_law - factor * second_law)
        second_excesses = np.maximum(0, second_law - factor * first_law)
        return float(max(first_excesses.sum(), second_excesses.sum()))

    return profile


def _correct_guesses(rng: np.random.Generator, size: int, epsilon: float) -> BoolArray:
    """Return which of some guesses are right, with odds e^ε."""
    inverse_probability = 1 + math.exp(-epsilon)
    uniforms = rng.random(size)
    return np.asarray(uniforms * inverse_probability < 1)


def _profile_of_memorised(memorised_share: float, mu: float) -> Profile:
    """Return the profile of N(μ) of which a share of the members shows that they are members."""
    other_share = 1 - memorised_share

    def excess(member_weight: float, nonmember_weight: float) -> float:
        """Return sup over events of a weight of N(μ) less a weight of N(0)."""
        threshold = math.log(nonmember_weight / member_weight) / mu
        means = np.array([mu / 2, -mu / 2])
        member_tail, nonmember_tail = normal_cdf(means - threshold)
        return float(member_weight * member_tail - nonmember_weight * nonmember_tail)

    def profile(epsilon: float) -> float:
        factor = math.exp(epsilon)
        of_members = memorised_share + excess(other_share, factor)
        of_nonmembers = excess(1.0, factor * other_share)
        return max(of_members, of_nonmembers)

    return profile


@lru_cache(maxsize=8)
def _integer_noise(steps: tuple[float, ...]) -> tuple[Any, FloatArray]:
    """Return integers, and a law whose logarithm falls from 0 on by these steps in turn."""
    steps_in_turn = np.resize(steps, 60)
    falls = np.cumsum(steps_in_turn)
    falls_on_both_sides = np.concatenate([falls[::-1], [0.0], falls])
    weights = np.exp(-falls_on_both_sides)
    probabilities = weights / weights.sum()
    return np.arange(-60, 61), probabilities


@dataclass(frozen=True, kw_only=True)
class Shifted:
    """An untidy game whose members differ: log-odds are N(0, 1), the first of two features."""

    game: OfCoins
    way: Way

    def __call__(self, m: int, *, seed: int) -> Game:
        """Play the game of a seed, with as many other labels where log-odds are learnt."""
        rng = generator(seed)
        features = rng.normal(size=(2 * m, 2))
        propensities = expit(features[:, 0])
        membership = rng.random(2 * m) < propensities
        audited_member, holdout_member = np.split(membership, 2)
        audited_features, holdout_features = np.split(features, 2)
        game = self.game.shown(rng, audited_member)
        if self.way == "known":
            return replace(game, design=partial(lb.ZeroRun, audited_member, propensities[:m]))
        model: Any = LogisticPropensity()
        if self.way == "learnt":
            model = model.fit(holdout_features, holdout_member, seed=seed)
        design = partial(
            lb.ZeroRun,
            audited_member,
            model,
            features=audited_features,
            falsify=False,
        )
        return replace(game, design=design)


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
