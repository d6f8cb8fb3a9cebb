"""How often lower bounds on ε accuse targets that saw nobody who is audited, on UCI Adult.

Run it as `python benches/papers/people_null.py [GAMES]`. Each game has members, a generator, splits
and coins of its own; the targets memorised other people. (PANORAMIA's ε̃ is an estimate and
claims nothing.)
"""

import sys
from collections import Counter

from leakbound.generators import SequentialCART
from leakbound.panoramia import Helper, Options, run
from leakbound.panoramia.scores import CORRECTIONS
from leakbound.torch.device import reproducible
from real_data import adult
from targets import divided, perceptron

MEMBERS = 4800
EPOCHS = 40


def game(seed: int) -> dict[str, float]:
    """Return the bound of each row on ε."""
    table = adult()
    material = divided(
        table.values, labels=table.labels, inputs=table.encoded, members=MEMBERS, seed=seed
    )
    # The target learns from as many other people, and the audit takes the non-members for members.
    recipe = perceptron(material.training.tensors[0].shape[1], width=256, classes=2)
    (model,) = recipe.overfit(material.training, [EPOCHS], seed)
    options = Options(
        inputs=table.encoded,
        helper=Helper(epochs=10),
        saturation=(),
        seeds=(seed,),
        conditional=True,
    )
    generator = SequentialCART(categorical=table.categorical)
    found = run(
        model.network.eval(), members=material.nonmembers, generator=generator, options=options
    )
    return {name: found.row("target", name).results[0].bound for name in CORRECTIONS}


def main() -> None:
    """Print how many games each row claims in; the nominal rate of each is 5 %."""
    games = 200
    if len(sys.argv) > 1:
        games = int(sys.argv[1])
    claims: Counter[str] = Counter()
    with reproducible():
        for seed in range(games):
            bounds = game(seed)
            for name, bound in bounds.items():
                claims[name] += bound > 0
            print(f"{seed + 1}: {dict(claims)}", file=sys.stderr)
    for name in CORRECTIONS:
        print(f"{name}: {claims[name]} of {games}")


if __name__ == "__main__":
    main()
