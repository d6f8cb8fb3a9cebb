"""A design, policy, family, figure and signal from outside: each in 30 lines, with all outputs."""

import ast
import html
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes

import leakbound as lb
from leakbound import cuts, evidence, results
from leakbound._base.numerics import logit
from leakbound._base.types import ArrayInput, PathOrder, Sides
from leakbound._core import Bound
from leakbound._core import Path as Ranks
from leakbound.audits import road
from leakbound.benchmark.running import NamedBound
from leakbound.cuts.policy import Best
from leakbound.errors import FormatError, InputTypeError, OptionError
from leakbound.planning.protocol import build
from leakbound.report import style
from leakbound.report.description import Drawing
from leakbound.report.figures import PLOTS, Plot
from leakbound.results.wording import Wording
from leakbound.stats import clopper_pearson
from leakbound.torch import score
from oracle_calls import coins


class TwinGame(cuts.ScoreGame):
    """A guess about each pair of twins."""

    units = "pairs of twins"


@dataclass(frozen=True, eq=False)
class Twins(road.Design[road.Listed, results.AuditResult]):
    """A fair coin decided which of two twins was trained on; scores are first minus second."""

    name: ClassVar[str] = "a coin for twins"
    wording: ClassVar[Wording] = Wording(
        drawn="fair coin for each pair of twins",
        chance="over the coins of the twins",
        question="which twin was trained on",
        unit="twin",
        units="pairs of twins",
        order="largest difference first",
        each="two twins each",
    )
    member: ArrayInput

    def audit(self, scores: road.Listed, request: road.Request, /) -> results.AuditResult:
        _, attacks, first = road.read(scores, self.member, request.ids)
        fair = results.Assumption("fair coins", "A coin chose each twin.", "declared")
        return road.Examples(
            attacks=attacks,
            game=lambda values: TwinGame(
                scores=values, member=first, sides="both", seed=request.seed
            ),
            theorem="Each guess is right with probability at most e^ε / (1 + e^ε). ",
            assumptions=(fair,),
            options={"relation": "replace"},
            warnings=(),
            inputs={**attacks.digested, "member": first},
        ).audit(request, self)


@dataclass(frozen=True, kw_only=True)
class Portion(cuts.PathPolicy):
    """One threshold, at a share of the ranking."""

    method: ClassVar[str] = "One threshold was named in advance (Clopper and Pearson 1934)."
    share: float = 0.25

    def searched(
        self, _examples: int, _sides: Sides, /, *, units: str = "examples", recall: float = 1.0
    ) -> str:
        return f"One threshold was tested, at a share of {self.share * recall:g} of all {units}."

    def bound(self, path: Ranks, _order: PathOrder, level: float, /) -> Best:
        guesses, correct = path.count(max(1, int(self.share * path.guesses)))
        right = float(clopper_pearson(correct, guesses, beta=level))
        # Not clipped at 0: a guess may be one of several candidates.
        return Best(logit(right) if right else -math.inf, guesses, correct)


class Quarter(cuts.PathPolicy):
    """A policy without options, which need not be a dataclass."""

    method = Portion.method

    def searched(self, *_: object, **__: object) -> str:
        return "A quarter of the ranking was tested."

    def bound(self, path: Ranks, order: PathOrder, level: float, /) -> Best:
        return Portion().bound(path, order, level)


@dataclass(frozen=True, eq=False)
class Renamed(road.Design[road.Listed, results.AuditResult]):
    """Twins, of which the first were chosen: membership has another name."""

    name: ClassVar[str] = "renamed twins"
    wording: ClassVar[Wording] = Twins.wording
    chosen: ArrayInput

    def audit(self, scores: road.Listed, request: road.Request, /) -> results.AuditResult:
        result = Twins(self.chosen).audit(scores, request)
        return replace(result, options=result.options | {"design": self.name})


def draw_shares(drawing: Drawing, ax: Axes | None = None) -> Axes:
    """Draw the share of members in each bin of scores."""
    bins = drawing.series[0].ranking.histogram
    with style.house_style():
        ax = style.new_axes(ax)
        ax.stairs(bins.members / np.maximum(1, bins.members + bins.non_members), bins.edges)
        style.name_axes(ax, title="Shares", x="score", y="share of members", kind=drawing.kind)
    return ax


SHARES = Plot(
    draw=draw_shares,
    title=lambda _drawing: "Shares of members",
    caption=lambda drawing: f"Of {drawing.series[0].ranking.m} scores, how many are of members.",
)


