"""What independent trials prove under (ε, δ)-DP, beside coins of one run and ranks of all trials.

PYTHONPATH=benches/papers python benches/tightness/allowance.py [--games 20]

One table: four pairs of m and δ, three leaks. The last column has what was proved of the same games
by the larger of two bounds: of ranks at a fifth of the error probability, whose worst law was
simulated, and of `OutsideIn` for coins at four fifths. It is stored, for 20 games.
"""

import argparse
import sys

import leakbound as lb
from trials import SHAPES, mean

__all__ = ["OF_COINS", "OF_RANKS", "RANKS", "rows"]

RANKS: dict[tuple[int, float, str], float] = {
    (1_000, 1e-5, "μ = 1"): 1.60,
    (1_000, 1e-5, "5 % of members told"): 1.45,
    (1_000, 1e-5, "5 % of both told"): 2.21,
    (1_000, 3e-4, "μ = 1"): 1.64,
    (1_000, 3e-4, "5 % of members told"): 1.06,
    (1_000, 3e-4, "5 % of both told"): 1.77,
    (10_000, 1e-5, "μ = 1"): 2.43,
    (10_000, 1e-5, "5 % of members told"): 4.12,
    (10_000, 1e-5, "5 % of both told"): 4.81,
    (10_000, 5e-4, "μ = 1"): 2.21,
    (10_000, 5e-4, "5 % of members told"): 3.34,
    (10_000, 5e-4, "5 % of both told"): 4.62,
}
"""m, δ and leak, and what ranks and coins proved together."""
OF_COINS = 0.97
OF_RANKS = 0.95
"""The least shares of both that the allowance has to prove."""


def rows(games: int) -> list[tuple[tuple[int, float, str], float, float]]:
    """Return the mean bounds of trials and of coins for each cell."""
    found = []
    for cell in RANKS:
        m, delta, leak = cell
        trials, coins = mean(SHAPES[leak], m=m, claim=lb.ApproxDP(delta=delta), games=games)
        found.append((cell, trials, coins))
    return found


def main() -> None:
    """Print the table, and fail where trials prove too little."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--games", type=int, default=20)
    given = parser.parse_args()
    print("| runs | δ | leak | `Coins` | `Trials` | of `Coins` | ranks | of ranks |")
    print("|---|---|---|--:|--:|--:|--:|--:|")
    too_little = []
    for (m, delta, leak), trials, coins in rows(given.games):
        ranks = RANKS[m, delta, leak]
        share_of_coins = ""
        if coins:
            share_of_coins = f"{trials / coins:.3f}"
        print(
            f"| {m:,} | {delta:g} | {leak} | {coins:.2f} | {trials:.2f} | {share_of_coins} "
            f"| {ranks:.2f} | {trials / ranks:.3f} |"
        )
        if trials < OF_COINS * coins or trials < OF_RANKS * ranks:
            too_little.append(f"{m:,}, {delta:g}, {leak}")
    if too_little:
        sys.exit(f"too little is proved of {'; '.join(too_little)}")


if __name__ == "__main__":
    main()
