"""PANORAMIA from members to bounds: targets that remember or never saw, seeds, checkpoints."""

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import leakbound as lb
from census import Census, features
from command_line import leakbound
from leakbound.errors import FormatError, InputError, InputTypeError, OptionError
from leakbound.generators import Samples
from leakbound.panoramia import Helper, Options, PanoramiaReport, StackedAttack, run
from memory import Memory, mlp, people

if TYPE_CHECKING:
    from leakbound.panoramia.table import Audit

MEMBERS = 1000


def untrained(seed: int = 0) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return mlp()


@dataclass(frozen=True)
class Spoilt:
    """The census with older people in it: a generator that is easily told from real data."""

    by: float

    def fit(self, *_: Any) -> "Spoilt":
        return self

    def sample(self, n: int, *, seed: int) -> Samples:
        drawn = Census().sample(n, seed=seed)
        values = drawn.values.copy()
        values[:, 0] += self.by
        return Samples(values, drawn.labels)


HELPER = Helper(network=mlp, epochs=1)
OPTIONS = Options(inputs=features, helper=HELPER, saturation=(0.5,), seeds=(0, 1), union=True)
X, Y = people(MEMBERS, 77)
OTHERS = people(600, 78)


def audited(
    model: Any, *, generator: Any = None, options: Any = None, **data: Any
) -> PanoramiaReport:
    """Audit a model with a few options changed."""
    members = data.pop("members", (X, Y))
    changed = replace(OPTIONS, **(options or {}))
    return run(model, members, generator or Census(), options=changed, **data)


@pytest.fixture(scope="module")
def report() -> PanoramiaReport:
    targets = {"fits all": Memory(X, Y), "never saw": untrained()}
    return audited(targets, nonmembers=OTHERS, initial=untrained(1))


def test_the_table_has_every_target_under_every_audit(report: PanoramiaReport) -> None:
    assert [(row.target, row.audit) for row in report.rows] == [
        (target, audit)
        for target in ("fits all", "never saw")
        for audit in ("PANORAMIA", "PANORAMIA, union", "RM;RN", "O(1)")
    ]
    assert all(len(row.results) == 2 for row in report.rows)
    assert report.row("fits all").m == report.sizes["test"] == 420
    assert report.row("fits all", "O(1)").m == len(report.games("real")[0])
    for result, game in zip(
        report.row("fits all", "RM;RN").results, report.games("real"), strict=True
    ):
        pairs = min(game.member.sum(), (~game.member).sum())
        assert (result.m, result.options["pairs"]) == (2 * pairs, pairs)
    with pytest.raises(OptionError, match="there is no row"):
        report.row("somebody")


def test_a_target_that_remembers_leaks_and_one_that_never_saw_does_not(
    report: PanoramiaReport,
) -> None:
    remembered, unseen = report.row("fits all"), report.row("never saw")
    assert all(result.epsilon_tilde > 2 for result in remembered.results)  # type: ignore[union-attr]
    assert all(result.kind == "estimate" for result in remembered.results)
    audits: tuple[Audit, ...] = ("RM;RN", "O(1)")
    for audit in audits:
        row = report.row("fits all", audit)
        assert all(result.kind == "lower_bound" for result in row.results)
        assert all(result.bound > 2 for result in row.results)
    for result in unseen.results:
        assert isinstance(result, lb.PanoramiaResult)
        assert result.c_plus_epsilon_lb <= result.c_lb + 0.1


def test_the_two_results_that_share_a_baseline_share_c(report: PanoramiaReport) -> None:
    one, two = report.row("fits all"), report.row("never saw")
    assert one.c_lb == two.c_lb
    assert one.epsilon is None
    assert report.row("fits all", "O(1)").c_plus_epsilon_lb is None
    assert report.row("fits all", "RM;RN").c_lb is None
    assert [s.mean for s in report.saturation.spreads][-1] == one.c_lb.mean  # type: ignore[union-attr]
    assert report.saturation.examples.tolist() == [200, 400]


def test_the_report_goes_to_json_and_back_and_is_written(
    report: PanoramiaReport, tmp_path: Path
) -> None:
    assert PanoramiaReport.from_json(report.to_json()) == report
    text = str(report)
    assert " ".join(text.splitlines()[0].split()) == "Target Audit m c ≥ c + ε ≥ ε̃ ε ≥"
    assert "not a lower bound on ε" in text
    report.report(tmp_path / "report.html", title="Two targets", model="Made up.")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert html.count("<svg") == 2 + 3
    assert html.count(">Losses under “fits all”<") == 1
    assert html.count(">Losses under the helper<") == 1
    assert "Estimated leakage for “fits\u00a0all”" in html
    assert "What next" in html