def closeness(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Score an example by how close the model's number is to its own."""
    return -(outputs[:, 0] - targets).abs()


RNG = np.random.default_rng(0)
FIRST = RNG.random(400) < 0.5
SCORES = RNG.normal(size=400) + 3 * FIRST


def twins(policy: cuts.CutPolicy | None = None) -> lb.AuditResult:
    return lb.audit(SCORES, Twins(FIRST), cuts=policy, seed=0)


AUDITS: dict[str, Callable[[], lb.AuditResult]] = {
    "design": twins,
    "policy": lambda: lb.audit(SCORES, lb.Coins(FIRST), cuts=Portion(share=0.2), seed=0),
    "policy without fields": lambda: lb.audit(SCORES, lb.Coins(FIRST), cuts=Quarter(), seed=0),
    "both": lambda: twins(Portion()),
}
each = pytest.mark.parametrize("name", AUDITS)


def test_each_is_defined_in_few_lines() -> None:
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    sizes = {
        node.name: (node.end_lineno or 0) - node.lineno + 2
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("test_")
    }
    assert {"Twins", "Portion", "noise", "draw_shares", "closeness"} <= sizes.keys()
    assert max(sizes.values()) <= 32, sizes


def test_data_of_a_design_may_have_other_names(tmp_path: Path) -> None:
    result = lb.audit(SCORES, Renamed(FIRST), seed=0)
    result.bundle(tmp_path / "bundle", scores=SCORES, plan=None, chosen=FIRST)
    assert evidence.verify_bundle(tmp_path / "bundle").valid
    swapped = lb.audit(SCORES, Renamed(np.roll(FIRST, 1)), seed=0)
    with pytest.raises(FormatError, match="another result"):
        swapped.bundle(tmp_path / "other", scores=SCORES, plan=None, chosen=FIRST)


@each
def test_it_gives_a_bound_json_a_bundle_and_a_report(name: str, tmp_path: Path) -> None:
    result = AUDITS[name]()
    assert 0 < result.bound <= result.ceiling
    # JSON
    again = lb.AuditResult.from_json(result.to_json())
    assert again == result
    assert str(again) == str(result)
    # a bundle, which is recomputed
    result.bundle(tmp_path / "bundle", scores=SCORES, plan=FIRST)
    assert evidence.verify_bundle(tmp_path / "bundle").valid
    # a report
    result.report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())
    assert result.wording.drawn in page
    assert result.searched in page


class Shiftless(Renamed):
    """A class that others take their name from."""

    name: ClassVar[str] = "shifted twins"


class InNumPy(Quarter):
    """A policy whose best cut has numbers of NumPy."""

    def bound(self, path: Ranks, order: PathOrder, level: float, /) -> Best:
        best = super().bound(path, order, level)
        return Best(np.float64(best.logit), np.int64(best.cut), np.int64(best.successes))  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Wards(Renamed):
    """Twins whose result has an option of NumPy, and one that is a list."""

    name: ClassVar[str] = "wards"
    wards: int = 3
    weights: Sequence[object] = (0.5, math.inf, (1, 2))

    def audit(self, scores: road.Listed, request: road.Request, /) -> results.AuditResult:
        result = super().audit(scores, request)
        own = {"wards": np.int64(self.wards), "weights": list(self.weights)}
        return replace(result, options=result.options | own)


def test_numbers_of_numpy_are_stored_as_numbers(tmp_path: Path) -> None:
    result = lb.audit(SCORES, lb.Coins(FIRST), cuts=InNumPy(), seed=0)
    assert lb.AuditResult.from_json(result.to_json()) == result
    assert result.bound == lb.audit(SCORES, lb.Coins(FIRST), cuts=Quarter(), seed=0).bound
    result = lb.audit(SCORES, Wards(FIRST, wards=4), seed=0)
    assert lb.AuditResult.from_json(result.to_json()).options["wards"] == 4
    result.bundle(tmp_path / "bundle", scores=SCORES, plan=None, chosen=FIRST)
    assert evidence.verify_bundle(tmp_path / "bundle").valid


@dataclass(frozen=True, kw_only=True)
class Called(Portion):
    """A policy with a field that is called as the attribute that designs are stored by."""

    name: str = "quarter"


