"""The directive `picture`: figures drawn by leakbound while pages are built, for light and dark.

A page names a function of this file, which draws on its panels, and gives a caption. Text and lines
take the colours of the page.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from docutils import nodes
from scipy.special import expit
from scipy.stats import rankdata
from sphinx.util.docutils import SphinxDirective

import leakbound as lb
from leakbound.audits.pairing import hashes_of_ids, matched_by_hash
from picture_parts import (
    FAINT,
    INK,
    MEMBER,
    OTHER,
    PROVED,
    ROOT,
    band,
    example,
    histogram,
    picture,
    picture_as_svg,
    share_legend,
)

if TYPE_CHECKING:
    from docutils.nodes import Node
    from sphinx.application import Sphinx


class Picture(SphinxDirective):
    """A drawing with its caption."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[Node]:
        """Draw, and put drawing and caption into a figure."""
        caption = " ".join(self.content)
        (name,) = self.arguments
        svg = nodes.raw("", picture_as_svg(name, caption), format="html")
        text, messages = self.state.inline_text(caption, self.lineno)
        caption_node = nodes.caption("", "", *text)
        figure = nodes.figure("", svg, caption_node, classes=["picture"])
        return [figure, *messages]


@picture(height=2.9, nrows=3, sharex=True)
def gate(axes: Any) -> None:
    """Three outcomes of a claim."""
    rows = [
        (0.8, 4.0, "passes (exit code 0)"),
        (2.6, 4.0, "fails (exit code 1)"),
        (0.2, 1.5, "inconclusive (exit code 3)"),
    ]
    for ax, (bound, ceiling, outcome) in zip(axes, rows, strict=True):
        band(ax, bound=bound, ceiling=ceiling, end=5.0)
        ax.axvline(x=2.0, color=INK, linestyle="--")
        ax.set_title(outcome, loc="left", fontsize=10)
    axes[-1].set_xlabel("ε: ruled out (filled), not ruled out (hatched), out of reach (empty)")


@picture(height=2.2)
def coins(ax: Any) -> None:
    """Draw records, coins, and which of them the model saw."""
    plan = lb.InclusionPlan.create(16, seed=5)
    for record, is_member in enumerate(plan.member):
        colour = OTHER
        level = -1.0
        if is_member:
            colour = MEMBER
            level = 1.0
        ax.plot([record, record], [0, level], color=FAINT, linewidth=0.8)
        ax.plot(record, 0, "o", color=FAINT, markersize=7)
        ax.plot(record, level, "s", color=colour, markersize=10)
    ax.text(x=16, y=1, s="members:\nthe model is\ntrained on them", va="center")
    ax.text(x=16, y=0, s="a coin each", va="center")
    ax.text(x=16, y=-1, s="others:\nleft out", va="center")
    ax.set(xlim=(-0.6, 22), ylim=(-1.5, 1.5))
    ax.axis("off")


def _gaussian_game() -> lb.simulate.Game:
    """Return a game of 1,000 records that several pictures show."""
    return lb.simulate.gaussian(1_000, mu=1.5, seed=0)


@picture(height=2.4)
def two_groups(ax: Any) -> None:
    """Scores of members and of others."""
    game = _gaussian_game()
    histogram(ax, game.scores, game.member, counted="records")


@picture(height=1.9)
def guesses(ax: Any) -> None:
    """Members and others in the order of scores, with both thresholds."""
    game = _gaussian_game()
    member = game.member
    ranks = rankdata(game.scores) - 1
    is_wrong_other = (ranks < 50) & member
    is_wrong_member = (ranks >= 950) & ~member
    is_wrong = is_wrong_other | is_wrong_member
    for group, name, colour in ((member, "member", MEMBER), (~member, "other", OTHER)):
        ranks_of_others = ranks[group & ~is_wrong]
        ranks_of_wrong_guesses = ranks[group & is_wrong]
        ax.vlines(x=ranks_of_others, ymin=0, ymax=1, color=colour, linewidth=0.6, label=name)
        ax.vlines(x=ranks_of_wrong_guesses, ymin=0, ymax=1.5, color=colour, linewidth=1.4)
    ax.vlines(x=[49.5, 949.5], ymin=0, ymax=1.5, color=INK, linestyle="--")
    for rank, guess in ((25, "“other”"), (500, "no guess"), (975, "“member”")):
        ax.text(x=rank, y=1.6, s=guess, ha="center")
    ax.set(ylim=(0, 2), xlim=(-40, 1040), xticks=[], yticks=[], xlabel="rank of the score")
    ax.spines[:].set_visible(False)
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=2)


