"""A fixed set of audits, and every text that a user sees of them: JSON, words, pages, refusals.

Only public names of the package appear here, so that the set means the same however the package is
laid out. Inputs are multiples of 2^-20, drawn from fixed seeds: the same doubles wherever they are
computed. Options that do not go together are in the set too, with the words of their refusal.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

import leakbound as lb
from command_line import csv_text, leakbound
from leakbound import generators, panoramia, planning, propensity, report, stats
from leakbound.errors import LeakboundError

__all__ = ["CASES", "TRAINED", "Case", "Texts"]

Texts: TypeAlias = dict[str, str]
"""Texts by name; the suffix says what they are."""
Floats: TypeAlias = NDArray[np.float64]
Booleans: TypeAlias = NDArray[np.bool_]
Result: TypeAlias = lb.AuditResult | lb.PanoramiaResult


@dataclass(frozen=True)
class Case:
    """A name, and what makes the texts."""

    name: str
    make: Callable[[], Texts]

    def texts(self) -> Texts:
        """Return the texts, or that of the refusal."""
        try:
            return self.make()
        except LeakboundError as refusal:
            return {"refusal.txt": f"{type(refusal).__name__}: {refusal}"}


# --- inputs ---------------------------------------------------------------------------------------


def fine(values: ArrayLike) -> Floats:
    """Return multiples of 2^-20, which no library computes in its own way."""
    return np.round(np.asarray(values, dtype=np.float64) * 2**20) / 2**20


def expit(values: Floats) -> Floats:
    """Return 1 / (1 + e^-x)."""
    result: Floats = 1 / (1 + np.exp(-values))
    return result


@dataclass(frozen=True, eq=False)
class Game:
    """What an audit takes: scores of two attacks and of a baseline, features, propensities."""

    member: Booleans
    scores: Floats
    weak: Floats
    baseline: Floats
    features: Floats
    propensity: Floats


@cache
def game(examples: int = 400, *, leak: float = 1.5, shift: float = 0.0, seed: int = 0) -> Game:
    """Draw a game: members differ by `leak` in scores, and by `shift` in their features."""
    rng = np.random.default_rng([seed, examples])
    features = fine(rng.normal(size=(examples, 2)))
    log_odds = shift * features[:, 0]
    member = rng.random(examples) < fine(expit(log_odds))
    noise = rng.normal(size=(3, examples))
    return Game(
        member=member,
        scores=fine(log_odds + leak * member + noise[0]),
        weak=fine(log_odds + leak / 2 * member + noise[1]),
        baseline=fine(log_odds + 0.4 * member + noise[2]),
        features=features,
        propensity=fine(expit(log_odds)),
    )


def members(examples: int, number: int) -> Booleans:
    """Return membership with a given number of members, in an order of no meaning."""
    member: Booleans = np.random.default_rng(number).permutation(examples) < number
    return member


# --- texts ----------------------------------------------------------------------------------------


def told(found: Any, *, page: bool = False) -> Texts:
    """Return what results say of themselves; of several, one below the other."""
    results = found if isinstance(found, tuple) else (found,)
    texts = {
        "result.json": f"[{', '.join(result.to_json() for result in results)}]",
        "words.txt": "\n".join(
            f"{result}\n{result._repr_html_() if hasattr(result, '_repr_html_') else ''}"
            for result in results
        ),
    }
    return texts | (written(results[0]) if page else {})


def written(result: Any) -> Texts:
    """Return the report as the file that `result.report` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.html")
        result.report(path)
        return {"report.html": path.read_text(encoding="utf-8")}


def audit(
    name: str, function: Callable[..., Any], *data: Any, page: bool = False, **options: Any
) -> Case:
    """Return the case of one audit."""
    return Case(name, lambda: told(function(*data, **options), page=page))


# --- claims and policies --------------------------------------------------------------------------


def straight(theta: float) -> lb.TradeOff:
    """Return a curve of three corners: a table of the least that ε and δ = 0.01 leave."""
    power = float(fine(0.99 / (1 + np.exp(theta))))
    return lb.TradeOff.table([0.0, power, 0.99, 1.0], [0.99, power, 0.0, 0.0])


def one_way(theta: float) -> lb.TradeOff:
    """Return a curve that is not its own mirror image: a pair (ε, δ) and its complement."""
    return lb.TradeOff.profile([-theta / 2, theta], [0.25, 0.001])


