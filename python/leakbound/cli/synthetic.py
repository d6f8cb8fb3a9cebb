"""The demos that audit against generated examples: `leakbound demo census`, `glyphs`, `text`."""

from __future__ import annotations

import json as json_text
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from leakbound.cli import output
from leakbound.cli.audits import Json  # noqa: TC001 (typer reads the annotation)
from leakbound.cli.demo import Seed, app, bar, one_run_on_text
from leakbound.errors import IncompatibleOptionsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from leakbound.experiments.demos.panoramia import (
        ClassifierTarget,
        SyntheticReport,
        TargetsReport,
    )
    from leakbound.experiments.demos.text_panoramia import LanguageReport, LanguageTarget

CENSUS = (
    "Audit networks without retraining them, against people that a generator makes up.\n\n"
    "Networks are trained on a made-up census, ever longer, then with DP-SGD. PANORAMIA compares "
    "their members with generated people and estimates ε̃, which is [bold]not[/] a lower bound on "
    "ε. Beside it stand lower bounds: by Zero-Run on the same people, if the baseline knows what "
    "tells them apart, and against real people whom no network saw. No download; about two minutes "
    "on one core.\n\n"
    "[dim]Needs: pip install 'leakbound\\[demo]'[/]"
)

GLYPHS = (
    "Audit networks on images without retraining them, against generated images.\n\n"
    "As the census demo, on digits drawn in five fonts. Images are harder to make up than tables: "
    "the baseline tells generated ones from real ones, and the attack has to prove more than that. "
    "No download; about three minutes on one core.\n\n"
    "[dim]Needs: pip install 'leakbound\\[demo]'[/]"
)

TEXT = (
    "Train small GPTs on text, ever longer, then with DP-SGD; audit each.\n\n"
    "Chunks of Python's own documentation, 64 bytes each. The default audit is of [bold]one "
    "run[/]: a fair coin decides for each of 1,250 chunks whether it is in the training set, and "
    "bounds on ε are certified; about three minutes on one core. With [bold]--audit panoramia[/] "
    "nothing was decided by coins: another model writes chunks like those of the training set, "
    "and the audit estimates ε̃, which is [bold]not[/] a lower bound on ε; about seven minutes on "
    "one core. No download.\n\n"
    "[dim]Needs: pip install 'leakbound\\[demo]'[/]"
)

Seeds = Annotated[
    int, typer.Option(min=1, help="How often splits, coins, baseline and attack are repeated.")
]

Epochs = Annotated[
    list[int] | None,
    typer.Option(
        min=1, help="When to audit the model without DP; repeat for several.", show_default=False
    ),
]
Epsilons = Annotated[
    list[float] | None,
    typer.Option(
        "--epsilon", help="ε of a model with DP-SGD; repeat for several.", show_default=False
    ),
]


@dataclass(frozen=True)
class _Words:
    """What is particular to a demo: its title, what examples are called, how well targets do."""

    title: str
    examples: str
    measure: str
    value: Callable[[Any], float]


def _accuracy(target: ClassifierTarget) -> float:
    return target.test_accuracy


def _loss(target: LanguageTarget) -> float:
    return target.test_loss


_CENSUS = _Words(
    "Census: PANORAMIA on a table", "people from a made-up census", "test accuracy", _accuracy
)
_GLYPHS = _Words(
    "Glyphs: PANORAMIA on images", "images of digits in five fonts", "test accuracy", _accuracy
)
_TEXT = _Words(
    "Text: PANORAMIA on a language model",
    "chunks of 64 bytes of Python's documentation",
    "loss of unseen text",
    _loss,
)


@app.command("census", help=CENSUS)
def census(
    *,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for report.html, result.json and scores.")
    ] = Path("leakbound-out/census"),
    generator: Annotated[
        Literal["copula", "cart", "chow-liu", "oracle"],
        typer.Option(help="What makes up people; oracle is the census itself."),
    ] = "copula",
    helper: Annotated[
        Literal["generated", "real", "none"],
        typer.Option(help="What the baseline's helper is trained on."),
    ] = "generated",
    heavy_tails: Annotated[
        bool, typer.Option("--heavy-tails", metavar="", help="A few people have millions.")
    ] = False,
    epochs: Epochs = None,
    epsilons: Epsilons = None,
    width: Annotated[int, typer.Option(min=1, help="Units of each of the two layers.")] = 256,
    seeds: Seeds = 3,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Train the census targets, audit them together, and report."""

    def load() -> Callable[..., SyntheticReport]:
        from leakbound.experiments.demos.census import run

        return run

    options = {"generator": generator, "helper": helper, "heavy_tails": heavy_tails, "width": width}
    _perform(
        load,
        out,
        _CENSUS,
        as_json=json,
        seeds=seeds,
        seed=seed,
        **options,
        **_given(epochs=epochs, epsilons=epsilons),
    )


@app.command("glyphs", help=GLYPHS)
def glyphs(
    *,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for report.html, result.json and scores.")
    ] = Path("leakbound-out/glyphs"),
    generator: Annotated[
        Literal["mixture", "oracle"],
        typer.Option(help="What makes up images; oracle is what draws the real ones."),
    ] = "mixture",
    epochs: Epochs = None,
    epsilons: Epsilons = None,
    seeds: Seeds = 3,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Train the glyphs targets, audit them together, and report."""

    def load() -> Callable[..., SyntheticReport]:
        from leakbound.experiments.demos.glyphs import run

        return run

    _perform(
        load,
        out,
        _GLYPHS,
        as_json=json,
        generator=generator,
        seeds=seeds,
        seed=seed,
        **_given(epochs=epochs, epsilons=epsilons),
    )


