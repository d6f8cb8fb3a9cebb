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


def called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def is_derived(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and called(node) == "derived"


def of_torch(node: ast.Call) -> bool:
    """Whether a call of something named Generator is `torch.Generator()`, seeded next to it."""
    function = node.func
    return isinstance(function, ast.Attribute) and ast.unparse(function) == "torch.Generator"


def strays(tree: ast.Module) -> list[str]:
    """Return what draws, or seeds what draws, from anything but a purpose."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None)
            names = {module or "", *(alias.name for alias in node.names)}
            if "random" in names or (module or "").startswith(("random", "numpy.random")):
                found.append(ast.unparse(node))
        if isinstance(node, ast.Call):
            name = called(node)
            seeded = name in SEEDERS and not (node.args and is_derived(node.args[0]))
            stated = any(
                keyword.arg == "random_state" and not is_derived(keyword.value)
                for keyword in node.keywords
            )
            if (name in MAKERS and not of_torch(node)) or seeded or stated:
                found.append(ast.unparse(node))
            if ast.unparse(node.func).startswith(("np.random.", "numpy.random.")):
                found.append(ast.unparse(node))
    return found


def test_nothing_else_makes_random_streams() -> None:
    found = {str(path.relative_to(PACKAGE)): strays(tree) for path, tree in sources()}
    assert {path: calls for path, calls in found.items() if calls} == {}


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


def test_streams_never_change() -> None:
    assert Purpose.TIES.rng(0).bit_generator.random_raw() == 17928622864091132097
    assert Purpose.TIES.rng(2**200, 5).bit_generator.random_raw() == 31049242328707259
    assert Purpose.COINS.philox(7).random_raw() == 116552352833648745
    assert Purpose.SIGNALS.derived(7) == 4466043580973758702
    assert Purpose.SIGNALS.derived(7, bits=32) == 1039831801


def test_integers_of_any_size_are_seeds() -> None:
    huge = [Purpose.TIES.derived(10**5000 + k) for k in range(2)]
    assert huge[0] != huge[1]
    assert all(0 <= Purpose.TREES.derived(seed, bits=32) < 2**32 for seed in range(100))


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


def test_coins_are_none_of_numpys() -> None:
    plan = InclusionPlan.create(256, seed=3)
    raw = np.random.Philox(3).random_raw(4).astype("<u8")
    theirs = [np.unpackbits(raw.view(np.uint8), bitorder="little").astype(bool)]
    theirs += [numbers < 0.5 for numbers in one_of_numpys(3, 256)]
    agreements = [int((plan.member == coins).sum()) for coins in theirs]
    assert max(abs(agreement - 128) for agreement in agreements) < 6 * 8