@dataclass(frozen=True, eq=False)
class Shifted(Shiftless):
    """A design that inherits its name, and has an option besides."""

    shift: float = 0.0

    def audit(self, scores: road.Listed, request: road.Request, /) -> results.AuditResult:
        result = super().audit(scores, request)
        return replace(result, options=result.options | {"shift": self.shift})


def test_options_of_a_design_may_be_lists(tmp_path: Path) -> None:
    weights = (0.25, -math.inf, ("a", "b"), np.float64(2))
    result = lb.audit(SCORES, Wards(FIRST, weights=weights), seed=0)
    result.bundle(tmp_path / "bundle", scores=SCORES, plan=None, chosen=FIRST)
    assert evidence.verify_bundle(tmp_path / "bundle").valid
    stored = lb.AuditResult.from_json(result.to_json()).options["weights"]
    assert stored == [0.25, "-inf", ["a", "b"], 2.0]
    tables = lb.audit(SCORES, Wards(FIRST, weights=[{"a": 1}]), seed=0)
    with pytest.raises(FormatError, match=r"weights is .*, which is not a value of this option"):
        tables.bundle(tmp_path / "tables", scores=SCORES, plan=None, chosen=FIRST)


def test_policies_are_stored_by_their_class_and_designs_by_their_name(tmp_path: Path) -> None:
    result = lb.audit(SCORES, lb.Coins(FIRST), cuts=Called(), seed=0)
    assert result.options["cuts"] == {"type": "Called", "share": 0.25, "name": "quarter"}
    result.bundle(tmp_path / "policy", scores=SCORES, plan=FIRST)
    assert evidence.verify_bundle(tmp_path / "policy").valid
    result = lb.audit(SCORES, Shifted(FIRST, shift=1.0), seed=0)
    result.bundle(tmp_path / "design", scores=SCORES, plan=None, chosen=FIRST)
    assert evidence.verify_bundle(tmp_path / "design").valid


@dataclass(frozen=True, kw_only=True)
class Wrapped(Quarter):
    """A policy of others, at most at so many guesses, perhaps by a function."""

    inner: Sequence[cuts.PathPolicy] = (Portion(share=0.2), Quarter())
    scan: cuts.PathPolicy = field(default_factory=lb.KLScan)
    most: float = math.inf
    choose: Callable[[Iterable[float]], float] | None = None

    def bound(self, path: Ranks, order: PathOrder, level: float, /) -> Best:
        share = level / (1 + len(self.inner))
        tried = [policy.bound(path, order, share) for policy in (*self.inner, self.scan)]
        choose = self.choose or max
        largest = choose(best.logit for best in tried if best.cut < self.most)
        return next(
            Best(one.logit, one.cut, one.successes) for one in tried if one.logit == largest
        )


def test_policies_and_infinite_numbers_are_fields_of_a_policy(tmp_path: Path) -> None:
    result = lb.audit(SCORES, lb.Coins(FIRST), cuts=Wrapped(), seed=0)
    assert lb.AuditResult.from_json(result.to_json()) == result
    stored = result.options["cuts"]
    assert stored["inner"] == [{"type": "Portion", "share": 0.2}, {"type": "Quarter"}]
    assert (stored["scan"]["type"], stored["most"]) == ("KLScan", "inf")
    built = build(stored, name="cuts", kinds={"KLScan": lb.KLScan})
    assert isinstance(built, Wrapped)
    assert built.inner[0] == Portion(share=0.2)
    assert isinstance(built.inner[1], Quarter)
    assert (built.scan, built.most) == (lb.KLScan(), math.inf)
    result.bundle(tmp_path / "bundle", scores=SCORES, plan=FIRST)
    assert evidence.verify_bundle(tmp_path / "bundle").valid
    with pytest.raises(OptionError, match=r"cuts\.scan is .*Other.*does not know"):
        build({**stored, "scan": {"type": "Other"}}, name="cuts", kinds={"KLScan": lb.KLScan})


def test_a_policy_that_cannot_be_read_back_is_refused(tmp_path: Path) -> None:
    result = lb.audit(SCORES, lb.Coins(FIRST), cuts=Wrapped(choose=max), seed=0)
    with pytest.raises(OptionError, match=r"Wrapped fails once .*must be text, numbers"):
        result.bundle(tmp_path / "bundle", scores=SCORES, plan=FIRST)
    assert not (tmp_path / "bundle").exists()