def _given(**options: object) -> dict[str, object]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value}


@app.command("text", help=TEXT)
def text(
    *,
    audit: Annotated[
        Literal["one-run", "panoramia"],
        typer.Option(help="By coins for every chunk, or against generated chunks."),
    ] = "one-run",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for report.html, result.json and scores: leakbound-out/text, or "
            "leakbound-out/text-panoramia.",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="With --audit panoramia: how often splits, coins, baseline and attack are "
            "repeated (3).",
        ),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """Train the text targets, audit them, and report."""
    if audit == "one-run":
        with output.answering():
            if seeds is not None:
                message = "--seeds repeats an audit by PANORAMIA: give --audit panoramia with it"
                raise IncompatibleOptionsError(message)
        one_run_on_text(out or Path("leakbound-out/text"), seed=seed, as_json=json)
        return

    def load() -> Callable[..., LanguageReport]:
        from leakbound.experiments.demos.text_panoramia import run

        return run

    _perform(
        load,
        out or Path("leakbound-out/text-panoramia"),
        _TEXT,
        as_json=json,
        seeds=seeds or 3,
        seed=seed,
    )


def _perform(
    load: Callable[[], Callable[..., TargetsReport[Any]]],
    out: Path,
    words: _Words,
    *,
    as_json: bool,
    **options: Any,
) -> None:
    """Train, audit, write the files, then print the table or the result."""
    with output.answering():
        output.prepare(out)
        with output.waiting("Loading PyTorch"):
            run = load()
        with bar() as progress:
            made = run(progress=progress, **options)
        with output.waiting("Drawing the report"):
            _write(made, out, words)
        if as_json:
            typer.echo(json_text.dumps(made.to_dict(), allow_nan=False, ensure_ascii=False))
        else:
            _show(made, words)
        output.announce(out, aside=as_json)


def _write(made: TargetsReport[Any], out: Path, words: _Words) -> None:
    from leakbound._base.files import write_text

    text = json_text.dumps(made.to_dict(), allow_nan=False, ensure_ascii=False)
    write_text(out / "result.json", text + "\n")
    scores = out / "scores"
    scores.mkdir(exist_ok=True)
    for game in made.found.scores:
        game.to_csv(scores / f"{game.nonmembers}-{game.seed}.csv")
    sizes = made.found.sizes
    values = "; ".join(f"{one.name}, {words.value(one):.3f}" for one in made.targets)
    summary = (
        f"Networks trained on {made.members:,} {words.examples}. A generator "
        f"({made.generator}) learnt from {sizes['generator']:,} of them; with each of "
        f"{len(made.found.seeds)} seeds baseline and attack learnt from {sizes['train']:,} others, "
        f"were chosen on {sizes['validation']:,}, and audited on {sizes['test']:,}. "
        f"{words.measure.capitalize()}: {values}. Seed {made.seed}."
    )
    made.found.report(out / "report.html", title=words.title, summary=summary)


def _show(made: TargetsReport[Any], words: _Words) -> None:
    from leakbound.panoramia import HEADINGS, headline

    table = output.grid([("Target, audit", False), *((name, True) for name in HEADINGS[2:])])
    values = {one.name: f"{words.value(one):.3f}" for one in made.targets}
    for target, audit, *cells in made.found.table():
        if audit == "PANORAMIA":
            table.add_row(f"{target}, {words.measure} {values[target]}", style="dim")
        table.add_row(f"  {audit}", *cells, style="bold" if audit == "PANORAMIA" else None)
    output.say(table)
    output.say("")
    output.say(headline(made.found), "bold red")
    for text in (made.found.note, *made.found.extreme_words):
        output.say(text)
    for text in made.found.warnings:
        output.say(f"warning: {text}", "yellow")
