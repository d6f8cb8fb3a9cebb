"""How often the census audit's lower bounds on ε accuse targets that saw nobody who is audited.

Run it as `python benches/papers/census_null.py [GAMES]`. Each game has people, a generator, splits
and coins of its own; the targets learnt other people of the same census by heart. (PANORAMIA's ε̃
is an estimate and claims nothing.)
"""

import sys
from collections import Counter

from torch import nn

from census import CATEGORICAL, Census, features
from leakbound.demo.training import Ticks
from leakbound.generators import SequentialCART
from leakbound.panoramia import Helper, Options, run
from leakbound.panoramia.scores import CORRECTIONS
from leakbound.torch.placement import reproducible
from targets import drawn, table_classifier

MEMBERS = 4800
EPOCHS = 40
SHARED = 10
"""Games that have one target."""
OTHERS = 10**6
"""What is added to a seed for people who are not audited."""


def target(seed: int) -> nn.Module:
    """Return a network that learnt other people by heart."""
    others = drawn(Census(), features, MEMBERS, OTHERS + seed).training
    (trained,) = table_classifier(256).overfit(others, [EPOCHS], seed, Ticks(None, EPOCHS))
    return trained.network.eval()


def game(network: nn.Module, seed: int) -> dict[str, float]:
    """Return the bound of each row on ε."""
    members = drawn(Census(), features, MEMBERS, seed).members
    options = Options(
        inputs=features,
        helper=Helper(epochs=10),
        saturation=(),
        seeds=(seed,),
        conditional=True,
    )
    generator = SequentialCART(categorical=CATEGORICAL)
    found = run(network, members, generator, options=options)
    return {name: found.row("target", name).results[0].bound for name in CORRECTIONS}


def main() -> None:
    """Print how many games each row claims in; the nominal rate of each is 5 %."""
    games = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    claims: Counter[str] = Counter()
    with reproducible():
        for seed in range(games):
            if seed % SHARED == 0:
                network = target(seed)
            bounds = game(network, seed)
            claims.update(name for name, bound in bounds.items() if bound > 0)
            sys.stderr.write(f"{seed + 1}: {dict(claims)}\n")
    for name in CORRECTIONS:
        sys.stdout.write(f"{name}: {claims[name]} of {games}\n")


if __name__ == "__main__":
    main()
