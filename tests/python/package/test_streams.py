"""All random numbers of the library come from one place, and no two uses share a stream."""

import ast
import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import leakbound
from leakbound import InclusionPlan
from leakbound._base.streams import Purpose
from leakbound.generators import PCAMixture
from leakbound.planning import power
from leakbound.propensity import LogisticPropensity, hold_out

PACKAGE = Path(leakbound.__file__).parent
HOME = PACKAGE / "_base" / "streams.py"

MAKERS = {
    *("default_rng", "SeedSequence", "RandomState", "Generator", "BitGenerator"),
    *("PCG64", "PCG64DXSM", "Philox", "MT19937", "SFC64"),
}
"""What makes random numbers in NumPy, whatever it is imported as."""
SEEDERS = {"manual_seed", "manual_seed_all", "seed"}
"""What seeds the generators of PyTorch, NumPy and Python."""


def sources() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        if path != HOME:
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def called(node: ast.expr) -> str:
    """Return the last name of what is called; nothing of what is no call."""
    return ast.unparse(node.func).split(".")[-1] if isinstance(node, ast.Call) else ""


def is_stray(node: ast.AST) -> bool:
    """Whether something draws, or seeds what draws, from anything but a purpose."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
        return any(name == "random" or name.startswith("numpy.random") for name in names)
    if not isinstance(node, ast.Call):
        return False
    name, whole = called(node), ast.unparse(node.func)
    seeds = [keyword.value for keyword in node.keywords if keyword.arg == "random_state"]
    seeds += node.args[:1] or [node] if name in SEEDERS else []
    return (
        any(called(seed) != "derived" for seed in seeds)
        or whole.startswith(("np.random.", "numpy.random."))
        or (name in MAKERS and whole != "torch.Generator")  # which is seeded next to it
    )


def strays(tree: ast.Module) -> list[str]:
    return [ast.unparse(node) for node in ast.walk(tree) if is_stray(node)]


FOREIGN = {
    "integrations/global_random.py": {
        *("import random", "np.random.get_state", "np.random.set_state", "np.random.seed"),
        *("random.seed", "torch.manual_seed", "torch.Generator"),
    },
    "mechanisms/worker.py": {
        *("import random", "random.seed", "np.random.seed", "np.random.default_rng"),
    },
}
"""Where generators of users' own code are seeded, by a seed that a purpose gave: which calls."""


def test_nothing_else_makes_random_streams() -> None:
    found = {str(path.relative_to(PACKAGE)): strays(tree) for path, tree in sources()}
    calls = {path: {call.partition("(")[0] for call in stray} for path, stray in found.items()}
    assert {path: names for path, names in calls.items() if names} == FOREIGN


@pytest.mark.parametrize(
    "line",
    [
        "rng = np.random.default_rng(seed)",
        "from numpy.random import default_rng",
        "import random",
        "bits = Philox(seed)",
        "np.random.seed(seed)",
        "torch.manual_seed(seed)",
        "dice = torch.Generator().manual_seed(seed)",
        "model = Classifier(random_state=seed)",
        "model = Classifier(random_state=0)",
    ],
)
def test_a_stray_is_seen(line: str) -> None:
    assert strays(ast.parse(line))


def test_every_purpose_is_used_in_one_place() -> None:
    uses = Counter(
        node.attr
        for _, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Purpose"
    )
    # `__members__` holds aliases too, which two members of one value would be.
    assert uses == dict.fromkeys(Purpose.__members__, 1)
    assert len(Purpose.__members__) == len(list(Purpose))


def test_streams_of_purposes_and_numbers_differ() -> None:
    numbers = [(0,), (1,), (0, 0), (0, 1), (1, 0), (2**32,), (2**32, 1), (1, 2**32), (0, 1, 0)]
    numbers += [(2**32 + 1,), (1, 1), (1, 1, 0)]  # `SeedSequence` reads the first as the second
    states = [
        tuple(purpose.rng(*some).integers(2**63, size=4).tolist())
        for purpose, some in itertools.product(Purpose, numbers)
    ]
    assert len(set(states)) == len(states)
    seeds = [purpose.derived(*some) for purpose, some in itertools.product(Purpose, numbers)]
    assert len(set(seeds)) == len(seeds)


def test_streams_never_change_and_take_integers_of_any_size() -> None:
    assert Purpose.TIES.rng(0).bit_generator.random_raw() == 17928622864091132097
    assert Purpose.TIES.rng(2**200, 5).bit_generator.random_raw() == 31049242328707259
    assert Purpose.COINS.philox(7).random_raw() == 116552352833648745
    assert Purpose.SIGNALS.derived(7) == 4466043580973758702
    assert Purpose.SIGNALS.derived(7, bits=32) == 1039831801
    assert Purpose.TIES.derived(10**5000) != Purpose.TIES.derived(10**5000 + 1)


def test_the_seed_of_a_plan_is_a_seed_everywhere() -> None:
    """128 bits, where the extension and PyTorch take 64 and scikit-learn takes 32."""
    seeds = [2**127, 2**127 + 1]
    features = np.random.default_rng(1).normal(size=(60, 2))
    fit = LogisticPropensity().fit(features, features[:, 0] > 0, seed=seeds[0])
    first, second = (fit.bootstrap(features, K=2, seed=seed) for seed in seeds)
    assert (first != second).any()
    held, other = (hold_out(np.arange(60), size=30, seed=seed)[0] for seed in seeds)
    assert (held != other).any()
    found = [power(50, 2.0, target=0.1, simulations=9, seed=seed) for seed in seeds]
    assert found[0].mean != found[1].mean
    models = [PCAMixture(components=2, seed=seed).fit(features) for seed in seeds]
    assert len(models[0].sample(5, seed=seeds[0])) == 5


def one_of_numpys(seed: int, n: int) -> Iterator[NDArray[np.float64]]:
    """Yield n uniform numbers of each generator that a program has from a seed."""
    for entropy in (seed, [seed], [seed, 0], [seed, 1], [0, seed]):
        sequence = np.random.SeedSequence(entropy)
        for one in (sequence, *sequence.spawn(3)):
            for bits in (np.random.PCG64(one), np.random.Philox(one), np.random.MT19937(one)):
                yield np.random.Generator(bits).random(n)
    yield np.random.RandomState(seed).random_sample(n)


def test_no_stream_is_one_of_numpys() -> None:
    """64 numbers of each: two independent rows are this correlated once in 10^8 pairs."""
    theirs = np.stack(list(one_of_numpys(42, 64)))
    ours = np.stack([purpose.rng(42).random(64) for purpose in Purpose])
    centred = [(rows - 0.5) * np.sqrt(12 / 64) for rows in (ours, theirs)]
    assert np.abs(centred[0] @ centred[1].T).max() < 5.8
    coins = InclusionPlan.create(256, seed=3).member
    bits = np.random.Philox(3).random_raw(4).astype("<u8").view(np.uint8)
    others = [np.unpackbits(bits, bitorder="little").astype(bool)]
    others += [numbers < 0.5 for numbers in one_of_numpys(3, 256)]
    assert max(abs(int((coins == one).sum()) - 128) for one in others) < 6 * 8
