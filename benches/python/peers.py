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
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

import leakbound as lb
from leakbound import simulate, stats

BETA = 0.05
DELTA = 1e-5
PRINTED_SPLIT = {10**3: 1.50, 10**4: 1.49, 10**5: 2.10, 10**6: 2.47}
"""Mean bounds of jax-privacy's Split on the Gaussian game, as measured before, for reference."""

PATIENCE = 300.0
"""Seconds after which an audit plays no further game."""

Audit: TypeAlias = Callable[[simulate.Game, int], float]
"""From a game and a seed to a lower bound on ε at δ."""


def ours() -> dict[str, Audit]:
    def approx(game: simulate.Game, seed: int) -> float:
        claim = lb.ApproxDP(delta=DELTA)
        return lb.audit(game.scores, lb.Coins(game.member), claim=claim, seed=seed).bound

    return {"leakbound, default": approx}


def jax_privacy() -> dict[str, Audit]:
    auditing: Any = importlib.import_module("jax_privacy.auditing")

    def auditor(game: simulate.Game) -> Any:
        return auditing.CanaryScoreAuditor(game.scores[game.member], game.scores[~game.member])

    def one_run(strategy: Callable[[int], Any]) -> Audit:
        return lambda game, seed: float(
            auditor(game).epsilon_one_run(BETA, DELTA, threshold_strategy=strategy(seed))
        )

    return {
        "jax-privacy Split": one_run(lambda seed: auditing.Split(seed=seed)),
        "jax-privacy MultiSplit": one_run(
            lambda seed: auditing.MultiSplit(num_samples=20, seed=seed)
        ),
        "jax-privacy Bonferroni": one_run(lambda _: auditing.Bonferroni()),
        "jax-privacy f-DP": lambda game, _: float(auditor(game).epsilon_one_run_fdp(BETA, DELTA)),
        "jax-privacy two samples": lambda game, _: float(
            auditor(game).epsilon_clopper_pearson(BETA, DELTA)
        ),
    }


def opake() -> dict[str, Audit]:
    auditing: Any = importlib.import_module("opake.auditing")
    types: Any = importlib.import_module("opake.auditing.types")

    def estimate(game: simulate.Game) -> Any:
        ids = np.arange(game.member.size)
        flips = types.CoinFlip(
            num_canaries=ids.size,
            canary_indices=ids,
            _in_mask=game.member,
            in_indices=ids[game.member],
            out_indices=ids[~game.member],
        )
        scores = auditing.canary_scores(game.scores, canary_indices=ids)
        return auditing.one_run(scores, coin_flip=flips)

    def epsilon(method: Any) -> float:
        return float(method.epsilon_at(delta=DELTA, significance=BETA))

    return {
        "opake (ε, δ)": lambda game, _: epsilon(estimate(game).eps_delta()),
        "opake GDP": lambda game, _: epsilon(estimate(game).gdp()),
    }


def installed(words: str = "") -> dict[str, Audit]:
    """Return the audits of every package that can be imported, ours first."""
    audits: dict[str, Audit] = {}
    for load in (ours, jax_privacy, opake):
        try:
            audits |= load()
        except ImportError as error:
            say(f"({load.__name__} does not take part: {error})")
    parts = words.split(",")
    return {name: audit for name, audit in audits.items() if any(p in name for p in parts)}


def false_claims(play: Callable[[int], simulate.Game], games: int, words: str) -> Iterator[str]:
    """Yield a line for each audit: how often it claims more than the truth, while time lasts."""
    for name, audit in installed(words).items():
        start = time.perf_counter()
        bounds = []
        wrong = 0
        for seed in range(games):
            game = play(2 * seed)
            bounds.append(audit(game, 2 * seed + 1))
            wrong += bounds[-1] > game.epsilon(DELTA)
            if time.perf_counter() - start > PATIENCE:
                break
        played = len(bounds)
        each = (time.perf_counter() - start) / played
        luck = stats.binomial_tail(wrong, n=played, p=BETA)
        yield (
            f"{name:<26} {100 * wrong / played:6.1f} % of {played:,} games "
            f"(p = {luck:.1e})   mean bound {np.mean(bounds):.3f}   {each:.4f} s each"
        )


def gaussian(games: int, sizes: list[int], words: str) -> Iterator[str]:
    """Yield a line for each size: mean bounds at equal data."""
    truth = simulate.gaussian(1, 1.0, seed=0).epsilon(DELTA)
    yield f"sigma = 1, δ = {DELTA:g}, {games} games of each size; the truth is ε = {truth:.3f}"
    audits = installed(words)
    for size in sizes:
        played = [simulate.gaussian(size, 1.0, seed=seed) for seed in range(games)]
        printed = PRINTED_SPLIT.get(size)
        note = ""
        if printed:
            note = f"   (Split as measured before: {printed:.2f})"
        yield f"m = {size:,}{note}"
        for name, audit in audits.items():
            bounds = [audit(game, seed) for seed, game in enumerate(played)]
            error = np.std(bounds) / max(1, games - 1) ** 0.5
            yield f"  {name:<26} {np.mean(bounds):.3f} ± {error:.3f}"


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("what", choices=["noise", "mixture", "gaussian"])
    parser.add_argument("--games", type=int, help="games; 500, or 20 for gaussian")
    parser.add_argument("-m", type=int, nargs="*", help="canaries; 1000, or 10³ to 10⁶")
    parser.add_argument(
        "--only", default="", help="names of the audits to run, or parts, by commas"
    )
    options = parser.parse_args()
    if options.what == "gaussian":
        lines = gaussian(
            options.games or 20, sizes=options.m or list(PRINTED_SPLIT), words=options.only
        )
    else:
        size = (options.m or [1000])[0]
        plays: dict[str, Callable[[int], simulate.Game]] = {
            "noise": lambda seed: simulate.null(size, seed=seed),
            "mixture": lambda seed: simulate.mixture(size, seed=seed),
        }
        lines = false_claims(plays[options.what], games=options.games or 500, words=options.only)
    for line in lines:
        say(line)


if __name__ == "__main__":
    main()