def test_next_steps_are_what_to_pass_to_the_run(report: PanoramiaReport) -> None:
    """Real non-members are in the table; a report from JSON says the same."""
    conditional = (
        "Run with Options(conditional=True, seeds=(0, 1)) to get a conditional lower bound"
    )
    real = "Real non-members, passed as nonmembers=(x, y), give lower bounds"
    for read in (report, PanoramiaReport.from_json(report.to_json())):
        steps = " ".join(read.summary().next_steps)
        assert conditional in steps
        assert real not in steps
        assert "Pass features" not in steps
    generated = tuple(row for row in report.rows if row.audit == "PANORAMIA")
    text_options = report.options | {"attack": repr(StackedAttack("text"))}
    text = replace(report, rows=generated, options=text_options).summary()
    assert not any("conditional=True" in step for step in text.next_steps)
    assert any(real in step for step in text.next_steps)


def test_scores_are_audited_again_without_training(report: PanoramiaReport) -> None:
    assert [(game.seed, game.nonmembers, len(game)) for game in report.scores] == [
        (seed, others, 420 if others == "generated" else len(report.games("real")[0]))
        for seed in (0, 1)
        for others in ("generated", "real")
    ]
    generated, real = report.games(), report.games("real")
    for target in ("fits all", "never saw"):
        union = lb.UnionBound()
        for audit, results in (
            ("PANORAMIA", [game.audit(target) for game in generated]),
            ("PANORAMIA, union", [game.audit(target, cuts=union) for game in generated]),
            ("RM;RN", [game.audit(target, cuts=lb.KLScan()) for game in real]),
            ("O(1)", [game.audit_losses(target) for game in real]),
        ):
            assert tuple(results) == report.row(target, audit).results  # type: ignore[arg-type]
    looser = generated[0].audit("fits all", gamma=1e-3, max_recall=0.5, confidence=0.9)
    assert (looser.options["gamma"], looser.confidence) == (1e-3, 0.9)
    assert looser.attack.guesses <= 210


def test_scores_stay_with_the_report_but_not_in_json(
    report: PanoramiaReport, tmp_path: Path
) -> None:
    stored = PanoramiaReport.from_json(report.to_json())
    assert stored.scores == ()
    with pytest.raises(OptionError, match="which has no scores"):
        stored.games()
    copy = pickle.loads(pickle.dumps(report))
    assert copy == report
    assert copy.games()[0].audit("fits all") == report.row("fits all").results[0]
    with pytest.raises(OptionError, match="no target 'nobody'; targets: 'fits all', 'never saw'"):
        report.games()[0].audit("nobody")
    with pytest.raises(OptionError, match="prove nothing against generated"):
        report.games()[0].audit_losses("fits all")
    file = tmp_path / "scores.csv"
    game = report.games()[1]
    columns = {"member": game.member.astype(int), "baseline_score": game.baseline}
    pd.DataFrame(columns | game.attacks).to_csv(file, index=False)
    command = ["panoramia", str(file), "--score-col", "fits all", "--json-full", "--seed", "1"]
    answer = leakbound(*command)
    read = lb.PanoramiaResult.from_json(answer.out)
    expected = report.row("fits all").results[1]
    assert isinstance(expected, lb.PanoramiaResult)
    assert (read.c_lb, read.c_plus_epsilon_lb) == (expected.c_lb, expected.c_plus_epsilon_lb)


def test_losses_show_what_was_memorised(report: PanoramiaReport) -> None:
    losses = {one.model: one for one in report.losses}
    assert [*losses] == ["fits all", "never saw", "helper"]
    audited = MEMBERS - report.sizes["generator"]
    for one in losses.values():
        counts = {side: int(count.sum()) for side, count in one.sides.items()}
        assert counts == {"members": audited, "generated": audited, "real non-members": 600}
        assert one.logarithmic
        assert np.all(np.diff(one.edges) > 0)
    learnt, unseen = losses["fits all"], losses["never saw"]
    assert learnt.medians["members"] < 0.01
    assert learnt.medians["generated"] > 0.3
    assert learnt.medians["real non-members"] > 0.3
    assert max(unseen.medians.values()) < 1.1 * min(unseen.medians.values())


