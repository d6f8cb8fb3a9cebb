"""Other packages' audits of one run, on the same games: how often they are wrong, what they prove.

    python benches/python/peers.py noise
    python benches/python/peers.py mixture
    python benches/python/peers.py gaussian

Whichever of jax-privacy and opake-auditing can be imported takes part, beside leakbound; none is
needed for anything else, and privacyguard has no release on PyPI. Each is called as its
documentation says, with its defaults where nothing is said. What a name stands for:

    jax-privacy Split, MultiSplit, Bonferroni   `epsilon_one_run` with that threshold strategy
    jax-privacy f-DP                            `epsilon_one_run_fdp`, Bonferroni
    jax-privacy two samples                     `epsilon_clopper_pearson`, Bonferroni
    opake (ε, δ), opake GDP                     `one_run(…).eps_delta()` and `.gdp()`
"""

import argparse
import importlib
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

import leakbound as lb
from leakbound import simulate, stats

BETA = 0.05
DELTA = 1e-5
MEAN_OF_SPLIT = {10**3: 1.50, 10**4: 1.49, 10**5: 2.10, 10**6: 2.47}
"""Mean bounds of jax-privacy's Split on the Gaussian game, as measured before, for reference."""

PATIENCE = 300.0
"""Seconds after which an audit plays no further game."""

Audit: TypeAlias = Callable[[simulate.Game, int], float]
"""From a game and a seed to a lower bound on ε at δ."""


def ours() -> dict[str, Audit]:
    """Return the default audit of leakbound."""

    def default(game: simulate.Game, seed: int) -> float:
        claim = lb.ApproxDP(delta=DELTA)
        design = lb.Coins(game.member)
        return lb.audit(game.scores, design, claim=claim, seed=seed).bound

    return {"leakbound, default": default}


def jax_privacy() -> dict[str, Audit]:
    """Return the audits of jax-privacy."""
    auditing: Any = importlib.import_module("jax_privacy.auditing")

    def auditor(game: simulate.Game) -> Any:
        member_scores = game.scores[game.member]
        nonmember_scores = game.scores[~game.member]
        return auditing.CanaryScoreAuditor(member_scores, nonmember_scores)

    def one_run(strategy_of_seed: Callable[[int], Any]) -> Audit:
        def audit(game: simulate.Game, seed: int) -> float:
            strategy = strategy_of_seed(seed)
            epsilon = auditor(game).epsilon_one_run(BETA, DELTA, threshold_strategy=strategy)
            return float(epsilon)

        return audit

    def one_run_fdp(game: simulate.Game, _seed: int) -> float:
        return float(auditor(game).epsilon_one_run_fdp(BETA, DELTA))

    def two_samples(game: simulate.Game, _seed: int) -> float:
        return float(auditor(game).epsilon_clopper_pearson(BETA, DELTA))

    return {
        "jax-privacy Split": one_run(lambda seed: auditing.Split(seed=seed)),
        "jax-privacy MultiSplit": one_run(
            lambda seed: auditing.MultiSplit(num_samples=20, seed=seed)
        ),
        "jax-privacy Bonferroni": one_run(lambda _: auditing.Bonferroni()),
        "jax-privacy f-DP": one_run_fdp,
        "jax-privacy two samples": two_samples,
    }


def opake() -> dict[str, Audit]:
    """Return the audits of opake-auditing."""
    auditing: Any = importlib.import_module("opake.auditing")
    types: Any = importlib.import_module("opake.auditing.types")

    def estimate(game: simulate.Game) -> Any:
        canary_ids = np.arange(game.member.size)
        coin_flips = types.CoinFlip(
            num_canaries=canary_ids.size,
            canary_indices=canary_ids,
            _in_mask=game.member,
            in_indices=canary_ids[game.member],
            out_indices=canary_ids[~game.member],
        )
        scores = auditing.canary_scores(game.scores, canary_indices=canary_ids)
        return auditing.one_run(scores, coin_flip=coin_flips)

    def epsilon(method: Any) -> float:
        return float(method.epsilon_at(delta=DELTA, significance=BETA))

    return {
        "opake (ε, δ)": lambda game, _: epsilon(estimate(game).eps_delta()),
        "opake GDP": lambda game, _: epsilon(estimate(game).gdp()),
    }