@picture(height=2.7)
def allowed(ax: Any) -> None:
    """Draw the share of right guesses that ε allows, and what was found."""
    game = _gaussian_game()
    result = lb.audit(game.scores, lb.Coins(game.member), cuts=lb.Fixed(100), sides="both")
    epsilons = np.linspace(0, 5, num=200)
    percent_allowed = 100 * expit(epsilons)
    percent_proved = 100 * expit(result.bound)
    ax.plot(epsilons, percent_allowed, color=INK)
    ax.axvspan(xmin=0, xmax=result.bound, color=PROVED, alpha=0.3)
    ax.hlines(y=percent_proved, xmin=0, xmax=result.bound, color=INK, linestyle="--")
    ax.vlines(x=result.bound, ymin=50, ymax=percent_proved, color=INK, linestyle="--")
    ax.text(x=0.1, y=96.5, s="right guesses: at least 93.8 %", va="center")
    ax.text(x=result.bound / 2, y=55, s="ruled out", ha="center")
    ax.text(x=3.8, y=75, s="not ruled out", ha="center")
    ax.set(xlim=(0, 5), ylim=(50, 100), xlabel="ε", ylabel="right guesses, %")


@picture(height=2.4)
def split(ax: Any) -> None:
    """Draw log-odds of the right class in both parts."""
    names = example("audits/random-split")
    parts = [(names["X_train"], names["y_train"]), (names["X_test"], names["y_test"])]
    scores_of_parts = [lb.attacks.score(names["model"], *part).values for part in parts]
    sizes = [scores.size for scores in scores_of_parts]
    histogram(
        ax,
        np.concatenate(scores_of_parts),
        np.repeat([True, False], sizes),
        members="training set",
        others="test set",
        score="log-odds of the right diagnosis",
        counted="records",
    )


@picture(height=2.4)
def canaries_in_and_out(ax: Any) -> None:
    """Draw scores of canaries."""
    from leakbound.torch import score

    names = example("audits/canaries")
    canaries = names["canaries"]
    inputs_and_labels = (canaries.x, canaries.y)
    histogram(
        ax,
        score(names["model"], inputs_and_labels, progress=False).values,
        canaries.plan.member,
        members="trained on",
        others="left out",
        score="log-odds of the canary's wrong label",
        counted="canaries",
    )


@picture(height=2.2, ncols=2)
def users(axes: Any) -> None:
    """Draw scores of records, and their means for users."""
    names = example("guides/users")
    scores = names["scores"]
    user_of_record = names["user"]
    mean_scores = np.bincount(user_of_record, scores) / np.bincount(user_of_record)
    of_records, of_users = axes
    groups = {"members": "trained on", "others": "left out"}
    histogram(of_records, scores, names["member"], **groups, score="score of a record")
    histogram(of_users, mean_scores, names["plan"].member, **groups, score="mean score of a user")
    share_legend(axes)


@picture(height=2.4, ncols=2)
def forgotten(axes: Any) -> None:
    """Draw scores of a deletion set before and after deletion."""
    names = example("audits/deletion")
    member = names["requests"].plan.member
    for ax, time in zip(axes, ("before", "after"), strict=True):
        histogram(
            ax,
            names[time],
            member,
            members="included, then deleted",
            others="never included",
            score="log-odds of the label",
        )
        ax.set_title(f"{time} deletion")
    share_legend(axes)