def test_the_run_has_figures(report: PanoramiaReport) -> None:
    assert report.plot().get_title("left") == "All targets, audit by audit"
    assert report.plot("saturation").get_xlabel() == "examples that train the baseline"
    names = ["members", "generated", "real non-members"]
    for model in ("never saw", "helper"):
        ax = report.plot(f"losses of {model}")
        assert model in ax.get_title("left")
        assert [text.get_text() for text in ax.get_legend().get_texts()] == names  # type: ignore[union-attr]
        assert ax.get_xscale() == "log"
    kinds = "kind must be one of audits, saturation, losses of fits all, .*, got 'roc'"
    with pytest.raises(OptionError, match=kinds):
        report.plot("roc")


def test_a_generator_far_from_real_data_is_named() -> None:
    found = audited(Memory(X, Y), generator=Spoilt(60.0), options={"seeds": (0,)})
    row = found.row("target")
    assert row.c_lb is not None
    assert row.c_lb.mean > 3
    assert row.epsilon_tilde is not None
    assert row.epsilon_tilde.mean < 0.1
    for said in ("distinguished without the model (mean c_lb", "ε̃ cannot exceed"):
        assert any(said in text for text in found.warnings)


def test_members_of_the_generator_are_not_audited() -> None:
    seen: list[np.ndarray] = []

    class Spy(Census):
        def fit(self, members: Any, labels: Any = None) -> "Spy":  # noqa: ARG002
            seen.append(np.array(members))
            return self

    ids = np.array([f"p{i}" for i in range(MEMBERS)])
    chosen = ids[[5, 17, *range(400, 700)]]
    options = {"seeds": (0,), "saturation": (), "helper": None}
    found = audited(untrained(), generator=Spy(), options=options, ids=ids, generator_ids=chosen)
    np.testing.assert_array_equal(seen[0], X[[5, 17, *range(400, 700)]])
    assert sum(found.sizes.values()) == MEMBERS
    assert found.sizes["generator"] == 302


class StopError(Exception):
    """What interrupts a run."""


def stopping(at: str) -> Callable[[str, float], None]:
    def progress(what: str, share: float) -> None:
        assert 0 <= share <= 1
        if what == at:
            raise StopError

    return progress


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    target, options = untrained(), {"saturation": ()}
    expected = audited(target, options=options)
    for at in ("training the helper, epoch 1 of 1", "seed 1: the attack on target"):
        with pytest.raises(StopError):
            audited(target, options=options, checkpoints=tmp_path, progress=stopping(at))
    done = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert set(done) == {
        "made-of.json",
        "generated.npz",
        "helper-0.npz",
        "targets.npz",
        "game-0-generated.npz",
    }
    steps: list[str] = []
    found = audited(
        target, options=options, checkpoints=tmp_path, progress=lambda what, _: steps.append(what)
    )
    assert found == expected
    assert steps == ["seed 1: the baseline", "seed 1: the attack on target"]
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in done} == done


