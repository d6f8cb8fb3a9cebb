"""The directive `picture`: figures drawn by leakbound while pages are built, for light and dark.

A page names a function of this file and gives a caption. Text and lines take the colours of the
page.
"""

from __future__ import annotations

import html
import io
import json
import re
from contextlib import chdir, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import leakbound as lb
from leakbound.audits.pairing import hashes_of_ids, matched_by_hash

if TYPE_CHECKING:
    from docutils.nodes import Node
    from sphinx.application import Sphinx

INK, FAINT = "#111111", "#888888"
"""Text and thin lines; both are replaced by the colours of the page."""
MEMBER, OTHER = "#2f80c8", "#cc6a1f"
PROVED = OTHER
"""The colours of plots and reports."""
THEME = {INK: "var(--pst-color-text-base)", FAINT: "var(--pst-color-text-muted)"}
STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}


class Picture(SphinxDirective):
    """A drawing with its caption."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[Node]:
        """Draw, and put drawing and caption into a figure."""
        caption = " ".join(self.content)
        drawn = nodes.raw("", drawing(self.arguments[0], caption), format="html")
        text, messages = self.state.inline_text(caption, self.lineno)
        figure = nodes.figure("", drawn, nodes.caption("", "", *text), classes=["picture"])
        return [figure, *messages]


def drawing(name: str, caption: str) -> str:
    """Return a drawing as SVG for a page that has others."""
    import matplotlib.pyplot as plt

    draw = globals()[name]
    file = io.StringIO()
    with plt.rc_context({**STYLE, "svg.hashsalt": name}):
        figure = draw(plt)
        figure.savefig(file, format="svg", transparent=True)
        plt.close(figure)
    svg = re.sub(r"<metadata>.*?</metadata>", "", file.getvalue(), flags=re.S)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg[svg.index("<svg") :])
    for colour, variable in THEME.items():
        svg = svg.replace(colour, variable)
    return svg.replace("<svg", f'<svg role="img" aria-label="{html.escape(caption)}"', 1)


def example(page: str) -> dict[str, Any]:
    """Run the first example of a page, in a temporary folder, and return its names."""
    text = (Path(__file__).parents[1] / f"{page}.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    with TemporaryDirectory() as folder, chdir(folder), redirect_stdout(io.StringIO()):
        exec(re.findall(r"```python\n(.*?)```", text, re.S)[0], names)
    return names


def band(ax: Any, bound: float, ceiling: float, end: float) -> None:
    """Draw which ε are ruled out, which are not, and which are out of reach."""
    ax.barh(0, bound, color=PROVED, height=0.6)
    ax.barh(0, ceiling - bound, left=bound, color="none", edgecolor=FAINT, hatch="///", height=0.6)
    ax.barh(0, end - ceiling, left=ceiling, color="none", edgecolor=FAINT, height=0.6)
    ax.set(xlim=(0, end), ylim=(-0.4, 0.4), yticks=[])
    ax.spines["left"].set_visible(False)


def histogram(ax: Any, scores: Any, member: Any, names: tuple[str, str], bins: int = 30) -> None:
    """Draw the scores of two groups."""
    edges = np.linspace(np.min(scores), np.max(scores), bins + 1)
    for one, name, colour in ((False, names[1], OTHER), (True, names[0], MEMBER)):
        ax.hist(scores[member == one], edges, color=colour, alpha=0.65, label=name)
    ax.set_yticks([])
    ax.legend()


def gate(plt: Any) -> Any:
    """Three outcomes of a claim."""
    rows = [(0.8, 4.0, "passes (exit code 0)"), (2.6, 4.0, "fails (exit code 1)")]
    rows.append((0.2, 1.5, "inconclusive (exit code 3)"))
    figure, axes = plt.subplots(3, 1, figsize=(5.6, 2.9), sharex=True)
    for ax, (bound, ceiling, title) in zip(axes, rows, strict=True):
        band(ax, bound, ceiling, 5.0)
        ax.axvline(2.0, color=INK, linestyle="--")
        ax.set_title(title, loc="left", fontsize=10)
    axes[-1].set_xlabel("ε: ruled out (filled), not ruled out (hatched), out of reach (empty)")
    return figure


def coins(plt: Any) -> Any:
    """Draw records, coins, and which of them the model saw."""
    plan = lb.InclusionPlan.create(16, seed=5)
    figure, ax = plt.subplots(figsize=(5.6, 2.2))
    for place, member in enumerate(plan.member):
        colour, level = (MEMBER, 1.0) if member else (OTHER, -1.0)
        ax.plot([place, place], [0, level], color=FAINT, linewidth=0.8)
        ax.plot(place, 0, "o", color=FAINT, markersize=7)
        ax.plot(place, level, "s", color=colour, markersize=10)
    for level, text in ((1, "members:\nthe model is\ntrained on them"), (0, "a coin each")):
        ax.text(16, level, text, va="center")
    ax.text(16, -1, "others:\nleft out", va="center")
    ax.set(xlim=(-0.6, 22), ylim=(-1.5, 1.5))
    ax.axis("off")
    return figure


def _game() -> tuple[Any, Any]:
    game = lb.simulate.gaussian(1_000, mu=1.5, seed=0)
    return game.scores, game.member


def two_groups(plt: Any) -> Any:
    """Scores of members and of others."""
    figure, ax = plt.subplots(figsize=(5.6, 2.4))
    histogram(ax, *_game(), ("members", "others"))
    ax.set(xlabel="score", ylabel="records")
    return figure


def guesses(plt: Any) -> Any:
    """Members and others in the order of scores, with both thresholds."""
    scores, member = _game()
    place = np.argsort(np.argsort(scores))
    figure, ax = plt.subplots(figsize=(5.6, 1.9))
    wrong = np.where(place < 50, member, ~member & (place >= 950))
    for one, name, colour in ((True, "member", MEMBER), (False, "other", OTHER)):
        rows = (member == one) & ~wrong
        ax.vlines(place[rows], 0, 1, color=colour, linewidth=0.6, label=name)
        ax.vlines(place[(member == one) & wrong], 0, 1.5, color=colour, linewidth=1.4)
    ax.vlines([49.5, 949.5], 0, 1.5, color=INK, linestyle="--")
    ax.text(25, 1.6, "“other”", ha="center")
    ax.text(500, 1.6, "no guess", ha="center")
    ax.text(975, 1.6, "“member”", ha="center")
    ax.set(ylim=(0, 2), xlim=(-40, 1040), xticks=[], yticks=[], xlabel="rank of the score")
    ax.spines[:].set_visible(False)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)
    return figure


def allowed(plt: Any) -> Any:
    """Draw the share of right guesses that ε allows, and what was found."""
    result = lb.audit(_game()[0], lb.Coins(_game()[1]), cuts=lb.Fixed(100), sides="both")
    epsilon = np.linspace(0, 5, 200)
    least = 1 / (1 + np.exp(-result.bound))
    figure, ax = plt.subplots(figsize=(5.6, 2.7))
    ax.plot(epsilon, 100 / (1 + np.exp(-epsilon)), color=INK)
    ax.axvspan(0, result.bound, color=PROVED, alpha=0.3)
    ax.hlines(100 * least, 0, result.bound, color=INK, linestyle="--")
    ax.vlines(result.bound, 50, 100 * least, color=INK, linestyle="--")
    ax.text(0.1, 96.5, "right guesses: at least 93.8 %", va="center")
    ax.text(result.bound / 2, 55, "ruled out", ha="center")
    ax.text(3.8, 75, "not ruled out", ha="center")
    ax.set(xlim=(0, 5), ylim=(50, 100), xlabel="ε", ylabel="right guesses, %")
    return figure


def split(plt: Any) -> Any:
    """Draw log-odds of the right class in both parts."""
    names = example("audits/random-split")
    parts = [
        lb.attacks.score(names["model"], names[f"X_{part}"], names[f"y_{part}"]).values
        for part in ("train", "test")
    ]
    scores = np.concatenate(parts)
    figure, ax = plt.subplots(figsize=(5.6, 2.4))
    member = np.arange(scores.size) < parts[0].size
    histogram(ax, scores, member, ("training set", "test set"))
    ax.set(xlabel="log-odds of the right diagnosis", ylabel="records")
    return figure


def canaries_in_and_out(plt: Any) -> Any:
    """Draw scores of canaries."""
    from leakbound.torch import score

    names = example("audits/canaries")
    figure, ax = plt.subplots(figsize=(5.6, 2.4))
    canaries = names["canaries"]
    scores = score(names["model"], (canaries.x, canaries.y), progress=False).values
    histogram(ax, scores, canaries.plan.member, ("trained on", "left out"))
    ax.set(xlabel="log-odds of the canary's wrong label", ylabel="canaries")
    return figure


def users(plt: Any) -> Any:
    """Draw scores of records, and their means for users."""
    names = example("guides/users")
    scores, user, member = names["scores"], names["user"], names["member"]
    coins = names["plan"].member
    means = np.bincount(user, scores) / np.bincount(user)
    figure, axes = plt.subplots(1, 2, figsize=(5.6, 2.2))
    drawn = [(scores, member, "score of a record"), (means, coins, "mean score of a user")]
    for ax, (values, inside, title) in zip(axes, drawn, strict=True):
        histogram(ax, values, inside, ("trained on", "left out"))
        ax.get_legend().remove()
        ax.set(xlabel=title)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def forgotten(plt: Any) -> Any:
    """Draw scores of a deletion set before and after deletion."""
    names = example("audits/deletion")
    figure, axes = plt.subplots(1, 2, figsize=(5.6, 2.4))
    for ax, time in zip(axes, ("before", "after"), strict=True):
        member = names["requests"].plan.member
        histogram(ax, names[time], member, ("included, then deleted", "never included"))
        ax.set(title=f"{time} deletion", xlabel="log-odds of the label")
        ax.get_legend().remove()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def versions(plt: Any) -> Any:
    """Draw the probabilities of all versions of some canaries."""
    names = example("audits/choices")
    figure, axes = plt.subplots(1, 4, figsize=(5.6, 2.0), sharey=True)
    for ax, secret in zip(axes, range(4), strict=True):
        ax.bar(range(10), names["scores"][secret], color="none", edgecolor=OTHER)
        chosen = names["plan"].chosen[secret]
        ax.bar(chosen, names["scores"][secret, chosen], color=MEMBER)
        ax.set(xticks=[0, 5, 9], title=f"image {secret + 1}")
    axes[0].set_ylabel("probability")
    figure.supxlabel("label", fontsize=10)
    return figure


def runs(plt: Any) -> Any:
    """Draw the outputs of runs of a mechanism."""
    names = example("audits/trials")
    figure, ax = plt.subplots(figsize=(5.6, 2.4))
    histogram(ax, names["outputs"], names["member"], ("with the record", "without it"))
    ax.set(xlabel="published sum", ylabel="runs")
    return figure


def reports(plt: Any) -> Any:
    """Draw how many reports of each value have each log ratio."""
    names = example("audits/local-dp")
    figure, ax = plt.subplots(figsize=(5.6, 2.4))
    levels = np.array([-1.0, 0.0, 1.0])
    for shift, one, name, colour in ((0.15, True, "3", MEMBER), (-0.15, False, "0", OTHER)):
        shown = names["scores"][names["member"] == one]
        counts = [(shown == level).sum() for level in levels]
        ax.bar(levels + shift, counts, 0.3, color=colour, label=f"value {name}")
    ax.set(xlabel="log ratio of the report", ylabel="reports", xticks=levels, xlim=(-1.4, 2.1))
    ax.legend()
    return figure


def contributions(plt: Any) -> Any:
    """Draw what one example adds in each pair of batches, in units of the claim."""
    audit = example("audits/dp-sgd-step")["audit"]
    lengths = np.sort([one.length / audit.claimed for one in audit.pairs])
    figure, ax = plt.subplots(figsize=(5.6, 2.4))
    ax.plot(np.arange(1, len(lengths) + 1), lengths, ".", color=MEMBER)
    ax.axhline(1.0, color=INK, linestyle="--")
    ax.text(1, 1.02, "claim", va="bottom")
    ax.set(xlabel="pair of batches", ylabel="clipping norms", ylim=(0, 1.25))
    return figure


def mechanism(plt: Any) -> Any:
    """Draw what a noisy maximum releases on each of two inputs."""
    names, rng = example("audits/mechanisms"), np.random.default_rng(0)
    member = np.repeat([True, False], 500)
    values = np.array([names["largest"](names["d1" if one else "d0"], rng)[1] for one in member])
    seen = values < 14
    figure, ax = plt.subplots(figsize=(5.6, 2.4))
    histogram(ax, values[seen], member[seen], ("with the record", "without it"))
    ax.set(xlabel="released count", ylabel="runs")
    return figure


def release(plt: Any) -> Any:
    """Draw the counts of one release, by the coins of their keys."""
    names = example("audits/one-release")
    figure, ax = plt.subplots(figsize=(5.6, 2.4))
    released, member = names["released"], names["plan"].member
    near = np.abs(released - names["others"]) < 6
    histogram(ax, released[near], member[near], ("heads", "tails"))
    ax.set(xlabel="released count", ylabel="keys")
    return figure


def released(plt: Any) -> Any:
    """Draw the bounds of faults of released libraries, next to what was claimed."""
    stored = Path(__file__).parents[2] / "benches" / "field" / "released.json"
    listed = json.loads(stored.read_text(encoding="utf-8"))["rows"]
    rows = [row for row in listed if not row["skipped"]]
    figure, ax = plt.subplots(figsize=(5.6, 3.4))
    for place, row in enumerate(reversed(rows)):
        # "ε = 1", or "ε = 1, δ = 1e-05"
        claimed = float(row["faulty"]["claimed"].partition(",")[0].split("=")[1])
        bounds = np.array(row["faulty"]["bounds"]) / claimed
        ax.plot(bounds, np.full(bounds.size, place), "o", color=PROVED)
    ax.axvline(1.0, color=INK, linestyle="--")
    names = [row["case"].replace("_", " ") for row in reversed(rows)]
    ax.set(yticks=range(len(rows)), yticklabels=names, xscale="log", xlim=(0.9, None))
    multiples = (1, 2, 5, 10, 20)
    ax.set_xticks(multiples, labels=map(str, multiples))
    ax.minorticks_off()
    ax.set_xlabel("bound as a multiple of the claim")
    return figure


def stream(plt: Any) -> Any:
    """Draw the bound after each batch, and where the audit stopped."""
    names = example("audits/streaming")
    game, audit, seen = names["game"], lb.Stream(), np.arange(20, 1_001, 20)
    bounds = [
        audit.update(game.scores[rows], game.member[rows]).bound
        for rows in np.split(np.arange(1_000), 50)
    ]
    figure, ax = plt.subplots(figsize=(5.6, 2.6))
    ax.step(seen, bounds, where="post", color=PROVED)
    ax.plot(names["stream"].m, names["bound"], "o", color=PROVED)
    ax.axhline(3.0, color=INK, linestyle="--")
    ax.text(5, 3.05, "true ε", va="bottom")
    ax.set(ylim=(0, 3.5), xlabel="canaries", ylabel="ε proved so far")
    return figure


def table(plt: Any) -> Any:
    """Draw the first rows of a file, and all of its scores."""
    names = example("guides/from-a-file")
    scores, member = names["scores"], names["plan"].member
    rows = [[f"{one:.2f}", str(int(is_in))] for one, is_in in zip(scores[:6], member, strict=False)]
    figure, (left, right) = plt.subplots(1, 2, figsize=(5.6, 2.4), width_ratios=[1, 2])
    drawn = left.table([*rows, ["…", "…"]], colLabels=["score", "member"], loc="center")
    drawn.scale(1, 1.4)
    for cell in drawn.get_celld().values():
        cell.set(facecolor="none", edgecolor=FAINT)
    left.axis("off")
    histogram(right, scores, member, ("member = 1", "member = 0"))
    right.set(xlabel="score", ylabel="records")
    return figure


def questions(plt: Any) -> Any:
    """Draw on how many people attacks succeed, and what is certified."""
    risks = [*example("audits/three-questions")["result"].risks]
    figure, ax = plt.subplots(figsize=(5.6, 2.2))
    for place, (_, risk) in enumerate(risks):
        ends = [100 * risk.control_rate, 100 * risk.control_rate_upper]
        first = place == 0
        ax.barh(place, 100 * risk.rate, 0.5, color=MEMBER, alpha=0.65, label="members" * first)
        ax.plot(ends, [place, place], color=OTHER, linewidth=1.5)
        ax.plot(ends[:1], [place], "D", color=OTHER, label="others, up to their limit" * first)
        ax.text(100 * risk.rate + 0.3, place, f"at least {risk.certified} certified", va="center")
    ax.set_yticks(range(len(risks)), [name.replace("_", " ") for name, _ in risks])
    ax.set(xlabel="attack succeeds, % of people", xlim=(0, 170 * max(r.rate for _, r in risks)))
    ax.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def thresholds(plt: Any) -> Any:
    """Draw the bound at each number of guesses, and what a second look costs and gains."""
    names = example("guides/claims-and-thresholds")
    coins = lb.Coins(names["plan"])
    result = lb.audit(names["scores"], coins, cuts=lb.KLScan(), sides="member", seed=0)
    figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.6), width_ratios=[3, 2])
    left.plot(result.curve.guesses, result.curve.bound, color=PROVED)
    left.plot(result.guesses, result.bound, "o", color=PROVED)
    left.set(
        xlabel="guesses of “member”, highest scores first",
        ylabel="lower bound on ε",
        ylim=(0, None),
    )
    game = lb.simulate.gaussian(10_000, 1.5, seed=0)
    rng = np.random.default_rng(0)
    ends = np.where(rng.random(10_000) < 0.5, np.inf, -np.inf)
    noisy = np.where(rng.random(10_000) < 0.04, ends, game.scores)
    policies = {"most confident only": lb.OutsideIn(), "with a second look": None}
    for place, (name, cuts) in enumerate(policies.items()):
        bounds = [
            lb.audit(scores, lb.Coins(game.member), cuts=cuts, seed=0).bound
            for scores in (game.scores, noisy)
        ]
        at = np.arange(2) + 0.4 * place - 0.2
        right.bar(at, bounds, width=0.38, color=(FAINT, PROVED)[place], label=name)
    right.set(xticks=[0, 1], xticklabels=["surest\noutermost", "noise\noutermost"])
    right.margins(y=0.4)
    right.legend(fontsize="small", loc="upper center")
    return figure


def growth(plt: Any) -> Any:
    """Draw what audits prove of one truth as the number of canaries grows."""
    sizes = [50, 100, 200, 400, 800, 1_600]
    found = [lb.planning.power(m, truth=2.0) for m in sizes]
    figure, ax = plt.subplots(figsize=(5.6, 2.8))
    ax.plot(sizes, [one.ceiling for one in found], color=FAINT, linestyle=":", label="ceiling")
    ax.axhline(2.0, color=INK, linestyle="--", label="true ε")
    ax.plot(sizes, [one.mean for one in found], "o-", color=PROVED, label="bound")
    low, high = [one.low for one in found], [one.high for one in found]
    ax.fill_between(sizes, low, high, color=PROVED, alpha=0.25)
    ax.set(xscale="log", xlabel="canaries", ylabel="ε", xticks=sizes, xticklabels=sizes)
    ax.set(ylim=(0, None))
    ax.minorticks_off()
    ax.legend()
    return figure


def two_bounds(plt: Any) -> Any:
    """Draw two lower bounds, and truths where the model of the smaller one leaks more."""
    figure, ax = plt.subplots(figsize=(5.6, 2.0))
    for place, (bound, truth) in enumerate([(2.8, 3.3), (1.2, 5.4)]):
        ax.barh(place, bound, color=PROVED, height=0.45)
        ax.barh(
            place, 7 - bound, left=bound, color="none", edgecolor=FAINT, hatch="///", height=0.45
        )
        ax.plot(truth, place, "D", color=INK)
        ax.annotate(f"ε ≥ {bound}", (bound / 2, place), color="white", ha="center", va="center")
    ax.plot([], [], "D", color=INK, label="one possible true ε")
    ax.set(yticks=[0, 1], yticklabels=["model B", "model A"], xlabel="ε", xlim=(0, 7))
    figure.legend(loc="outside upper right")
    return figure


def zero(plt: Any) -> Any:
    """Draw scores of three audits that find nothing."""
    rng = np.random.default_rng(0)
    member = rng.random(2_000) < 0.5
    noise = rng.normal(size=2_000)
    few = np.array([False, False, True, True])
    drawn = [(noise, member), (noise - 1.5 * member, member), (np.array([-2, -1, 1, 2]), few)]
    figure, axes = plt.subplots(1, 3, figsize=(5.6, 2.0))
    titles = ("no information", "inverted", "too few")
    for ax, (values, inside), title in zip(axes, drawn, titles, strict=True):
        histogram(ax, values, inside, ("members", "others"), bins=20)
        ax.get_legend().remove()
        ax.set(title=title, xticks=[], xlabel="score")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def tally(plt: Any) -> Any:
    """Draw a tally of few scores."""
    rng = np.random.default_rng(0)
    member = rng.random(10_000) < 0.5
    scores = rng.binomial(12, 0.45 + 0.1 * member)
    figure, ax = plt.subplots(figsize=(5.6, 2.4))
    for one, name, colour, shift in (
        (False, "others", OTHER, -0.2),
        (True, "members", MEMBER, 0.2),
    ):
        counts = np.bincount(scores[member == one], minlength=13)
        ax.bar(np.arange(13) + shift, counts, 0.4, color=colour, label=name)
    ax.set(xlabel="score", ylabel="records")
    ax.legend()
    return figure


def shards(plt: Any) -> Any:
    """Draw the shards of a run that was stopped twice, by the time when each was finished."""
    figure, ax = plt.subplots(figsize=(5.6, 1.9))
    runs = [(0, 5, MEMBER), (5, 9, OTHER), (9, 14, FAINT)]
    for number, (first, stop, colour) in enumerate(runs):
        for shard in range(first, stop):
            ax.add_patch(plt.Rectangle((shard + 0.1, 2.1 - number), 0.8, 0.8, color=colour))
        if number < 2:
            ax.text(stop + 0.2, 2.5 - number, "stopped", color=INK, va="center")
    ax.set(xlim=(0, 14), ylim=(0, 3), xlabel="shard", xticks=[])
    ax.set_yticks([2.5, 1.5, 0.5], ["first run", "second", "third"])
    return figure


def served(plt: Any) -> Any:
    """Draw the scores that logs of a model and its base give."""
    logs = Path(__file__).parents[2] / "tests" / "golden" / "logs"
    model, base = (logs / f"lm-eval-rolling-{stage}.jsonl" for stage in ("model", "base"))
    scores = lb.attacks.logged_scores(model, "lm-eval", "sum", reference=base)
    figure, ax = plt.subplots(figsize=(5.6, 2.2))
    names = ("trained on", "not trained on")
    histogram(ax, scores.values, scores.kept["member"], names, bins=20)
    ax.set(xlabel="log-probability under the model, less that under its base", ylabel="texts")
    return figure


def keys(plt: Any) -> Any:
    """Draw keys of 8 bits over scores."""
    scores = np.linspace(-4.5, 4.5, 4001)
    figure, ax = plt.subplots(figsize=(5.6, 2.4))
    found = [lb.Tally.of([score], [True], bits=8).keys[0] for score in scores]
    ax.step(scores, found, color=MEMBER, where="mid")
    ax.set(xlabel="score", ylabel="key")
    return figure


def matching(plt: Any) -> Any:
    """Draw members and non-members of two buckets in the order of their hashes, and their pairs."""
    rng = np.random.default_rng(3)
    pairing = lb.Pairing(seed=6, centre=0, spread=1, buckets=2)
    ids, member = np.arange(22), rng.permutation(22) < 13
    place = hashes_of_ids(pairing, ids) / 2**64 + 0.5
    members, others, left = matched_by_hash(pairing, ids, hashes_of_ids(pairing, ids), member)
    figure, ax = plt.subplots(figsize=(5.6, 1.8))
    for one, other in zip(members, others, strict=True):
        ax.plot([place[one], place[other]], [1, 0], color="grey", linewidth=0.8)
    for rows, height, colour in ((member, 1, MEMBER), (~member, 0, OTHER)):
        ax.plot(place[rows], np.full(rows.sum(), height), "o", color=colour)
    ax.plot(place[left], member[left] * 1.0, "o", color="white", markersize=3)
    ax.axvline(0.5, color="grey", linestyle=":")
    ax.set(xlabel="hash of the id", xlim=(0, 1), ylim=(-0.4, 1.4), xticks=[])
    ax.set_yticks([0, 1], ["non-members", "members"])
    return figure


def speed(plt: Any) -> Any:
    """Draw seconds against examples, as `make scale` measured them."""
    stored = Path(__file__).parents[2] / "benches" / "scale.json"
    rows = json.loads(stored.read_text(encoding="utf-8"))
    figure, ax = plt.subplots(figsize=(5.6, 3.6))
    lines = (
        ("leakbound tally", MEMBER, "-"),
        ("DuckDB: sum(score)", MEMBER, ":"),
        ("Tally.of and audit", OTHER, "-"),
        ("numpy.sort", OTHER, ":"),
        ("audit of the tally", INK, "-"),
        ("PairTally.of", FAINT, "-"),
        ("DuckDB: GROUP BY hash", FAINT, ":"),
    )
    for work, colour, style in lines:
        times = [(row["m"], row["seconds"]) for row in rows if row["work"] == work]
        ax.plot(*zip(*times, strict=True), style, color=colour, marker=".", label=work)
    ax.set(xscale="log", yscale="log", xlabel="examples", ylabel="seconds")
    figure.legend(loc="outside right upper")
    return figure


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