@picture(height=2.0, ncols=4, sharey=True)
def versions(axes: Any) -> None:
    """Draw the probabilities of all versions of some canaries."""
    names = example("audits/choices")
    for secret, ax in enumerate(axes):
        probabilities = names["scores"][secret]
        chosen_version = names["plan"].chosen[secret]
        ax.bar(x=range(10), height=probabilities, color="none", edgecolor=OTHER)
        ax.bar(x=chosen_version, height=probabilities[chosen_version], color=MEMBER)
        ax.set(xticks=[0, 5, 9], title=f"image {secret + 1}")
    axes[0].set_ylabel("probability")
    axes[0].figure.supxlabel("label", fontsize=10)


@picture(height=2.4)
def runs(ax: Any) -> None:
    """Draw the outputs of runs of a mechanism."""
    names = example("audits/trials")
    histogram(
        ax,
        names["outputs"],
        names["member"],
        members="with the record",
        others="without it",
        score="published sum",
        counted="runs",
    )


@picture(height=2.4)
def reports(ax: Any) -> None:
    """Draw how many reports of each value have each log ratio."""
    names = example("audits/local-dp")
    member = names["member"]
    groups = ((0.15, member, "value 3", MEMBER), (-0.15, ~member, "value 0", OTHER))
    for shift, group, name, colour in groups:
        log_ratios, counts = np.unique(names["scores"][group], return_counts=True)
        ax.bar(x=log_ratios + shift, height=counts, width=0.3, color=colour, label=name)
    ax.set(xlabel="log ratio of the report", ylabel="reports")
    ax.set(xticks=[-1, 0, 1], xlim=(-1.4, 2.1))
    ax.legend()


@picture(height=2.4)
def contributions(ax: Any) -> None:
    """Draw what one example adds in each pair of batches, in units of the claim."""
    audit = example("audits/dp-sgd-step")["audit"]
    lengths_in_claims = np.sort([pair.length / audit.claimed for pair in audit.pairs])
    pair_numbers = np.arange(1, len(lengths_in_claims) + 1)
    ax.plot(pair_numbers, lengths_in_claims, ".", color=MEMBER)
    ax.axhline(y=1.0, color=INK, linestyle="--")
    ax.text(x=1, y=1.02, s="claim", va="bottom")
    ax.set(xlabel="pair of batches", ylabel="clipping norms", ylim=(0, 1.25))


@picture(height=2.4)
def mechanism(ax: Any) -> None:
    """Draw what a noisy maximum releases on each of two inputs."""
    names = example("audits/mechanisms")
    rng = np.random.default_rng(0)
    member = np.repeat([True, False], 500)
    released_counts = []
    for data in (names["d1"], names["d0"]):
        for _ in range(500):
            _, count = names["largest"](data, rng)
            released_counts.append(count)
    counts = np.array(released_counts)
    is_shown = counts < 14
    histogram(
        ax,
        counts[is_shown],
        member[is_shown],
        members="with the record",
        others="without it",
        score="released count",
        counted="runs",
    )


@picture(height=2.4)
def release(ax: Any) -> None:
    """Draw the counts of one release, by the coins of their keys."""
    names = example("audits/one-release")
    released_counts = names["released"]
    is_shown = np.abs(released_counts - names["others"]) < 6
    histogram(
        ax,
        released_counts[is_shown],
        names["plan"].member[is_shown],
        members="heads",
        others="tails",
        score="released count",
        counted="keys",
    )


@picture(height=3.4)
def released(ax: Any) -> None:
    """Draw the bounds of faults of released libraries, next to what was claimed."""
    stored = ROOT / "benches" / "field" / "released.json"
    content = json.loads(stored.read_text(encoding="utf-8"))
    rows = [row for row in reversed(content["rows"]) if not row["skipped"]]
    for height, row in enumerate(rows):
        faulty = row["faulty"]
        # "ε = 1", or "ε = 1, δ = 1e-05"
        epsilon, _, _ = faulty["claimed"].partition(",")
        _, claimed = epsilon.split("=")
        multiples_of_claim = np.array(faulty["bounds"]) / float(claimed)
        heights = np.full(multiples_of_claim.size, height)
        ax.plot(multiples_of_claim, heights, "o", color=PROVED)
    ax.axvline(x=1.0, color=INK, linestyle="--")
    names = [row["case"].replace("_", " ") for row in rows]
    ax.set(yticks=range(len(rows)), yticklabels=names, xscale="log", xlim=(0.9, None))
    ticks = (1, 2, 5, 10, 20)
    ax.set_xticks(ticks, labels=map(str, ticks))
    ax.minorticks_off()
    ax.set_xlabel("bound as a multiple of the claim")