@pytest.mark.parametrize(
    ("changed", "data", "named"),
    [
        ({"confidence": 0.9}, {}, "confidence"),
        ({}, {"members": (X[::-1].copy(), Y)}, "members"),
        ({}, {"model": untrained(5)}, "models"),
    ],
)
def test_checkpoints_of_other_data_or_options_are_refused(
    tmp_path: Path, changed: Any, data: Any, named: str
) -> None:
    given: dict[str, Any] = {"model": untrained(), "checkpoints": tmp_path}
    with pytest.raises(StopError):
        audited(**given, progress=stopping("fitting the generator"))
    with pytest.raises(FormatError, match=f"from another {named};"):
        audited(**(given | data), options=changed)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StopError):
        audited(untrained(), checkpoints=tmp_path, progress=stopping("asking target"))
    (tmp_path / "generated.npz").write_bytes(b"half of a file")
    with pytest.raises(FormatError, match="cannot be read"):
        audited(untrained(), checkpoints=tmp_path)
    (tmp_path / "made-of.json").write_text("[]")
    with pytest.raises(FormatError, match="not a record"):
        audited(untrained(), checkpoints=tmp_path)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"attack": "tabular"}, InputTypeError, "attack"),
        ({"helper": "generated"}, InputTypeError, "helper"),
        ({"helper": (HELPER, "members")}, InputTypeError, "helper must be .*'members'"),
        ({"shares": (0.3, 0.0, 0.1)}, OptionError, "shares must be above 0"),
        ({"shares": (0.3, 0.7, 0.1)}, OptionError, "leave members to audit"),
        (
            {"conditional": True, "attack": StackedAttack("text")},
            OptionError,
            "tokens cannot be used",
        ),
        ({"saturation": (0.5, 0.25)}, OptionError, "saturation must be increasing"),
        ({"seeds": ()}, OptionError, "seeds must be different"),
        ({"seeds": (1, 1)}, OptionError, "seeds must be different"),
        ({"confidence": 1.0}, OptionError, "confidence"),
        ({"cuts": "all"}, InputTypeError, "cuts"),
        ({"helper_examples": 3}, OptionError, "helper_examples"),
    ],
)
def test_bad_options(options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        replace(OPTIONS, **options)


class Sampler:
    """A generator that is fitted already."""

    def sample(self, n: int, *, seed: int) -> Samples:
        return Census().sample(n, seed=seed)


class Copier(Census):
    """A generator that returns members."""

    def sample(self, n: int, *, seed: int) -> Samples:
        rows = np.random.default_rng(seed).integers(0, MEMBERS, n)
        return Samples(X[rows], Y[rows])


class Short(Census):
    """A generator that draws too few."""

    def sample(self, n: int, *, seed: int) -> Samples:
        return Census().sample(n - 1, seed=seed)


@pytest.mark.parametrize(
    ("options", "data", "error", "message"),
    [
        ({}, {"model": {}}, OptionError, "model must be a trained model"),
        ({}, {"generator": 3}, InputTypeError, "a method fit or sample"),
        ({}, {"members": X}, OptionError, "must have labels if and only if"),
        ({}, {"members": (X, Y[:-1])}, InputError, "labels has 999 values"),
        ({}, {"members": (X, Y + 0.5)}, InputTypeError, "labels must hold .*got dtype float64"),
        ({}, {"members": (X[:, 0], Y)}, InputError, "one row per example"),
        ({}, {"members": (X[:60], Y[:60])}, OptionError, "at least 20 pairs"),
        ({}, {"nonmembers": (OTHERS[0][:, :3], OTHERS[1])}, InputError, "of shape"),
        ({}, {"ids": np.zeros(MEMBERS)}, InputError, "occur more than once"),
        ({}, {"generator_ids": [-1]}, OptionError, "not the id of a member"),
        ({}, {"generator": Sampler()}, OptionError, "pass generator_ids"),
        ({}, {"generator": Short()}, InputError, "returned 1699 samples instead of 1700"),
        ({}, {"generator": Copier()}, InputError, "copies what it was trained on"),
        ({"helper": Helper(trained_on="real")}, {}, OptionError, "pass nonmembers"),
        ({"helper": Helper()}, {"model": Memory(X, Y)}, OptionError, "initialised"),
        (
            {"helper": Helper("members")},
            {"generator_ids": range(19)},
            OptionError,
            "needs at least 20 of them, got 19",
        ),
    ],
)
def test_bad_data(options: Any, data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        audited(**({"model": untrained()} | data), options=options)


def test_a_model_that_says_nan_is_named() -> None:
    target = untrained()
    with torch.no_grad():
        next(target.parameters()).fill_(float("nan"))
    with pytest.raises(InputError, match="the first in row 0"):
        audited(target)


@pytest.mark.parametrize(
    "helper",
    [
        Helper(epochs=2),
        replace(HELPER, trained_on="real"),
        [HELPER, replace(HELPER, trained_on="members")],
    ],
    ids=["the target's architecture", "real", "two"],
)
def test_every_helper_gives_a_baseline(helper: Helper | list[Helper]) -> None:
    torch.manual_seed(3)
    state = torch.get_rng_state()
    options = {"helper": helper, "seeds": (0,), "saturation": ()}
    found = audited(untrained(), options=options, nonmembers=OTHERS)
    assert torch.equal(torch.get_rng_state(), state)
    for row in found.rows:
        assert row.results[0].bound < 0.4


class Pupil(nn.Module):
    """A network that keeps what it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.network, self.seen = mlp(), [torch.empty(0, 12)]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.seen.append(x.detach())
        said: torch.Tensor = self.network(x)
        return said


def test_helpers_learn_from_generated_examples_and_from_members_of_the_generator_only() -> None:
    pupils: list[Pupil] = []

    def pupil() -> nn.Module:
        pupils.append(Pupil())
        return pupils[-1]

    helpers = [Helper(one, network=pupil, epochs=1) for one in ("generated", "members")]
    known = np.random.default_rng(5).permutation(MEMBERS)[:200]
    options = {"helper": helpers, "seeds": (0,), "saturation": (), "helper_examples": 400}
    found = audited(untrained(), options=options, generator_ids=known)
    assert [one.model for one in found.losses] == ["target", "helper", "helper 2"]
    on_generated, on_members = ({bytes(row) for row in torch.cat(p.seen).numpy()} for p in pupils)
    rows = [bytes(row) for row in features(X).astype(np.float32)]
    assert len(on_generated) == 360
    assert not on_generated & set(rows)
    assert len(on_members) == 180
    assert on_members <= {rows[i] for i in known}