def importable(*packages: Callable[[], dict[str, Audit]]) -> dict[str, Audit]:
    """Return the audits of those packages that can be imported."""
    audits: dict[str, Audit] = {}
    for audits_of_package in packages:
        try:
            audits |= audits_of_package()
        except ImportError as error:
            print(f"({audits_of_package.__name__} does not take part: {error})")
    return audits


def installed(words: str) -> dict[str, Audit]:
    """Return the audits whose names have one of some words, ours first."""
    parts_of_names = words.split(",")
    audits = importable(ours, jax_privacy, opake)
    return {
        name: audit
        for name, audit in audits.items()
        if any(part in name for part in parts_of_names)
    }


def false_claims(play: Callable[[int], simulate.Game], games: int, words: str) -> Iterator[str]:
    """Yield a line for each audit: how often it claims more than the truth, while time lasts."""
    for name, audit in installed(words).items():
        start = time.perf_counter()
        bounds = []
        false_bounds = 0
        for seed in range(games):
            game = play(2 * seed)
            bound = audit(game, 2 * seed + 1)
            bounds.append(bound)
            false_bounds += bound > game.epsilon(DELTA)
            if time.perf_counter() - start > PATIENCE:
                break
        games_played = len(bounds)
        seconds_of_game = (time.perf_counter() - start) / games_played
        percent_false = 100 * false_bounds / games_played
        # Of so many false bounds, if their rate is at most the level.
        p_value = stats.binomial_tail(false_bounds, n=games_played, p=BETA)
        yield (
            f"{name:<26} {percent_false:6.1f} % of {games_played:,} games (p = {p_value:.1e})   "
            f"mean bound {np.mean(bounds):.3f}   {seconds_of_game:.4f} s each"
        )


def gaussian(games: int, sizes: list[int], words: str) -> Iterator[str]:
    """Yield a line for each size: mean bounds at equal data."""
    truth = simulate.gaussian(1, 1.0, seed=0).epsilon(DELTA)
    yield f"sigma = 1, δ = {DELTA:g}, {games} games of each size; the truth is ε = {truth:.3f}"
    audits = installed(words)
    for size in sizes:
        games_played = [simulate.gaussian(size, 1.0, seed=seed) for seed in range(games)]
        reference = ""
        if size in MEAN_OF_SPLIT:
            reference = f"   (Split as measured before: {MEAN_OF_SPLIT[size]:.2f})"
        yield f"m = {size:,}{reference}"
        for name, audit in audits.items():
            bounds = [audit(game, seed) for seed, game in enumerate(games_played)]
            mean_bound = np.mean(bounds)
            degrees_of_freedom = max(1, games - 1)
            standard_error = np.std(bounds) / degrees_of_freedom**0.5
            yield f"  {name:<26} {mean_bound:.3f} ± {standard_error:.3f}"


def main() -> None:
    first_line, *_ = (__doc__ or "").splitlines()
    parser = argparse.ArgumentParser(description=first_line)
    parser.add_argument("what", choices=["noise", "mixture", "gaussian"])
    parser.add_argument("--games", type=int, help="games; 500, or 20 for gaussian")
    parser.add_argument("-m", type=int, nargs="*", help="canaries; 1000, or 10³ to 10⁶")
    parser.add_argument(
        "--only", default="", help="names of the audits to run, or parts, by commas"
    )
    options = parser.parse_args()
    if options.what == "gaussian":
        lines = gaussian(
            games=options.games or 20,
            sizes=options.m or list(MEAN_OF_SPLIT),
            words=options.only,
        )
    else:
        size, *_ = options.m or [1000]
        plays: dict[str, Callable[[int], simulate.Game]] = {
            "noise": lambda seed: simulate.null(size, seed=seed),
            "mixture": lambda seed: simulate.mixture(size, seed=seed),
        }
        lines = false_claims(
            plays[options.what],
            games=options.games or 500,
            words=options.only,
        )
    for line in lines:
        print(line, flush=True)


if __name__ == "__main__":
    main()