@picture(height=2.6)
def stream(ax: Any) -> None:
    """Draw the bound after each batch, and where the audit stopped."""
    names = example("audits/streaming")
    game = names["game"]
    audit = lb.Stream()
    bounds = []
    for batch in np.split(np.arange(1_000), 50):
        scores_of_batch = game.scores[batch]
        updated = audit.update(scores_of_batch, game.member[batch])
        bounds.append(updated.bound)
    canaries_so_far = np.arange(20, 1_001, 20)
    ax.step(canaries_so_far, bounds, where="post", color=PROVED)
    ax.plot(names["stream"].m, names["bound"], "o", color=PROVED)
    ax.axhline(y=3.0, color=INK, linestyle="--")
    ax.text(x=5, y=3.05, s="true ε", va="bottom")
    ax.set(ylim=(0, 3.5), xlabel="canaries", ylabel="ε proved so far")


@picture(height=2.4, ncols=2, width_ratios=[1, 2])
def table(axes: Any) -> None:
    """Draw the first rows of a file, and all of its scores."""
    names = example("guides/from-a-file")
    scores = names["scores"]
    member = names["plan"].member
    rows = []
    for score, is_member in zip(scores[:6], member[:6], strict=True):
        rows.append([f"{score:.2f}", f"{is_member:d}"])
    rows.append(["…", "…"])
    table_panel, histogram_panel = axes
    drawn_table = table_panel.table(rows, colLabels=["score", "member"], loc="center")
    drawn_table.scale(1, 1.4)
    for cell in drawn_table.get_celld().values():
        cell.set(facecolor="none", edgecolor=FAINT)
    table_panel.axis("off")
    histogram(
        histogram_panel,
        scores,
        member,
        members="member = 1",
        others="member = 0",
        score="score",
        counted="records",
    )


@picture(height=2.2)
def questions(ax: Any) -> None:
    """Draw on how many people attacks succeed, and what is certified."""
    risks = list(example("audits/three-questions")["result"].risks)
    for height, (_, risk) in enumerate(risks):
        member_percent = 100 * risk.rate
        other_percent = 100 * risk.control_rate
        other_limit = 100 * risk.control_rate_upper
        label_of_members = ""
        label_of_others = ""
        if height == 0:
            label_of_members = "members"
            label_of_others = "others, up to their limit"
        ax.barh(
            y=height,
            width=member_percent,
            height=0.5,
            color=MEMBER,
            alpha=0.65,
            label=label_of_members,
        )
        ax.plot([other_percent, other_limit], [height, height], color=OTHER, linewidth=1.5)
        ax.plot([other_percent], [height], "D", color=OTHER, label=label_of_others)
        ax.text(
            x=member_percent + 0.3, y=height, s=f"at least {risk.certified} certified", va="center"
        )
    ax.set_yticks(ticks=range(len(risks)), labels=[name.replace("_", " ") for name, _ in risks])
    largest_rate = max(risk.rate for _, risk in risks)
    ax.set(xlabel="attack succeeds, % of people", xlim=(0, 170 * largest_rate))
    ax.invert_yaxis()
    ax.figure.legend(loc="outside upper center", ncols=2)


