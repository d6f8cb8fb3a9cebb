"""The directive `picture`: figures drawn by leakbound while pages are built, for light and dark.

A page names a function of this file and gives a caption. Text and lines take the colours of the
page.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from docutils import nodes
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
    WIDTH,
    band,
    example,
    histogram,
    histogram_of_scores,
    rendered,
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
        svg = nodes.raw("", rendered(globals()[name], name, caption), format="html")
        text, messages = self.state.inline_text(caption, self.lineno)
        caption_node = nodes.caption("", "", *text)
        figure = nodes.figure("", svg, caption_node, classes=["picture"])
        return [figure, *messages]


def gate(plt: Any) -> Any:
    """Three outcomes of a claim."""
    rows = [
        (0.8, 4.0, "passes (exit code 0)"),
        (2.6, 4.0, "fails (exit code 1)"),
        (0.2, 1.5, "inconclusive (exit code 3)"),
    ]
    figure, axes = plt.subplots(3, 1, figsize=(WIDTH, 2.9), sharex=True)
    for ax, (bound, ceiling, outcome) in zip(axes, rows, strict=True):
        band(ax, bound=bound, ceiling=ceiling, end=5.0)
        ax.axvline(2.0, color=INK, linestyle="--")
        ax.set_title(outcome, loc="left", fontsize=10)
    axes[-1].set_xlabel("ε: ruled out (filled), not ruled out (hatched), out of reach (empty)")
    return figure


def coins(plt: Any) -> Any:
    """Draw records, coins, and which of them the model saw."""
    plan = lb.InclusionPlan.create(16, seed=5)
    figure, ax = plt.subplots(figsize=(WIDTH, 2.2))
    for record, is_member in enumerate(plan.member):
        colour = OTHER
        level = -1.0
        if is_member:
            colour = MEMBER
            level = 1.0
        ax.plot([record, record], [0, level], color=FAINT, linewidth=0.8)
        ax.plot(record, 0, "o", color=FAINT, markersize=7)
        ax.plot(record, level, "s", color=colour, markersize=10)
    ax.text(16, 1, "members:\nthe model is\ntrained on them", va="center")
    ax.text(16, 0, "a coin each", va="center")
    ax.text(16, -1, "others:\nleft out", va="center")
    ax.set(xlim=(-0.6, 22), ylim=(-1.5, 1.5))
    ax.axis("off")
    return figure


def _gaussian_game() -> tuple[Any, Any]:
    """Return the scores and the membership of a game."""
    game = lb.simulate.gaussian(1_000, mu=1.5, seed=0)
    return game.scores, game.member


def two_groups(plt: Any) -> Any:
    """Scores of members and of others."""
    scores, member = _gaussian_game()
    return histogram_of_scores(
        plt,
        scores,
        member,
        groups=("members", "others"),
        score="score",
        counted="records",
    )


def guesses(plt: Any) -> Any:
    """Members and others in the order of scores, with both thresholds."""
    scores, member = _gaussian_game()
    ranks = np.argsort(np.argsort(scores))
    is_wrong = np.where(ranks < 50, member, ~member & (ranks >= 950))
    figure, ax = plt.subplots(figsize=(WIDTH, 1.9))
    for group, name, colour in ((member, "member", MEMBER), (~member, "other", OTHER)):
        right_ranks = ranks[group & ~is_wrong]
        wrong_ranks = ranks[group & is_wrong]
        ax.vlines(right_ranks, 0, 1, color=colour, linewidth=0.6, label=name)
        ax.vlines(wrong_ranks, 0, 1.5, color=colour, linewidth=1.4)
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
    scores, member = _gaussian_game()
    result = lb.audit(scores, lb.Coins(member), cuts=lb.Fixed(100), sides="both")
    epsilons = np.linspace(0, 5, 200)
    percent_allowed = 100 / (1 + np.exp(-epsilons))
    percent_proved = 100 * (1 / (1 + np.exp(-result.bound)))
    figure, ax = plt.subplots(figsize=(WIDTH, 2.7))
    ax.plot(epsilons, percent_allowed, color=INK)
    ax.axvspan(0, result.bound, color=PROVED, alpha=0.3)
    ax.hlines(percent_proved, 0, result.bound, color=INK, linestyle="--")
    ax.vlines(result.bound, 50, percent_proved, color=INK, linestyle="--")
    ax.text(0.1, 96.5, "right guesses: at least 93.8 %", va="center")
    ax.text(result.bound / 2, 55, "ruled out", ha="center")
    ax.text(3.8, 75, "not ruled out", ha="center")
    ax.set(xlim=(0, 5), ylim=(50, 100), xlabel="ε", ylabel="right guesses, %")
    return figure


def split(plt: Any) -> Any:
    """Draw log-odds of the right class in both parts."""
    names = example("audits/random-split")
    model = names["model"]
    training_scores = lb.attacks.score(model, names["X_train"], names["y_train"]).values
    test_scores = lb.attacks.score(model, names["X_test"], names["y_test"]).values
    scores = np.concatenate([training_scores, test_scores])
    return histogram_of_scores(
        plt,
        scores,
        np.arange(scores.size) < training_scores.size,
        groups=("training set", "test set"),
        score="log-odds of the right diagnosis",
        counted="records",
    )


def canaries_in_and_out(plt: Any) -> Any:
    """Draw scores of canaries."""
    from leakbound.torch import score

    names = example("audits/canaries")
    canaries = names["canaries"]
    inputs_and_labels = (canaries.x, canaries.y)
    return histogram_of_scores(
        plt,
        score(names["model"], inputs_and_labels, progress=False).values,
        canaries.plan.member,
        groups=("trained on", "left out"),
        score="log-odds of the canary's wrong label",
        counted="canaries",
    )


def users(plt: Any) -> Any:
    """Draw scores of records, and their means for users."""
    names = example("guides/users")
    scores = names["scores"]
    user_of_record = names["user"]
    mean_scores = np.bincount(user_of_record, scores) / np.bincount(user_of_record)
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.2))
    of_records, of_users = axes
    groups = ("trained on", "left out")
    histogram(of_records, scores, names["member"], groups)
    of_records.set(xlabel="score of a record")
    histogram(of_users, mean_scores, names["plan"].member, groups)
    of_users.set(xlabel="mean score of a user")
    share_legend(figure, axes)
    return figure


def forgotten(plt: Any) -> Any:
    """Draw scores of a deletion set before and after deletion."""
    names = example("audits/deletion")
    member = names["requests"].plan.member
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.4))
    for ax, time in zip(axes, ("before", "after"), strict=True):
        histogram(ax, names[time], member, ("included, then deleted", "never included"))
        ax.set(title=f"{time} deletion", xlabel="log-odds of the label")
    share_legend(figure, axes)
    return figure


def versions(plt: Any) -> Any:
    """Draw the probabilities of all versions of some canaries."""
    names = example("audits/choices")
    figure, axes = plt.subplots(1, 4, figsize=(WIDTH, 2.0), sharey=True)
    for secret, ax in enumerate(axes):
        probabilities = names["scores"][secret]
        chosen_version = names["plan"].chosen[secret]
        ax.bar(range(10), probabilities, color="none", edgecolor=OTHER)
        ax.bar(chosen_version, probabilities[chosen_version], color=MEMBER)
        ax.set(xticks=[0, 5, 9], title=f"image {secret + 1}")
    axes[0].set_ylabel("probability")
    figure.supxlabel("label", fontsize=10)
    return figure


def runs(plt: Any) -> Any:
    """Draw the outputs of runs of a mechanism."""
    names = example("audits/trials")
    return histogram_of_scores(
        plt,
        names["outputs"],
        names["member"],
        groups=("with the record", "without it"),
        score="published sum",
        counted="runs",
    )


def reports(plt: Any) -> Any:
    """Draw how many reports of each value have each log ratio."""
    names = example("audits/local-dp")
    member = names["member"]
    log_ratios = np.array([-1.0, 0.0, 1.0])
    figure, ax = plt.subplots(figsize=(WIDTH, 2.4))
    groups = ((0.15, member, "value 3", MEMBER), (-0.15, ~member, "value 0", OTHER))
    for shift, group, name, colour in groups:
        scores_of_group = names["scores"][group]
        counts = [(scores_of_group == log_ratio).sum() for log_ratio in log_ratios]
        ax.bar(log_ratios + shift, counts, 0.3, color=colour, label=name)
    ax.set(xlabel="log ratio of the report", ylabel="reports")
    ax.set(xticks=log_ratios, xlim=(-1.4, 2.1))
    ax.legend()
    return figure


def contributions(plt: Any) -> Any:
    """Draw what one example adds in each pair of batches, in units of the claim."""
    audit = example("audits/dp-sgd-step")["audit"]
    lengths_in_claims = np.sort([pair.length / audit.claimed for pair in audit.pairs])
    pair_numbers = np.arange(1, len(lengths_in_claims) + 1)
    figure, ax = plt.subplots(figsize=(WIDTH, 2.4))
    ax.plot(pair_numbers, lengths_in_claims, ".", color=MEMBER)
    ax.axhline(1.0, color=INK, linestyle="--")
    ax.text(1, 1.02, "claim", va="bottom")
    ax.set(xlabel="pair of batches", ylabel="clipping norms", ylim=(0, 1.25))
    return figure


def mechanism(plt: Any) -> Any:
    """Draw what a noisy maximum releases on each of two inputs."""
    names = example("audits/mechanisms")
    rng = np.random.default_rng(0)
    member = np.repeat([True, False], 500)
    released_counts = []
    for with_record in member:
        data = names["d0"]
        if with_record:
            data = names["d1"]
        _, count = names["largest"](data, rng)
        released_counts.append(count)
    counts = np.array(released_counts)
    is_shown = counts < 14
    return histogram_of_scores(
        plt,
        counts[is_shown],
        member[is_shown],
        groups=("with the record", "without it"),
        score="released count",
        counted="runs",
    )


def release(plt: Any) -> Any:
    """Draw the counts of one release, by the coins of their keys."""
    names = example("audits/one-release")
    released_counts = names["released"]
    is_shown = np.abs(released_counts - names["others"]) < 6
    return histogram_of_scores(
        plt,
        released_counts[is_shown],
        names["plan"].member[is_shown],
        groups=("heads", "tails"),
        score="released count",
        counted="keys",
    )


def released(plt: Any) -> Any:
    """Draw the bounds of faults of released libraries, next to what was claimed."""
    stored = ROOT / "benches" / "field" / "released.json"
    all_rows = json.loads(stored.read_text(encoding="utf-8"))["rows"]
    rows = [row for row in reversed(all_rows) if not row["skipped"]]
    figure, ax = plt.subplots(figsize=(WIDTH, 3.4))
    for height, row in enumerate(rows):
        # "ε = 1", or "ε = 1, δ = 1e-05"
        epsilon, _, _ = row["faulty"]["claimed"].partition(",")
        _, claimed = epsilon.split("=")
        multiples_of_claim = np.array(row["faulty"]["bounds"]) / float(claimed)
        heights = np.full(multiples_of_claim.size, height)
        ax.plot(multiples_of_claim, heights, "o", color=PROVED)
    ax.axvline(1.0, color=INK, linestyle="--")
    names = [row["case"].replace("_", " ") for row in rows]
    ax.set(yticks=range(len(rows)), yticklabels=names, xscale="log", xlim=(0.9, None))
    ticks = (1, 2, 5, 10, 20)
    ax.set_xticks(ticks, labels=map(str, ticks))
    ax.minorticks_off()
    ax.set_xlabel("bound as a multiple of the claim")
    return figure


def stream(plt: Any) -> Any:
    """Draw the bound after each batch, and where the audit stopped."""
    names = example("audits/streaming")
    game = names["game"]
    audit = lb.Stream()
    bounds = []
    for batch in np.split(np.arange(1_000), 50):
        updated = audit.update(game.scores[batch], game.member[batch])
        bounds.append(updated.bound)
    canaries_so_far = np.arange(20, 1_001, 20)
    figure, ax = plt.subplots(figsize=(WIDTH, 2.6))
    ax.step(canaries_so_far, bounds, where="post", color=PROVED)
    ax.plot(names["stream"].m, names["bound"], "o", color=PROVED)
    ax.axhline(3.0, color=INK, linestyle="--")
    ax.text(5, 3.05, "true ε", va="bottom")
    ax.set(ylim=(0, 3.5), xlabel="canaries", ylabel="ε proved so far")
    return figure


def table(plt: Any) -> Any:
    """Draw the first rows of a file, and all of its scores."""
    names = example("guides/from-a-file")
    scores = names["scores"]
    member = names["plan"].member
    rows = [[f"{scores[row]:.2f}", str(int(member[row]))] for row in range(6)]
    rows.append(["…", "…"])
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.4), width_ratios=[1, 2])
    drawn_table = left.table(rows, colLabels=["score", "member"], loc="center")
    drawn_table.scale(1, 1.4)
    for cell in drawn_table.get_celld().values():
        cell.set(facecolor="none", edgecolor=FAINT)
    left.axis("off")
    histogram(right, scores, member, ("member = 1", "member = 0"))
    right.set(xlabel="score", ylabel="records")
    return figure


def questions(plt: Any) -> Any:
    """Draw on how many people attacks succeed, and what is certified."""
    risks = list(example("audits/three-questions")["result"].risks)
    figure, ax = plt.subplots(figsize=(WIDTH, 2.2))
    for height, (_, risk) in enumerate(risks):
        member_percent = 100 * risk.rate
        other_percent = 100 * risk.control_rate
        other_limit = 100 * risk.control_rate_upper
        label_of_members = ""
        label_of_others = ""
        if height == 0:
            label_of_members = "members"
            label_of_others = "others, up to their limit"
        ax.barh(height, member_percent, 0.5, color=MEMBER, alpha=0.65, label=label_of_members)
        ax.plot([other_percent, other_limit], [height, height], color=OTHER, linewidth=1.5)
        ax.plot([other_percent], [height], "D", color=OTHER, label=label_of_others)
        ax.text(member_percent + 0.3, height, f"at least {risk.certified} certified", va="center")
    ax.set_yticks(range(len(risks)), [name.replace("_", " ") for name, _ in risks])
    largest_rate = max(risk.rate for _, risk in risks)
    ax.set(xlabel="attack succeeds, % of people", xlim=(0, 170 * largest_rate))
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
    infinite_scores = np.where(rng.random(10_000) < 0.5, np.inf, -np.inf)
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
        right.bar(np.arange(2) + shift, bounds, width=0.38, color=colour, label=name)
    right.set(xticks=[0, 1], xticklabels=["surest\noutermost", "noise\noutermost"])
    right.margins(y=0.4)
    right.legend(fontsize="small", loc="upper center")
    return figure


def growth(plt: Any) -> Any:
    """Draw what audits prove of one truth as the number of canaries grows."""
    sizes = [50, 100, 200, 400, 800, 1_600]
    powers = [lb.planning.power(size, truth=2.0) for size in sizes]
    ceilings = [power.ceiling for power in powers]
    mean_bounds = [power.mean for power in powers]
    lowest_bounds = [power.low for power in powers]
    highest_bounds = [power.high for power in powers]
    figure, ax = plt.subplots(figsize=(WIDTH, 2.8))
    ax.plot(sizes, ceilings, color=FAINT, linestyle=":", label="ceiling")
    ax.axhline(2.0, color=INK, linestyle="--", label="true ε")
    ax.plot(sizes, mean_bounds, "o-", color=PROVED, label="bound")
    ax.fill_between(sizes, lowest_bounds, highest_bounds, color=PROVED, alpha=0.25)
    ax.set(xscale="log", xlabel="canaries", ylabel="ε", xticks=sizes, xticklabels=sizes)
    ax.set(ylim=(0, None))
    ax.minorticks_off()
    ax.legend()
    return figure


def two_bounds(plt: Any) -> Any:
    """Draw two lower bounds, and truths where the model of the smaller one leaks more."""
    figure, ax = plt.subplots(figsize=(WIDTH, 2.0))
    outline = {"color": "none", "edgecolor": FAINT, "height": 0.45}
    for height, (bound, truth) in enumerate([(2.8, 3.3), (1.2, 5.4)]):
        ax.barh(height, bound, color=PROVED, height=0.45)
        ax.barh(height, 7 - bound, left=bound, hatch="///", **outline)
        ax.plot(truth, height, "D", color=INK)
        middle = (bound / 2, height)
        ax.annotate(f"ε ≥ {bound}", middle, color="white", ha="center", va="center")
    ax.plot([], [], "D", color=INK, label="one possible true ε")
    ax.set(yticks=[0, 1], yticklabels=["model B", "model A"], xlabel="ε", xlim=(0, 7))
    figure.legend(loc="outside upper right")
    return figure


def zero(plt: Any) -> Any:
    """Draw scores of three audits that find nothing."""
    rng = np.random.default_rng(0)
    member = rng.random(2_000) < 0.5
    noise = rng.normal(size=2_000)
    four_scores = np.array([-2, -1, 1, 2])
    four_members = np.array([False, False, True, True])
    panels = (
        ("no information", noise, member),
        ("inverted", noise - 1.5 * member, member),
        ("too few", four_scores, four_members),
    )
    figure, axes = plt.subplots(1, 3, figsize=(WIDTH, 2.0))
    for ax, (title, scores, is_member) in zip(axes, panels, strict=True):
        histogram(ax, scores, is_member, ("members", "others"), bins=20)
        ax.set(title=title, xticks=[], xlabel="score")
    share_legend(figure, axes)
    return figure


def tally(plt: Any) -> Any:
    """Draw a tally of few scores."""
    rng = np.random.default_rng(0)
    member = rng.random(10_000) < 0.5
    scores = rng.binomial(12, 0.45 + 0.1 * member)
    values = np.arange(13)
    figure, ax = plt.subplots(figsize=(WIDTH, 2.4))
    other_counts = np.bincount(scores[~member], minlength=13)
    member_counts = np.bincount(scores[member], minlength=13)
    ax.bar(values - 0.2, other_counts, 0.4, color=OTHER, label="others")
    ax.bar(values + 0.2, member_counts, 0.4, color=MEMBER, label="members")
    ax.set(xlabel="score", ylabel="records")
    ax.legend()
    return figure


def shards(plt: Any) -> Any:
    """Draw the shards of a run that was stopped twice, by the time when each was finished."""
    figure, ax = plt.subplots(figsize=(WIDTH, 1.9))
    shards_of_runs = [(0, 5, MEMBER), (5, 9, OTHER), (9, 14, FAINT)]
    for run, (first, stop, colour) in enumerate(shards_of_runs):
        for shard in range(first, stop):
            corner = (shard + 0.1, 2.1 - run)
            ax.add_patch(plt.Rectangle(corner, 0.8, 0.8, color=colour))
        if run < 2:
            ax.text(stop + 0.2, 2.5 - run, "stopped", color=INK, va="center")
    ax.set(xlim=(0, 14), ylim=(0, 3), xlabel="shard", xticks=[])
    ax.set_yticks([2.5, 1.5, 0.5], ["first run", "second", "third"])
    return figure


def served(plt: Any) -> Any:
    """Draw the scores that logs of a model and its base give."""
    logs = ROOT / "tests" / "golden" / "logs"
    log_of_model = logs / "lm-eval-rolling-model.jsonl"
    log_of_base = logs / "lm-eval-rolling-base.jsonl"
    scores = lb.attacks.logged_scores(log_of_model, "lm-eval", "sum", reference=log_of_base)
    return histogram_of_scores(
        plt,
        scores.values,
        scores.kept["member"],
        groups=("trained on", "not trained on"),
        score="log-probability under the model, less that under its base",
        counted="texts",
        height=2.2,
        bins=20,
    )


def keys(plt: Any) -> Any:
    """Draw keys of 8 bits over scores."""
    scores = np.linspace(-4.5, 4.5, 4001)
    keys_of_scores = [lb.Tally.of([score], [True], bits=8).keys[0] for score in scores]
    figure, ax = plt.subplots(figsize=(WIDTH, 2.4))
    ax.step(scores, keys_of_scores, color=MEMBER, where="mid")
    ax.set(xlabel="score", ylabel="key")
    return figure


def matching(plt: Any) -> Any:
    """Draw members and non-members of two buckets in the order of their hashes, and their pairs."""
    rng = np.random.default_rng(3)
    pairing = lb.Pairing(seed=6, centre=0, spread=1, buckets=2)
    ids = np.arange(22)
    member = rng.permutation(22) < 13
    hash_of_id = hashes_of_ids(pairing, ids)
    places = hash_of_id / 2**64 + 0.5
    paired_members, paired_others, unpaired = matched_by_hash(pairing, ids, hash_of_id, member)
    figure, ax = plt.subplots(figsize=(WIDTH, 1.8))
    for one, other in zip(paired_members, paired_others, strict=True):
        ax.plot([places[one], places[other]], [1, 0], color="grey", linewidth=0.8)
    for group, height, colour in ((member, 1, MEMBER), (~member, 0, OTHER)):
        heights = np.full(group.sum(), height)
        ax.plot(places[group], heights, "o", color=colour)
    ax.plot(places[unpaired], member[unpaired] * 1.0, "o", color="white", markersize=3)
    ax.axvline(0.5, color="grey", linestyle=":")
    ax.set(xlabel="hash of the id", xlim=(0, 1), ylim=(-0.4, 1.4), xticks=[])
    ax.set_yticks([0, 1], ["non-members", "members"])
    return figure


def speed(plt: Any) -> Any:
    """Draw seconds against examples, as `make scale` measured them."""
    stored = ROOT / "benches" / "scale.json"
    rows = json.loads(stored.read_text(encoding="utf-8"))
    figure, ax = plt.subplots(figsize=(WIDTH, 3.6))
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
        rows_of_work = [row for row in rows if row["work"] == work]
        examples = [row["m"] for row in rows_of_work]
        seconds = [row["seconds"] for row in rows_of_work]
        ax.plot(examples, seconds, style, color=colour, marker=".", label=work)
    ax.set(xscale="log", yscale="log", xlabel="examples", ylabel="seconds")
    figure.legend(loc="outside right upper")
    return figure


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