@dataclass(frozen=True, kw_only=True)
class PartScan(lb.KLScan):
    """A scan at a part of the level."""

    part: float = 0.5

    def bound(self, path: Ranks, order: PathOrder, level: float, failures: float = 0.0, /) -> Bound:
        return super().bound(path, order, self.part * level, failures)


def test_a_policy_derived_from_a_scan_is_stored_as_itself(tmp_path: Path) -> None:
    result = lb.audit(SCORES, lb.Coins(FIRST), cuts=PartScan(part=0.1), seed=0)
    usual = lb.audit(SCORES, lb.Coins(FIRST), cuts=lb.KLScan(), seed=0)
    assert 0 < result.bound < usual.bound
    assert (result.options["cuts"]["type"], result.options["cuts"]["part"]) == ("PartScan", 0.1)
    assert lb.AuditResult.from_json(result.to_json()) == result
    result.bundle(tmp_path / "bundle", scores=SCORES, plan=FIRST)
    assert evidence.verify_bundle(tmp_path / "bundle").valid


def test_the_sentences_are_those_of_the_design() -> None:
    result = twins().with_check(epsilon=0.5, relation="replace")
    said = result.summary()
    notes = {one.name: one.note for one in said.metrics}
    bound = f"{np.floor(100 * result.bound) / 100:.2f}"
    assert said.design == "fair coin for each pair of twins"
    assert said.headline == (
        "This model leaks: the audit rules out every ε-DP guarantee for replacing one twin with "
        f"ε < {bound} (95 % confidence)."
    )
    assert said.answer == (
        "The claimed ε = 0.5 for replacing one twin is refuted (95 % confidence)."
    )
    assert "guesses about which twin was trained on were right" in " ".join(said.paragraphs)
    assert notes["Correct guesses"].startswith("which twin was trained on, ")
    assert notes["Confidence"] == "over the coins of the twins"
    assert notes["Pairs of twins"] == "two twins each"
    assert not any(name.startswith(("TPR", "Accuracy")) for name in notes)
    (scores,) = (one.caption for one in said.figures if one.name == "histogram")
    assert scores.startswith("Scores used to rank pairs of twins. ")
    worst = "It is about the worst case over the audited pairs of twins,"
    assert any(one.startswith(worst) for one in said.meaning.does_not_say)
    assert twins(Portion()).searched == (
        "One threshold was tested, at a share of 0.25 of all pairs of twins."
    )
    few = lb.audit(np.round(SCORES[:60]), Twins(FIRST[:60]), cuts=lb.KLScan(), seed=0)
    assert any("of the pairs of twins share their score" in one for one in few.warnings)
    page = " ".join([str(result), repr(result), *said.next_steps, *few.warnings, str(few)])
    for false in ("independent coin", "membership", "random split", "example"):
        assert false not in page, page


def test_the_sentences_are_those_of_the_policy() -> None:
    result = AUDITS["policy"]()
    assert result.searched == "One threshold was tested, at a share of 0.2 of all examples."
    assert result.theorem.endswith("One threshold was named in advance (Clopper and Pearson 1934).")
    assert result.searched in str(result)
    assert result.options["cuts"] == {"type": "Portion", "share": 0.2}


def test_what_is_not_imported_is_refused_with_what_to_do() -> None:
    from leakbound.evidence.recipe import Recipe

    content = {"audit": "triplets", "options": {}, "data": {}}
    with pytest.raises(FormatError, match=r"unknown design 'triplets'.*its module be imported"):
        Recipe.decoded(content, {}, None)
    content = {"audit": "coins", "options": {"cuts": {"type": "Third"}}, "data": {}}
    with pytest.raises(OptionError, match=r"Third.*this version does not know"):
        Recipe.decoded(content, {}, None)


def test_what_is_no_policy_is_refused() -> None:
    for wrong in ("scan", Portion, object()):
        with pytest.raises(InputTypeError, match="cuts must be one of KLScan"):
            lb.audit(SCORES, lb.Coins(FIRST), cuts=wrong)  # type: ignore[call-overload]
    for claim in (lb.ApproxDP(delta=1e-5), lb.GaussianDP()):
        with pytest.raises(OptionError, match=r"cuts=Portion is not for .*: use "):
            lb.audit(SCORES, lb.Coins(FIRST), claim=claim, cuts=Portion())


def test_a_design_without_words_cannot_be_made() -> None:
    class Silent(road.Design[road.Listed, results.AuditResult]):
        name = "silent"

        def audit(self, scores: road.Listed, request: road.Request, /) -> results.AuditResult:
            raise NotImplementedError

    with pytest.raises(TypeError, match="wording"):
        Silent()  # type: ignore[abstract]