CLAIMS: Mapping[str, Any] = {
    "pure": lb.PureDP(),
    "approx": lb.ApproxDP(delta=1e-3),
    "gaussian": lb.GaussianDP(),
    "gaussian-failures": lb.GaussianDP(delta=1e-4),
    "laplace": lb.LaplaceDP(),
    "table": lb.TradeOffFamily(
        parameter="theta", tradeoff=straight, bracket=(0.0, 8.0), increasing=True
    ),
    "decreasing": lb.TradeOffFamily(
        parameter="scale",
        tradeoff=lambda scale: lb.TradeOff.laplace(1 / scale),
        bracket=(0.05, 50.0),
        increasing=False,
    ),
}
POLICIES: Mapping[str, Any] = {
    "default": None,
    "kl": lb.KLScan(),
    "kl-options": lb.KLScan(kappa=4.5, min_guesses=20, grid="all"),
    "equal-level": lb.EqualLevelScan(),
    "union": lb.UnionBound(),
    "union-geometric": lb.UnionBound(grid="geometric"),
    "union-grid": lb.UnionBound(grid=[20, 60, 120]),
    "union-hoeffding": lb.UnionBound(tail="hoeffding"),
    "fixed": lb.Fixed(60),
    "adaptive": lb.ScoreAdaptive([20, 40, 80]),
    "split": lb.Split(),
    "split-0.4": lb.Split(0.4),
    "ville": lb.VilleMixture(),
    "weighted": lb.Weighted(),
    "uncorrected": lb.Uncorrected(),
}
SIDES = ("both", "member")
PAGES = {
    ("pure", "default", "both"),
    ("pure", "union", "member"),
    ("pure", "split", "both"),
    ("pure", "uncorrected", "both"),
    ("approx", "default", "both"),
    ("gaussian", "default", "both"),
    ("gaussian", "adaptive", "member"),
    ("decreasing", "default", "both"),
}
"""Claims, policies and sides whose pages are drawn: every kind of result, and of figure."""


# --- one run --------------------------------------------------------------------------------------


def every_policy() -> Iterator[Case]:
    """Yield audits of one run: every claim by every policy, on both sides and on one."""
    for (claim, named), (policy, cuts), sides in product(CLAIMS.items(), POLICIES.items(), SIDES):
        data = game()
        yield audit(
            f"one_run/{claim}/{policy}/{sides}",
            lb.audit_one_run,
            fine(expit(data.scores)) if policy == "weighted" else data.scores,
            data.member,
            claim=named,
            cuts=cuts,
            sides=sides,
            page=(claim, policy, sides) in PAGES,
        )