@picture(height=2.6, width=7, ncols=2, width_ratios=[3, 2])
def thresholds(axes: Any) -> None:
    """Draw the bound at each number of guesses, and what a second look costs and gains."""
    names = example("guides/claims-and-thresholds")
    coins = lb.Coins(names["plan"])
    result = lb.audit(names["scores"], coins, cuts=lb.KLScan(), sides="member", seed=0)
    panel_of_guesses, panel_of_policies = axes
    panel_of_guesses.plot(result.curve.guesses, result.curve.bound, color=PROVED)
    panel_of_guesses.plot(result.guesses, result.bound, "o", color=PROVED)
    panel_of_guesses.set(
        xlabel="guesses of “member”, highest scores first",
        ylabel="lower bound on ε",
        ylim=(0, None),
    )
    game = lb.simulate.gaussian(10_000, 1.5, seed=0)
    rng = np.random.default_rng(0)
    is_highest = rng.random(10_000) < 0.5
    infinite_scores = np.where(is_highest, np.inf, -np.inf)
    is_noise = rng.random(10_000) < 0.04
    noisy_scores = np.where(is_noise, infinite_scores, game.scores)
    policies = (
        ("most confident only", lb.OutsideIn(), FAINT, -0.2),
        ("with a second look", None, PROVED, 0.2),
    )
    for name, cuts, colour, shift in policies:
        bounds = []
        for scores in (game.scores, noisy_scores):
            audited = lb.audit(scores, lb.Coins(game.member), cuts=cuts, seed=0)
            bounds.append(audited.bound)
        places = np.arange(2) + shift
        panel_of_policies.bar(x=places, height=bounds, width=0.38, color=colour, label=name)
    names_of_games = ["surest\noutermost", "noise\noutermost"]
    panel_of_policies.set(xticks=[0, 1], xticklabels=names_of_games)
    panel_of_policies.margins(y=0.4)
    panel_of_policies.legend(fontsize="small", loc="upper center")


@picture(height=2.8)
def growth(ax: Any) -> None:
    """Draw what audits prove of one truth as the number of canaries grows."""
    sizes = [50, 100, 200, 400, 800, 1_600]
    powers = [lb.planning.power(size, truth=2.0) for size in sizes]
    ceilings = [power.ceiling for power in powers]
    mean_bounds = [power.mean for power in powers]
    lowest_bounds = [power.low for power in powers]
    highest_bounds = [power.high for power in powers]
    ax.plot(sizes, ceilings, color=FAINT, linestyle=":", label="ceiling")
    ax.axhline(y=2.0, color=INK, linestyle="--", label="true ε")
    ax.plot(sizes, mean_bounds, "o-", color=PROVED, label="bound")
    ax.fill_between(x=sizes, y1=lowest_bounds, y2=highest_bounds, color=PROVED, alpha=0.25)
    ax.set(xscale="log", xlabel="canaries", ylabel="ε", xticks=sizes, xticklabels=sizes)
    ax.set(ylim=(0, None))
    ax.minorticks_off()
    ax.legend()


@picture(height=2.0)
def two_bounds(ax: Any) -> None:
    """Draw two lower bounds, and truths where the model of the smaller one leaks more."""
    outline = {"color": "none", "edgecolor": FAINT, "height": 0.45}
    for height, (bound, truth) in enumerate([(2.8, 3.3), (1.2, 5.4)]):
        ax.barh(y=height, width=bound, color=PROVED, height=0.45)
        ax.barh(y=height, width=7 - bound, left=bound, hatch="///", **outline)
        ax.plot(truth, height, "D", color=INK)
        middle = (bound / 2, height)
        ax.annotate(text=f"ε ≥ {bound}", xy=middle, color="white", ha="center", va="center")
    ax.plot([], [], "D", color=INK, label="one possible true ε")
    ax.set(yticks=[0, 1], yticklabels=["model B", "model A"], xlabel="ε", xlim=(0, 7))
    ax.figure.legend(loc="outside upper right")


@picture(height=2.0, ncols=3)
def zero(axes: Any) -> None:
    """Draw scores of three audits that find nothing."""
    rng = np.random.default_rng(0)
    member = rng.random(2_000) < 0.5
    noise = rng.normal(size=2_000)
    four_scores = np.array([-2, -1, 1, 2])
    panels = (
        ("no information", noise, member),
        ("inverted", noise - 1.5 * member, member),
        ("too few", four_scores, four_scores > 0),
    )
    for ax, (title, scores, is_member) in zip(axes, panels, strict=True):
        histogram(ax, scores, is_member, bins=20)
        ax.set(title=title, xticks=[])
    share_legend(axes)