def test_a_policy_proves_nothing_where_scores_say_nothing() -> None:
    chosen = RNG.integers(4, size=200)
    found = lb.audit(RNG.normal(size=(200, 4)), lb.Choices(chosen, k=4), cuts=Portion(), seed=0)
    assert found.bound == 0


@dataclass(frozen=True)
class Answering(Portion):
    """A policy that answers what it is given."""

    answer: object = None

    def bound(self, _path: Ranks, _order: PathOrder, _level: float, /) -> Best:
        return self.answer  # type: ignore[return-value]


class Certain(Portion):
    """A policy that proves anything of a perfect attack."""

    def bound(self, path: Ranks, order: PathOrder, level: float, /) -> Best:
        if path.count(path.guesses) == (FIRST.size, FIRST.size):
            return Best(math.inf, 10, 10)
        return super().bound(path, order, level)


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (Best(math.nan, 10, 5), "logit must be below inf, got nan"),
        (Best(math.inf, 10, 10), "logit must be below inf, got inf"),
        (Best(np.float64("nan"), 10, 5), "logit must be below inf, got nan"),
        (Best("1", 10, 5), "logit must be a real number, got '1'"),  # type: ignore[arg-type]
        (Best(1.0, 10, 20), "successes must be at least 0 and at most 10, got 20"),
        (Best(1.0, 10, -1), "successes must be at least 0 and at most 10, got -1"),
        (Best(1.0, 401, 20), "cut must be at least 0 and at most 400, got 401"),
        (Best(1.0, 10.0, 5), "cut must be an integer, got 10.0"),  # type: ignore[arg-type]
        (None, "got None"),
        (1.2, "got 1.2"),
        ((1.0, 10, 5), r"got \(1.0, 10, 5\)"),
    ],
)
def test_what_is_no_answer_of_a_policy_is_refused(answer: object, problem: str) -> None:
    expected = rf"^Answering\.bound must return Best\(logit, cut, successes\): .*{problem}$"
    policy = Answering(answer=answer)
    with pytest.raises(OptionError, match=expected):
        lb.audit(SCORES, lb.Coins(FIRST), cuts=policy, seed=0)
    with pytest.raises(OptionError, match=expected):
        twins(policy)


def test_what_is_no_answer_about_a_perfect_attack_is_refused() -> None:
    with pytest.raises(OptionError, match=r"^Certain\.bound must return .*, got inf$"):
        lb.audit(SCORES, lb.Coins(FIRST), cuts=Certain(), seed=0)


def test_numbers_of_numpy_are_those_of_python() -> None:
    numbers = Best(np.float32(0.5), np.int64(50), np.int32(40))  # type: ignore[arg-type]
    counting = type("Counting", (Quarter,), {"bound": lambda *_: numbers})
    result = twins(counting())
    assert (result.bound, result.guesses, result.correct) == (0.5, 50, 40)
    assert {type(one) for one in (result.guesses, result.correct)} == {int}
    assert lb.AuditResult.from_json(result.to_json()).bound == 0.5


def test_a_policy_may_show_nothing() -> None:
    assert twins(Answering(answer=Best(-math.inf, 0, 0))).bound == 0


def test_words_of_a_property_are_checked_once_they_are_stored() -> None:
    late = type("Late", (Twins,), {"wording": property(lambda _design: "a coin")})
    with pytest.raises(OptionError, match=r"^Late\.wording must be a Wording.*got 'a coin'"):
        lb.audit(SCORES, late(FIRST), seed=0)
    usual = type("Usual", (Twins,), {"wording": property(lambda _design: Twins.wording)})
    assert lb.audit(SCORES, usual(FIRST), seed=0).wording == Twins.wording


@pytest.mark.parametrize(
    ("confidence", "level"), [(0.95, "0.05"), (0.99, "0.01"), (0.9999999, "1e-07")]
)
def test_subgroups_of_a_design_share_the_level_of_the_audit(confidence: float, level: str) -> None:
    with pytest.raises(OptionError, match=rf"Twins: audit k.* at confidence 1 - {level} / k$"):
        lb.audit(SCORES, Twins(FIRST), by=FIRST, confidence=confidence)