def one_run_options() -> Iterator[Case]:
    """Yield audits of one run by every other option."""
    data = game()
    one = partial(_one_run, data.scores, data.member)
    for bound, policy in product(
        ("exact", "steinke", "coupling"), ("default", "kl", "fixed", "union")
    ):
        yield one(f"bound/{bound}/{policy}", claim="approx", cuts=POLICIES[policy], bound=bound)
    yield one("bound/pure", claim="pure", bound="steinke")
    for claim, policy in product(("gaussian", "laplace", "table"), ("fixed", "union-geometric")):
        yield one(f"recursion/{claim}/{policy}", claim, cuts=POLICIES[policy], test="recursion")
    yield one("confidence", confidence=0.8, seed=3)
    yield one("random-split", design="random_split", page=True)
    for claim in ("approx", "gaussian"):
        yield one(f"random-split/{claim}", claim=claim, design="random_split", page=True)
    yield one("random-split/strata", design="random_split", strata=np.arange(data.member.size) % 3)
    yield one("assume", assume="product")
    yield one("ids", ids=[f"c{i}" for i in range(data.member.size)])
    yield one("repeated-ids", ids=[i // 2 for i in range(data.member.size)])
    yield one("several-claims", claim=("pure", "approx", "gaussian"))
    yield one("split-seed", cuts=lb.Split(), seed=11)
    yield one("too-many-guesses", cuts=lb.Fixed(1000))


def one_run_inputs() -> Iterator[Case]:
    """Yield audits of one run of scores and coins of every kind."""
    data = game()
    plan = lb.InclusionPlan.create(400, seed=5)
    rng = np.random.default_rng(9)
    yield _one_run(fine(rng.normal(size=400) + 2 * plan.member), plan, "plan")
    for sides in SIDES:
        attacks = {"strong": data.scores, "weak": data.weak}
        yield _one_run(attacks, data.member, f"attacks/{sides}", sides=sides, page=sides == "both")
    yield _one_run(np.stack([data.weak, data.scores]), data.member, "attack-rows", "gaussian")
    noise = fine(rng.normal(size=400))
    chances = fine(0.2 + 0.6 * rng.random(400))
    biased = rng.random(400) < chances
    for name, prior, member in (
        ("scalar", 0.25, rng.random(400) < 0.25),
        ("each", chances, biased),
    ):
        for policy, sides in product(("default", "fixed", "kl-options", "union"), SIDES):
            yield _one_run(
                fine(noise + 2 * member),
                member,
                f"prior/{name}/{policy}/{sides}",
                cuts=POLICIES[policy],
                prior=prior,
                sides=sides,
                page=(name, policy, sides) == ("each", "default", "both"),
            )
    yield _one_run(noise, biased, "prior/gaussian", claim="gaussian", prior=chances)
    for claim in CLAIMS:
        page = claim in {"pure", "gaussian"}
        yield _one_run(noise, data.member, f"noise/{claim}", claim, page=page)
        yield _one_run(
            data.member * 4.0 + fine(rng.random(400)), data.member, f"perfect/{claim}", claim
        )
        few = slice(0, 12)
        yield _one_run(data.scores[few], data.member[few], f"few/{claim}", claim)
        yield _one_run(np.round(2 * data.scores) / 2, data.member, f"ties/{claim}", claim)
    endless = np.where(data.scores > 2.5, np.inf, data.scores)
    yield _one_run(endless, data.member, "infinite")
    yield _one_run(np.zeros(400), data.member, "all-equal")
    yield _one_run(np.full(400, np.nan), data.member, "nan")
    yield _one_run(data.scores[:-1], data.member, "lengths")
    uneven = members(400, 235)
    yield _one_run(fine(noise + 2 * uneven), uneven, "contradicted", page=True)
    yield _one_run(noise, members(400, 320), "implausible")
    yield _one_run(noise, members(400, 320), "uneven-split", design="random_split", page=True)


def _one_run(
    scores: Any, member: Any, name: str, claim: str | tuple[str, ...] = "pure", **options: Any
) -> Case:
    named = CLAIMS[claim] if isinstance(claim, str) else [CLAIMS[one] for one in claim]
    return audit(
        f"one_run/options/{name}", lb.audit_one_run, scores, member, claim=named, **options
    )


def dp_sgd() -> Iterator[Case]:
    """Yield an audit of DP-SGD's own curves, each of which takes a while."""
    claim = lb.SubsampledGaussianDP(sampling_rate=0.1, steps=10)
    data = game(120, leak=2.5)
    yield audit("one_run/dp-sgd", lb.audit_one_run, data.scores, data.member, claim=claim)


def streams() -> Iterator[Case]:
    """Yield streams after their last batch, saved and read on the way."""
    for sides, shares in product(SIDES, ((1.0, 0.25, 0.0625), (0.5,))):
        yield Case(
            f"stream/{sides}/{len(shares)}", partial(_stream, sides, shares, page=len(shares) > 1)
        )
    yield Case("stream/no-batch", lambda: told(lb.OneRunStream().result()))
    yield audit("stream/gaussian", lb.OneRunStream, lb.GaussianDP())


def _stream(sides: Any, shares: tuple[float, ...], *, page: bool) -> Texts:
    data = game(600)
    stream = lb.OneRunStream(sides=sides, shares=shares)
    for rows in np.split(np.arange(600), 6):
        stream = stream.update(data.scores[rows], data.member[rows], ids=rows)
    with tempfile.TemporaryDirectory() as folder:
        stream.save(Path(folder, "stream.npz"))
        stream = lb.OneRunStream.load(Path(folder, "stream.npz"))
    return told(stream.result(), page=page)


# --- PANORAMIA ------------------------------------------------------------------------------------


def panoramia_policies() -> Iterator[Case]:
    """Yield audits against generated non-members: every policy, strict and relaxed."""
    failures = {"strict": (0.0, 0.0), "gamma": (0.005, 0.0), "delta": (0.0, 1e-3)}
    failures["both"] = (0.005, 1e-3)
    for (how, (gamma, delta)), (policy, cuts) in product(failures.items(), POLICIES.items()):
        weigh = policy == "weighted"
        yield _panoramia(
            f"{how}/{policy}",
            cuts=cuts,
            gamma=gamma,
            delta=delta,
            weigh=weigh,
            page=(how, policy) in {("strict", "default"), ("both", "default")},
        )
    for policy in ("default", "fixed", "union", "kl"):
        cuts = POLICIES[policy]
        yield _panoramia(f"published/{policy}", cuts=cuts, gamma=0.005, relaxation="published")
    yield _panoramia("published/strict", relaxation="published")


def panoramia_options() -> Iterator[Case]:
    """Yield audits against generated non-members by every other option."""
    yield _panoramia("hoeffding", cuts=lb.UnionBound(), tail="hoeffding")
    yield _panoramia("hoeffding/kl", tail="hoeffding")
    yield _panoramia("recall", max_recall=0.25)
    yield _panoramia("recall/fixed", cuts=lb.Fixed(60), max_recall=0.25)
    yield _panoramia("c-upper", c_upper=0.3, page=True)
    yield _panoramia("c-upper/uncorrected", c_upper=0.3, cuts=lb.Uncorrected())
    yield _panoramia("c-upper/high", c_upper=5.0)
    yield _panoramia("real", real_nonmembers=True, baseline="noise", page=True)
    yield _panoramia("real/contradicted", real_nonmembers=True, baseline="strong")
    yield _panoramia("real/gamma", real_nonmembers=True, gamma=0.1)
    yield _panoramia("equal", baseline="attack", page=True)
    yield _panoramia("saturated", baseline="perfect")
    yield _panoramia("noise", leak=0.0, baseline="noise")
    yield _panoramia("confidence", confidence=0.8, seed=3)
    yield _panoramia("uneven", uneven=True)
    for delta, shift in product((0.0, 1e-3), (0.0, 1.0)):
        yield _panoramia(
            f"features/{'delta' if delta else 'pure'}/{'shift' if shift else 'alike'}",
            leak=3.0,
            shift=shift,
            features=True,
            delta=delta,
            page=not delta and bool(shift),
        )
    yield _panoramia("features/refuted", leak=3.0, features=True, baseline="noise", hidden=True)


def _panoramia(name: str, *, page: bool = False, **options: Any) -> Case:
    return Case(f"panoramia/{name}", lambda: told(_against_generated(**options), page=page))


def _against_generated(
    *,
    leak: float = 1.5,
    shift: float = 0.0,
    baseline: str = "",
    features: bool = False,
    hidden: bool = False,
    weigh: bool = False,
    uneven: bool = False,
    **options: Any,
) -> lb.PanoramiaResult:
    """Audit a game whose baseline knows little, nothing, or as much as the attack."""
    data = game(400, leak=leak, shift=shift)
    member, rng = data.member, np.random.default_rng(21)
    if uneven:
        member = members(400, 235)
    known = {
        "": data.baseline,
        "noise": fine(rng.normal(size=400)),
        "strong": fine(1.5 * member + rng.normal(size=400)),
        "perfect": member + fine(rng.random(400)),
        "attack": data.scores,
    }[baseline]
    attack = data.scores
    table = data.features
    if hidden:
        table = np.column_stack([table, fine(2.0 * member * table[:, 1] + rng.normal(size=400))])
    if weigh:
        known, attack = fine(expit(known)), fine(expit(attack))
    return lb.audit_panoramia(
        known, attack, member, features=table if features else None, **options
    )


def panoramia_reports() -> Iterator[Case]:
    """Yield the table and the page of a whole run, put together from audits of fixed scores."""
    yield Case("panoramia/report", _panoramia_report)


def _panoramia_report() -> Texts:
    rng = np.random.default_rng(31)
    games = [game(400, leak=leak, seed=seed) for leak, seed in product((3.0, 0.5), (1, 2))]
    audits = [lb.audit_panoramia(data.baseline, data.scores, data.member) for data in games]
    shifted = game(300, leak=3.0, shift=1.0)
    corrected = lb.audit_zero_run(
        shifted.scores, shifted.member, shifted.propensity, claim=lb.PureDP(), correction="match"
    )
    rows = (
        panoramia.PanoramiaRow(target="much", audit="PANORAMIA", results=tuple(audits[:2])),
        panoramia.PanoramiaRow(
            target="much", audit="Zero-Run, match", results=(corrected, corrected)
        ),
        panoramia.PanoramiaRow(target="little", audit="PANORAMIA", results=tuple(audits[2:])),
    )
    edges = fine(np.geomspace(1e-3, 4.0, 41))
    counts = rng.integers(0, 30, (3, 40))
    losses = tuple(
        panoramia.Losses(
            model=model,
            logarithmic=True,
            edges=edges,
            members=counts[0],
            generated=counts[1],
            real=real,
            medians={"members": 0.25, "generated": 0.5},
        )
        for model, real in (("much", None), ("little", None), ("helper", None))
    )
    found = lb.PanoramiaReport(
        rows=rows,
        saturation=panoramia.Saturation(
            np.array([50, 100, 200]),
            (np.array([0.125, 0.25, 0.375]), np.array([0.0, 0.25, 0.5])),
        ),
        seeds=(1, 2),
        sizes={"test": 400, "generator": 300},
        options={"confidence": 0.95},
        warnings=("a warning of the run",),
        losses=losses,
        extremes=(generators.FeatureExtreme("age", "high", 90.0, 12, 0.5, 8),),
    )
    return told(found, page=True) | {"headline.txt": panoramia.headline(found)}


# --- Zero-Run -------------------------------------------------------------------------------------

CORRECTIONS = ("conditional", "match", "poisson_binomial", "tamper", "composition")
ADVERSARIES = ("raw", "paper_aware", "residual", "bayes")
VARIANTS = ("directional", "paper", "symmetric", "absolute", "untampered")
SHIFTED = {"leak": 2.5, "shift": 0.75}


def corrections() -> Iterator[Case]:
    """Yield audits of given examples: every claim by every correction, and every policy."""
    for claim, correction in product(CLAIMS, CORRECTIONS):
        page = (claim, correction) in {
            ("gaussian", "conditional"),
            ("pure", "poisson_binomial"),
            ("pure", "tamper"),
            ("approx", "composition"),
        }
        yield _zero_run(f"{claim}/{correction}", claim, correction=correction, page=page)
        yield _zero_run(
            f"{claim}/{correction}/member", claim, correction=correction, sides="member"
        )
    for policy, correction in product(POLICIES, ("match", "poisson_binomial", "tamper")):
        yield _zero_run(f"cuts/{policy}/{correction}", "pure", policy, correction=correction)
    for policy in POLICIES:
        yield _zero_run(f"cuts/{policy}/gaussian", "gaussian", policy)
        yield _zero_run(f"cuts/{policy}/approx", "approx", policy)


def zero_run_options() -> Iterator[Case]:
    """Yield audits of given examples by every other option."""
    for adversary, correction in product(ADVERSARIES, CORRECTIONS[1:]):
        yield _zero_run(
            f"adversary/{adversary}/{correction}",
            "pure",
            correction=correction,
            adversary=adversary,
        )
    for variant, correction in product(VARIANTS, ("tamper", "poisson_binomial")):
        named = f"variant/{variant}/{correction}"
        yield _zero_run(named, "pure", correction=correction, variant=variant)
    yield _zero_run("variant/untampered/approx", "approx", variant="untampered")
    for correction in ("match", "tamper"):
        yield _zero_run(f"derandomize/{correction}", correction=correction, derandomize=True)
    yield _zero_run("derandomize/composition", correction="composition", derandomize=True)
    yield _zero_run("recursion", test="recursion")
    yield _zero_run("fixed-size", design="fixed_size")
    yield _zero_run("abstaining", max_log_odds=0.5, page=True)
    yield _zero_run("falsified", features=True, page=True)
    yield _zero_run("withheld", "pure", features=True, given="half", page=True)
    yield _zero_run("released", "pure", features=True, given="half", release_refuted=True)
    yield _zero_run("not-falsified", "pure", features=True, given="half", falsify=False)
    yield _zero_run("implausible", given="biased")
    yield _zero_run("certain", given="certain")
    yield _zero_run("certain/abstaining", given="certain", max_log_odds=1.0)
    yield _zero_run("no-overlap", max_log_odds=1e-9)
    yield _zero_run("nothing", "pure", leak=0.0, page=True)
    yield _zero_run("nothing/gaussian", leak=0.0)
    yield _zero_run("attacks", "pure", attacks=True)
    yield _zero_run("several-claims", ("pure", "gaussian"))
    yield _zero_run("limits", given="limits")
    yield _zero_run("limits/pure", "pure", given="limits")
    for method in ("percentile", "recentred", "basic"):
        page = method == "percentile"
        yield _zero_run(f"replicates/{method}", given="replicates", bootstrap=method, page=page)
    yield _zero_run("replicates/pure", "pure", given="replicates")
    yield _zero_run("fitted", "pure", given="fitted", features=True)
    yield _zero_run("fitted/no-features", given="fitted")
    yield _zero_run("crossed", "pure", given="crossed")


def _zero_run(
    name: str,
    claim: str | tuple[str, ...] = "gaussian",
    policy: str = "default",
    *,
    page: bool = False,
    **options: Any,
) -> Case:
    named = CLAIMS[claim] if isinstance(claim, str) else [CLAIMS[one] for one in claim]
    cuts = POLICIES[policy]
    return Case(
        f"zero_run/{name}",
        lambda: told(_given_examples(claim=named, cuts=cuts, **options), page=page),
    )


def _given_examples(
    *,
    given: str = "",
    leak: float = SHIFTED["leak"],
    attacks: bool = False,
    features: bool = False,
    **options: Any,
) -> Any:
    """Audit given examples whose propensities are known exactly, roughly, or wrongly."""
    data = game(240, leak=leak, shift=SHIFTED["shift"])
    rng = np.random.default_rng(41)
    chances: Any = data.propensity
    if given == "half":
        chances = np.full(240, 0.5)
    elif given == "biased":
        chances = np.full(240, 0.875)
    elif given == "certain":
        chances = np.where(data.propensity > 0.75, 1.0, data.propensity)
    elif given == "limits":
        chances = (fine(0.95 * chances), fine(1 - 0.95 * (1 - chances)))
    elif given == "replicates":
        noise = 0.1 * rng.normal(size=(40, 240))
        chances = fine(expit(SHIFTED["shift"] * data.features[:, 0] + noise))
    elif given == "fitted":
        others = game(400, shift=SHIFTED["shift"], seed=1)
        model = propensity.LogisticPropensity()
        chances = model.fit(others.features, others.member)
    elif given == "crossed":
        chances = propensity.cross_fit(propensity.LogisticPropensity(), data.features, data.member)
    scores = {"strong": data.scores, "weak": data.weak} if attacks else data.scores
    if features:
        options["features"] = data.features
    return lb.audit_zero_run(scores, data.member, chances, **options)


# --- beyond single results ------------------------------------------------------------------------


def comparisons() -> Iterator[Case]:
    """Yield pages of claims and of several models."""
    yield _page("refuted", "leaks", title="A claim", summary="What was audited.", epsilon=1.0)
    yield _page("not-refuted", "nothing", epsilon=3.0)
    yield _page("out-of-reach", "leaks", epsilon=9.0)
    yield _page("joint-claim", "generated", epsilon=0.5, c=0.25)
    surer = {"leaks": "surer", "nothing": "surer-nothing"}
    yield _page("two", ("leaks", "nothing"), simultaneous=surer, epsilon=1.0)
    yield _page("nothing-of-two", ("nothing", "generated"))
    kinds = ("leaks", "family", "generated", "given")
    yield _page("all-kinds", kinds, columns={"Accuracy": dict.fromkeys(kinds, "0.9")})
    yield _page("none", ())
    yield _page("other-names", ("leaks",), simultaneous={"nothing": "nothing"})


def _page(
    name: str,
    models: str | tuple[str, ...],
    *,
    simultaneous: Mapping[str, str] | None = None,
    **options: Any,
) -> Case:
    """Return the case of a page, of one model or of a table of several."""

    def make() -> Texts:
        shown: Any = models
        shown = model(shown) if isinstance(shown, str) else {one: model(one) for one in shown}
        more = dict(options)
        if simultaneous is not None:
            more["simultaneous"] = {one: model(of) for one, of in simultaneous.items()}
        return {"report.html": report.render(shown, **more)}

    return Case(f"page/{name}", make)


@cache
def model(name: str) -> Result:
    """Return a result that pages compare with others."""
    data, weak, shifted = game(), game(leak=0.3, seed=1), game(240, leak=2.5, shift=0.75)
    one, panoramia, zero = lb.audit_one_run, lb.audit_panoramia, lb.audit_zero_run
    make: dict[str, Callable[[], Result]] = {
        "leaks": lambda: one(data.scores, data.member),
        "surer": lambda: one(data.scores, data.member, confidence=0.975),
        "nothing": lambda: one(weak.weak, weak.member),
        "surer-nothing": lambda: one(weak.weak, weak.member, confidence=0.975),
        "family": lambda: one(data.scores, data.member, claim=lb.GaussianDP()),
        "generated": lambda: panoramia(data.baseline, data.scores, data.member),
        "given": lambda: zero(shifted.scores, shifted.member, shifted.propensity),
    }
    return make[name]()


def verdicts() -> Iterator[Case]:
    """Yield what results answer to claims."""
    yield Case("verdicts", _verdicts)


def _verdicts() -> Texts:
    data = game()
    lines = []
    for name, claim in CLAIMS.items():
        result = lb.audit_one_run(data.scores, data.member, claim=claim)
        for epsilon, delta in product((0.5, 3.0, 9.0), (0.0, 1e-5)):
            lines.append(f"{name} {epsilon} {delta}: {_verdict(result, epsilon, delta)}")
    return {"verdicts.txt": "\n".join(lines)}


def _verdict(result: lb.AuditResult, epsilon: float, delta: float) -> str:
    try:
        return f"{result.check(epsilon=epsilon, delta=delta)} {result.epsilon(delta)}"
    except LeakboundError as refusal:
        return f"{type(refusal).__name__}: {refusal}"


def plans() -> Iterator[Case]:
    """Yield plans of audits."""
    for claim in ("pure", "approx", "gaussian"):
        named = CLAIMS[claim]
        power = partial(planning.power, 200, 2.0, target=0.5, claim=named, simulations=20)
        yield Case(f"plan/power/{claim}", partial(_planned, power))
    needed = partial(planning.canaries_needed, 1.0, 3.0, simulations=20)
    yield Case("plan/canaries", partial(_planned, needed))


def _planned(function: Callable[[], Any]) -> Texts:
    found = function()
    return {"result.json": found.to_json(), "words.txt": str(found)}


def numbers() -> Iterator[Case]:
    """Yield what the functions of `leakbound.stats` return."""
    yield Case("stats", _numbers)


def _numbers() -> Texts:
    data = game(200, leak=2.5, shift=0.75)
    uniforms = fine(np.random.default_rng(51).random(200))
    log_odds = fine(0.75 * data.features[:, 0])
    rates = fine(0.25 + 0.5 * uniforms)
    claim = lb.GaussianDP()
    right = data.member[np.argsort(-data.scores, kind="stable")]
    found: dict[str, Any] = {
        "normal_cdf": stats.normal_cdf([-3.0, 0.5, 8.0]),
        "log_normal_cdf": stats.log_normal_cdf([-30.0, 0.5]),
        "normal_quantile": stats.normal_quantile([1e-6, 0.5, 0.9]),
        "binomial_tail": stats.binomial_tail([3, 60], 100, 0.5),
        "clopper_pearson": stats.clopper_pearson([3, 60], 100, beta=0.05),
        "kl_scan": cut_of(stats.kl_scan(right, beta=0.05)),
        "equal_level_scan": cut_of(stats.equal_level_scan(right, beta=0.05)),
        "union_bound": cut_of(stats.union_bound(right, beta=0.05)),
        "ville_mixture": cut_of(stats.ville_mixture(right, beta=0.05)),
        "one_run_epsilon": stats.one_run_epsilon(90, 100, 200, delta=1e-5, beta=0.05),
        "one_run_p_value": stats.one_run_p_value(90, 100, 200, delta=1e-5, epsilon=1.0),
        "fdp_lower_bound": stats.fdp_lower_bound(90, 100, 200, claim=claim),
        "fdp_p_value": stats.fdp_p_value(90, 100, 200, tradeoff=claim.tradeoff(1.0)),
        "poisson_binomial_tail": stats.poisson_binomial_tail(110, rates),
        "poisson_binomial_pmf": stats.poisson_binomial_pmf(rates[:8]),
        "match": stats.match(data.member, log_odds, uniforms),
        "residual_scores": stats.residual_scores(data.scores, log_odds),
        "bayes_guesses": stats.bayes_guesses(data.scores, log_odds, 100),
        "composition_bound": stats.composition_bound(90, 100, 200, claim=claim, mu_ds=0.25),
        "shift_mu": stats.shift_mu(0.5),
    }
    return {"values.json": json.dumps({name: _listed(one) for name, one in found.items()})}


def cut_of(bound: Any) -> list[float]:
    """Return the numbers of a bound on a path."""
    return [bound.logit, bound.cut, bound.successes]


def _listed(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_listed(one) for one in value]
    return np.asarray(value).tolist()


# --- on the command line --------------------------------------------------------------------------


def commands() -> Iterator[Case]:
    """Yield what commands print and write."""
    yield _command("one-run", "one-run", "FILE", "--claim", "eps=1", "--out", "DIR")
    yield _command("one-run/gaussian", "one-run", "FILE", "--claim", "mu=1")
    yield _command("one-run/split", "one-run", "FILE", "--cuts", "split")
    yield _command("one-run/json", "one-run", "FILE", "--json")
    yield _command("one-run/attacks", "one-run", "FILE", "--attacks", "score,weak")
    yield _command("panoramia", "panoramia", "FILE", "--out", "DIR")
    yield _command("panoramia/features", "panoramia", "FILE", "--features", "x,y")
    yield _command("zero-run", "zero-run", "FILE", "--propensity", "OTHER", "--out", "DIR")
    yield _command("zero-run/features", "zero-run", "FILE", "--features", "x,y")
    explore = ("--features", "x,y", "--uncertainty", "bootstrap", "--folds", "2")
    yield _command("zero-run/bootstrap", "zero-run", "FILE", *explore)
    yield _command("plan", "plan", "--truth", "3", "-m", "200")
    yield _command("no-column", "one-run", "FILE", "--attacks", "nobody")
    yield _command("version", "--version")
    for name in ("one-run", "panoramia", "zero-run", "plan", "validate", "demo"):
        yield _command(f"help/{name}", name, "--help")


def _command(name: str, *arguments: str) -> Case:
    return Case(f"command/{name}", partial(_ran, arguments))


def _ran(arguments: tuple[str, ...]) -> Texts:
    """Run a command on a file of scores; paths are put aside, as they are of this run."""
    data = game(240, leak=2.5, shift=0.75)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        columns = {"score": data.scores, "weak": data.weak, "baseline_score": data.baseline}
        columns |= {"x": data.features[:, 0], "y": data.features[:, 1]}
        (folder / "FILE.csv").write_text(csv_text(**columns, member=data.member.astype(int)))
        (folder / "OTHER.csv").write_text(csv_text(propensity=data.propensity))
        paths = {"FILE": "FILE.csv", "OTHER": "OTHER.csv", "DIR": "DIR"}
        answer = leakbound(*(folder / paths[one] if one in paths else one for one in arguments))
        said = f"exit code {answer.code}\n--- out\n{answer.out}\n--- err\n{answer.err}"
        said = said.replace(str(folder), "FOLDER").replace(lb.__version__, "VERSION")
        texts = {
            str(path.relative_to(folder / "DIR")): path.read_text(encoding="utf-8")
            for path in sorted((folder / "DIR").rglob("*.*"))
        }
    return {"said.txt": said} | texts


# --- what is trained ------------------------------------------------------------------------------


def _trained_run() -> Texts:
    """Audit an untrained network by all phases of PANORAMIA."""
    import torch

    rng = np.random.default_rng(61)
    table = fine(rng.normal(size=(900, 3)))
    labels = (table[:, 0] + fine(rng.normal(size=900)) > 0).astype(np.int64)
    torch.manual_seed(0)
    target = torch.nn.Linear(3, 2).double()
    found = lb.Panoramia(
        generators.GaussianCopula(), helper=None, saturation=(0.5,), seeds=(0,)
    ).run(target=target, members=(table, labels))
    return told(found, page=True)


TRAINED = (Case("trained/panoramia", _trained_run),)
"""Runs whose numbers depend on how a machine trains: to compare on one machine, not to store."""
CASES: tuple[Case, ...] = tuple(
    case
    for cases in (
        every_policy,
        one_run_options,
        one_run_inputs,
        dp_sgd,
        streams,
        panoramia_policies,
        panoramia_options,
        panoramia_reports,
        corrections,
        zero_run_options,
        comparisons,
        verdicts,
        plans,
        numbers,
        commands,
    )
    for case in cases()
)
"""Everything that is stored."""