@picture(height=2.4)
def tally(ax: Any) -> None:
    """Draw a tally of few scores."""
    rng = np.random.default_rng(0)
    member = rng.random(10_000) < 0.5
    success_probability = 0.45 + 0.1 * member
    scores = rng.binomial(n=12, p=success_probability)
    values = np.arange(13)
    groups = ((-0.2, ~member, "others", OTHER), (0.2, member, "members", MEMBER))
    for shift, group, name, colour in groups:
        counts = np.bincount(scores[group], minlength=13)
        ax.bar(x=values + shift, height=counts, width=0.4, color=colour, label=name)
    ax.set(xlabel="score", ylabel="records")
    ax.legend()


@picture(height=1.9)
def shards(ax: Any) -> None:
    """Draw the shards of a run that was stopped twice, by the time when each was finished."""
    from matplotlib.patches import Rectangle

    shards_of_runs = [(0, 5, MEMBER), (5, 9, OTHER), (9, 14, FAINT)]
    for run, (first, stop, colour) in enumerate(shards_of_runs):
        for shard in range(first, stop):
            corner = (shard + 0.1, 2.1 - run)
            ax.add_patch(Rectangle(corner, width=0.8, height=0.8, color=colour))
        if run < 2:
            ax.text(x=stop + 0.2, y=2.5 - run, s="stopped", color=INK, va="center")
    ax.set(xlim=(0, 14), ylim=(0, 3), xlabel="shard", xticks=[])
    ax.set_yticks(ticks=[2.5, 1.5, 0.5], labels=["first run", "second", "third"])


@picture(height=2.2)
def served(ax: Any) -> None:
    """Draw the scores that logs of a model and its base give."""
    logs = ROOT / "tests" / "golden" / "logs"
    log_of_model = logs / "lm-eval-rolling-model.jsonl"
    log_of_base = logs / "lm-eval-rolling-base.jsonl"
    scores = lb.attacks.logged_scores(log_of_model, "lm-eval", "sum", reference=log_of_base)
    histogram(
        ax,
        scores.values,
        scores.kept["member"],
        members="trained on",
        others="not trained on",
        score="log-probability under the model, less that under its base",
        bins=20,
        counted="texts",
    )


@picture(height=2.4)
def keys(ax: Any) -> None:
    """Draw keys of 8 bits over scores."""
    scores = np.linspace(-4.5, 4.5, num=4001)
    keys_of_scores = [lb.Tally.of([score], [True], bits=8).keys[0] for score in scores]
    ax.step(scores, keys_of_scores, color=MEMBER, where="mid")
    ax.set(xlabel="score", ylabel="key")


@picture(height=1.8)
def matching(ax: Any) -> None:
    """Draw members and non-members of two buckets in the order of their hashes, and their pairs."""
    rng = np.random.default_rng(3)
    pairing = lb.Pairing(seed=6, centre=0, spread=1, buckets=2)
    ids = np.arange(22)
    member = rng.permutation(22) < 13
    hashes = hashes_of_ids(pairing, ids)
    places = hashes / 2**64 + 0.5
    paired_members, paired_others, unpaired = matched_by_hash(pairing, ids, hashes, member)
    places_of_pairs = [places[paired_members], places[paired_others]]
    ax.plot(places_of_pairs, [1, 0], color="grey", linewidth=0.8)
    for group, colour in ((member, MEMBER), (~member, OTHER)):
        ax.plot(places[group], member[group], "o", color=colour)
    ax.plot(places[unpaired], member[unpaired], "o", color="white", markersize=3)
    ax.axvline(x=0.5, color="grey", linestyle=":")
    ax.set(xlabel="hash of the id", xlim=(0, 1), ylim=(-0.4, 1.4), xticks=[])
    ax.set_yticks(ticks=[0, 1], labels=["non-members", "members"])


@picture(height=3.6)
def speed(ax: Any) -> None:
    """Draw seconds against examples, as `make scale` measured them."""
    rows = pd.read_json(ROOT / "benches" / "scale.json")
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
        rows_of_work = rows[rows["work"] == work]
        ax.plot("m", "seconds", style, data=rows_of_work, color=colour, marker=".", label=work)
    ax.set(xscale="log", yscale="log", xlabel="examples", ylabel="seconds")
    ax.figure.legend(loc="outside right upper")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