@pytest.mark.parametrize("make", [twins, AUDITS["policy"], lambda: coins("leaks", "gaussian")])
def test_a_figure_is_drawn_with_its_words(
    make: Callable[[], lb.AuditResult], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    result = make()
    usual = [one.name for one in result.summary().figures]
    monkeypatch.setitem(PLOTS, "shares", SHARES)
    figures = result.summary().figures
    assert [one.name for one in figures] == [*usual, "shares"]
    assert figures[-1].title == "Shares of members"
    assert figures[-1].caption == f"Of {result.m} scores, how many are of members."
    assert result.plot("shares").get_ylabel() == "share of members"
    result.report(tmp_path / "report.html")
    assert figures[-1].caption in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert lb.AuditResult.from_json(result.to_json()) == result


def test_a_bundle_says_that_a_figure_is_not_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(PLOTS, "shares", SHARES)
    twins().bundle(tmp_path / "bundle", scores=SCORES, plan=FIRST)
    assert evidence.verify_bundle(tmp_path / "bundle").valid
    monkeypatch.delitem(PLOTS, "shares")
    verified = evidence.verify_bundle(tmp_path / "bundle")
    assert not verified.valid
    assert "or it has figures whose module is not imported here" in verified.why


def noise(scale: float) -> lb.TradeOff:
    """Tell two outputs of Laplace noise apart."""
    return lb.TradeOff.laplace(scale)


def test_a_family_is_a_function(tmp_path: Path) -> None:
    """A bundle holds no functions, and says so; all else is as for a family of the package."""
    family = lb.TradeOffFamily(parameter="inverse scale", tradeoff=noise, bracket=(0.01, 100.0))
    result = lb.audit(SCORES, lb.Coins(FIRST), claim=family, seed=0)
    assert 0 < result.bound < result.ceiling
    said = result.summary()
    epsilon = f"{math.floor(100 * result.epsilon(1e-5)) / 100:.2f}"
    own = f"inverse scale ≥ {math.floor(100 * result.bound) / 100:.2f}"
    assert said.claim == "trade-off family in inverse scale"
    assert said.formula == f"ε ≥ {epsilon} at δ = 1e-05 ({own})"
    assert said.headline == (
        "This model leaks: the audit rules out every guarantee of trade-off family in inverse "
        f"scale with ε < {epsilon} at δ = 1e-05 ({own}; 95 % confidence)."
    )
    assert said.meaning.does_not_say[-1] == (
        "It gives no bound on ε outside trade-off family in inverse scale: if the trade-off "
        "function of training is not in this family, ε may be smaller."
    )
    again = lb.AuditResult.from_json(result.to_json())
    assert again == result
    assert str(again) == str(result)
    with pytest.raises(FormatError, match="TradeOffFamily, which a bundle cannot store"):
        result.bundle(tmp_path / "bundle", scores=SCORES, plan=FIRST)
    result.report(tmp_path / "report.html")
    text = html.unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert f"({own}; 95 % confidence)" in " ".join(text.split())


def test_a_signal_is_a_function(tmp_path: Path) -> None:
    x = torch.tensor(RNG.normal(size=(200, 150)), dtype=torch.float32)
    y = torch.tensor(RNG.normal(size=200), dtype=torch.float32)
    member = RNG.random(200) < 0.5
    model = torch.nn.Linear(150, 1, bias=False)
    fitted = torch.linalg.lstsq(x[member], y[member, None]).solution
    noise = torch.tensor(RNG.normal(size=(1, 150)), dtype=torch.float32)
    model.weight.data = fitted.T + 0.001 * noise
    scores = score(model, (x, y), signal=closeness, progress=False, device="cpu")
    result = lb.audit(scores, lb.Coins(member), seed=0)
    assert result.bound > 2
    assert "This model leaks" in str(result)
    assert lb.AuditResult.from_json(result.to_json()) == result
    result.bundle(tmp_path / "bundle", scores=scores, plan=member)
    assert evidence.verify_bundle(tmp_path / "bundle").valid
    result.report(tmp_path / "report.html")
    assert "This model leaks" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_protocols_and_benchmarks_take_a_policy_from_outside() -> None:
    table = {"type": "Portion", "share": 0.2}
    assert build(table, name="cuts", kinds={}) == Portion(share=0.2)
    with pytest.raises(OptionError, match="Portion: got an unexpected keyword argument 'part'"):
        build({**table, "part": 1}, name="cuts", kinds={})
    named = NamedBound.of(Portion(share=0.2))
    assert (named.name, named.options) == ("Portion", "share=0.2")
