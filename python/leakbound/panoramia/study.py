"""PANORAMIA from a trained model and its members to the table of bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from leakbound._base.checks import check_ids, check_length, instance, vector
from leakbound._base.files import Arrays, Checkpoints, digest
from leakbound._base.streams import Purpose
from leakbound.errors import InputError, InputTypeError, OptionError
from leakbound.generators import check_duplicates, split_members
from leakbound.panoramia.examples import Examples, pair_of
from leakbound.panoramia.frames import Frames, classes_of
from leakbound.panoramia.game import LEAST, Parts, Side, play
from leakbound.panoramia.losses import helper_name, loss_decrease, losses_of
from leakbound.panoramia.options import Options
from leakbound.panoramia.report import PanoramiaReport
from leakbound.panoramia.scores import GameScores, audit_all, saturation_of, shown_of
from leakbound.panoramia.table import NonMembers, warnings_of

if TYPE_CHECKING:
    from leakbound._base.types import AnyArray, ArrayInput, IntArray, PathInput
    from leakbound.audits.zero_run.learning import Learning
    from leakbound.generators import Generator, Sampler
    from leakbound.panoramia.options import Helper, Target, Trained

# Called with what is being done and the share of the work done so far, from 0 to 1.
Progress: TypeAlias = Callable[[str, float], None]


def run(
    model: Target | Mapping[str, Target],
    members: object,
    generator: Generator | Sampler,
    *,
    nonmembers: object = None,
    initial: Target | None = None,
    ids: ArrayInput | None = None,
    documents: ArrayInput | None = None,
    generator_ids: ArrayInput | None = None,
    options: Options | None = None,
    checkpoints: PathInput | None = None,
    progress: Progress | None = None,
) -> PanoramiaReport:
    """Audit a trained model, or several that were trained on the same members.

    Some members train a generator; the others are compared with generated examples. A baseline
    distinguishes the two from the examples alone, an attack also uses the outputs of the target.
    What the attack proves beyond the baseline is attributed to the target.

    Parameters
    ----------
    model : nn.Module, classifier or callable, or mapping of str to them
        Trained models, by name if they are several. Only their outputs are used: logits of a torch
        module, probabilities of a classifier with `predict_proba` or of a function.
    members : pair of array-like, or array-like
        Inputs and labels of examples that all models were trained on: arrays of numbers, or a data
        frame of pandas, polars or Arrow with words, booleans, dates and missing values. Then models
        are given frames of the same columns and types, generated ones too. Labels are whole numbers
        or words.
    generator : Generator
        Trained on members that are then not audited; see `leakbound.generators`. A fitted one, a
        `Sampler`, needs `generator_ids`.
    nonmembers : pair of array-like, or array-like, optional
        Real examples of the same distribution that no model was trained on. With them the table has
        the rows RM;RN and O(1) in addition to those of PANORAMIA.
    initial : nn.Module, classifier or callable, optional
        A model before training, for O(1): the score is then the drop of the loss.
    ids, documents : array-like, shape (n,), optional
        A different number or string for each member, by default 0, 1, …, n - 1; and the document
        it comes from: members of one document all train the generator, or none of them do.
    generator_ids : array-like, optional
        Ids of the members that train the generator, or did; they are not audited. By default drawn
        at random.
    options : Options, optional
        Attack, helpers, shares, seeds, confidence and rows of the table.
    checkpoints : str or os.PathLike, optional
        Folder for the outcome of each phase. An interrupted run resumes from there if started
        again with the same data and options, including `seeds`.
    progress : callable, optional
        Called with a description of the current step and the share of the work done.

    Notes
    -----
    The first of `seeds` draws members for the generator and samples; splits, training of baseline
    and attack, and coins are drawn by each. Coins are flipped after all training, and no part that
    is used for training is audited.
    """
    from leakbound.panoramia.models.target import device_for  # brings torch

    # 1. Checks before hours of work.
    if options is None:
        options = Options()
    instance(options, name="options", types=Options)
    models: dict[str, Target] = {}
    if isinstance(model, Mapping):
        models |= model
    else:
        models["target"] = model
    tables = _Tables.of(members, nonmembers, options.inputs, models)
    data = tables.examples(members, "members")
    real = None
    if nonmembers is not None:
        real = tables.examples(nonmembers, "nonmembers")
    if tables.frames is not None:
        generator = tables.frames.with_categorical_columns(generator)
        options = replace(options, inputs=tables.frames.inputs)
    generator_rows = _generator_rows(
        generator,
        options=options,
        members=len(data),
        ids=ids,
        documents=documents,
        generator_ids=generator_ids,
    )
    options = replace(options, device=device_for(options.device, models.values()))
    study = _Study(
        models=models,
        members=data,
        generator_rows=generator_rows,
        generator=generator,
        options=options,
        nonmembers=real,
        initial=initial,
        tick=_Ticks(progress),
        tables=tables,
    )
    study.check()
    store = Checkpoints(folder=checkpoints, made_of=study.ingredients())
    # 2. Non-members are generated.
    generated = store.phase("generated", study.generate)
    samples = Examples(x=generated["x"], y=generated.get("y"), classes=tables.classes)
    examples = study.compared(samples)
    # 3. Helpers learn; they and the models are asked of every example.
    answers: Arrays = {}
    for index, helper in enumerate(options.helpers):
        ask = partial(study.ask_helper, index, helper, samples, examples)
        answers |= store.phase(f"helper-{index}", ask)
    answers |= store.phase("targets", partial(study.ask_models, examples))
    # 4. For each seed, members are told from generated and from real non-members.
    sides = {name: study.side(name, part, answers) for name, part in examples.items()}
    games = study.games(store, sides)
    # 5. Every model is audited in every way.
    return study.report(games, sides, answers)


@dataclass(frozen=True, eq=False)
class _Tables:
    """How frames and labels that are words become numbers: None where they are numbers."""

    frames: Frames | None
    classes: AnyArray | None

    @classmethod
    def of(
        cls,
        members: object,
        nonmembers: object,
        inputs: Callable[[AnyArray], AnyArray] | None,
        models: Mapping[str, Target],
    ) -> _Tables:
        """Settle it by all examples; networks are given a table of numbers as it is."""
        from torch import nn

        given_tables = []
        given_labels = []
        for examples in (members, nonmembers):
            if examples is not None:
                table, labels = pair_of(examples)
                given_tables.append(table)
                given_labels.append(labels)
        frames = Frames.of(given_tables, inputs)
        has_network = any(isinstance(model, nn.Module) for model in models.values())
        takes_numbers = has_network or inputs is not None
        if frames is not None and frames.plain and takes_numbers:
            frames = None
        return cls(frames=frames, classes=classes_of(given_labels))

    def examples(self, data: object, name: str) -> Examples:
        """Read members or non-members."""
        table, labels = pair_of(data)
        if self.frames is not None:
            table = self.frames.encoded(table)
        return Examples.read((table, labels), name, self.classes)

    @property
    def said(self) -> str:
        """What numbers stand for."""
        classes = "numbers"
        if self.classes is not None:
            classes = ", ".join(self.classes.tolist())
        return f"{self.frames}; {classes}"


class _Ticks:
    """Counts steps and reports the share of them done."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._done = 0
        self.total = 1

    def __call__(self, what: str) -> None:
        """Say that a step begins."""
        if self._progress is not None:
            self._progress(what, min(1.0, self._done / self.total))
        self._done += 1


@dataclass(frozen=True, eq=False)
class _Study:
    """Models, data and options of a run; its methods are the phases."""

    models: dict[str, Target]
    members: Examples
    generator_rows: IntArray
    generator: Generator | Sampler
    options: Options
    nonmembers: Examples | None
    initial: Target | None
    tick: _Ticks
    tables: _Tables

    def check(self) -> None:
        """Check models, sizes and what helpers need."""
        options = self.options
        others = self.nonmembers
        if not self.models:
            raise OptionError("model must be a trained model, or several by name; got none")
        if others is None and self.helped_by("real"):
            raise OptionError("a helper trained on real non-members needs some: pass nonmembers")
        if others is not None:
            self.members.check_alike(others, "nonmembers")
        for pairs in (self.audited.size, len(self.held_out or self.members)):
            self.parts.within(pairs).check()
        if self.helped_by("members") and self.generator_rows.size < LEAST:
            few = f"needs at least {LEAST} of them, got {self.generator_rows.size}"
            raise OptionError(f"a helper trained on members of the generator {few}")
        helper_epochs = sum(helper.epochs for helper in options.helpers)
        nonmember_kinds = 2  # generated non-members, and real ones
        if others is None:
            nonmember_kinds = 1
        fits_of_kind = 1 + len(self.models)
        fits_of_seed = nonmember_kinds * fits_of_kind + len(options.saturation)
        all_fits = len(options.seeds) * fits_of_seed
        self.tick.total = 2 + len(self.models) + helper_epochs + all_fits

    @property
    def audited(self) -> IntArray:
        """Rows of the members that did not train the generator."""
        return np.setdiff1d(np.arange(len(self.members)), self.generator_rows)

    @property
    def parts(self) -> Parts:
        """Sizes of the parts of a game."""
        _, train_share, validation_share = self.options.shares
        train = round(train_share * len(self.members))
        validation = round(validation_share * len(self.members))
        test = self.audited.size - train - validation
        return Parts(train=train, validation=validation, test=test)

    @property
    def held_out(self) -> Examples | None:
        """Non-members that did not train a helper: the second half, if there is one."""
        if self.nonmembers is None or not self.helped_by("real"):
            return self.nonmembers
        half = len(self.nonmembers) // 2
        return self.nonmembers.take(slice(half, None))

    def compared(self, samples: Examples) -> dict[str, Examples]:
        """Return the examples that are told apart: members, generated ones, and real ones."""
        examples = {
            "members": self.members.take(self.audited),
            "generated": samples.take(slice(self.parts.all)),
        }
        if self.held_out is not None:
            examples["real"] = self.held_out
        return examples

    def helped_by(self, examples: Trained) -> bool:
        """Tell whether a helper learns from such examples."""
        return any(helper.trained_on == examples for helper in self.options.helpers)

    def words(self) -> dict[str, str]:
        """Return every option in words."""
        words = {"generator": _words(self.generator)}
        for option in fields(self.options):
            value = getattr(self.options, option.name)
            words[option.name] = _words(value)
        return words

    def ingredients(self) -> dict[str, str]:
        """Return what the outcome depends on, in words and digests."""
        from leakbound.panoramia.models.target import fingerprint

        others = self.nonmembers
        models = {**self.models, "": self.initial}
        fingerprints = []
        for name, model in models.items():
            if model:
                fingerprints.append(f"{name}:{fingerprint(model)}")
        nonmembers = "none"
        if others is not None:
            nonmembers = digest(others.x, others.y)
        return {
            **self.words(),
            "tables": self.tables.said,
            "members": digest(self.members.x, self.members.y, self.generator_rows),
            "nonmembers": nonmembers,
            "models": " ".join(fingerprints),
        }

    def generate(self) -> Arrays:
        """Fit the generator, and draw what the audit and the helper need."""
        self.tick("fitting the generator")
        generator = self.generator
        sampler: Sampler
        if hasattr(generator, "fit"):
            training = self.members.take(self.generator_rows)
            sampler = generator.fit(training.x, training.y)
        else:
            sampler = generator
        needed = self.parts.all
        if self.helped_by("generated"):
            needed += self.options.helper_examples or len(self.members)
        seed = Purpose.RUN_SAMPLES.derived(self.options.seeds[0], bits=32)
        drawn = sampler.sample(needed, seed=seed)
        values: object = drawn.values
        if drawn.labels is not None:
            values = drawn.values, drawn.labels
        samples = Examples.read(values, "the generator")
        if self.tables.frames is not None:
            self.members.check_alike(replace(samples, classes=None), "the generator's samples")
            samples = replace(samples, x=self.tables.frames.written(samples.x))
        self.members.check_alike(samples, "the generator's samples")
        if len(samples) != needed:
            raise InputError(f"the generator returned {len(samples)} samples instead of {needed}")
        # The target may have learnt a copy of a member.
        check_duplicates(samples.x, self.members.x)
        generated = {"x": samples.x}
        if samples.y is not None:
            generated["y"] = samples.y
        return generated

    def ask_helper(
        self, index: int, helper: Helper, samples: Examples, sides: Mapping[str, Examples]
    ) -> Arrays:
        """Train a helper, and ask it of every example."""
        from leakbound.panoramia.models.target import signals, train

        # Samples beyond those that are audited.
        training = samples.take(slice(self.parts.all, None))
        if helper.trained_on == "members":
            order_rng = Purpose.HELPER_LESSON.rng(self.options.seeds[0])
            shuffled_rows = order_rng.permutation(self.generator_rows)
            training = self.members.take(shuffled_rows)
        if helper.trained_on == "real" and self.nonmembers is not None:
            half = len(self.nonmembers) // 2
            training = self.nonmembers.take(slice(half))
        inputs = self.options.inputs
        device = self.options.device or "cpu"
        model = train(
            helper,
            target=next(iter(self.models.values())),
            examples=training,
            inputs=inputs,
            seed=index,
            progress=self.tick,
            device=device,
        )
        return {
            f"{helper_name(index)} {name}": signals(model, examples=examples, inputs=inputs)
            for name, examples in sides.items()
        }

    def ask_models(self, sides: Mapping[str, Examples]) -> Arrays:
        """Score every example with every model; those of O(1) with the untrained one too."""
        from leakbound.panoramia.models.target import signals

        answers: Arrays = {}
        for target, model in self.models.items():
            self.tick(f"asking {target}")
            for name, examples in sides.items():
                answers[f"target {target} {name}"] = signals(
                    model, examples=examples, inputs=self.options.inputs
                )
        if self.initial is not None and "real" in sides:
            for name in ("members", "real"):
                answers[f"initial {name}"] = signals(
                    self.initial, examples=sides[name], inputs=self.options.inputs
                )
        return answers

    def side(self, name: str, examples: Examples, answers: Arrays) -> Side:
        """Put examples and answers about them together."""
        target_outputs = {target: answers[f"target {target} {name}"] for target in self.models}
        helper_outputs = [
            answers[f"{helper_name(index)} {name}"] for index, _ in enumerate(self.options.helpers)
        ]
        if helper_outputs:
            helper = np.stack(helper_outputs, axis=1)
        else:
            # Without a helper, the baseline sees no model.
            first_outputs = next(iter(target_outputs.values()))
            helper = first_outputs[:, None][:, :0]
        initial_outputs = answers.get(f"initial {name}")
        falls = {}
        targets = {}
        for target, outputs in target_outputs.items():
            falls[target] = loss_decrease(outputs, initial_outputs)
            targets[target] = outputs[:, None]
        return Side(examples=examples, helper=helper, targets=targets, falls=falls)

    def games(
        self, store: Checkpoints, sides: Mapping[str, Side]
    ) -> dict[tuple[int, NonMembers], Arrays]:
        """Play the games of each seed, or take them from a run before."""
        kinds: tuple[NonMembers, ...] = ("generated", "real")
        if self.nonmembers is None:
            kinds = ("generated",)
        played = {}
        for seed in self.options.seeds:
            for others in kinds:
                game = partial(self.play, seed, others, sides)
                played[seed, others] = store.phase(f"game-{seed}-{others}", game)
        return played

    def play(self, seed: int, others: NonMembers, sides: Mapping[str, Side]) -> Arrays:
        """Play one game; how c grows is asked of generated non-members alone."""
        sizes: tuple[int, ...] = ()
        if others == "generated":
            sizes = self.sizes()
        parts = self.parts.within(len(sides[others]))
        return play(
            members=sides["members"],
            others=sides[others],
            parts=parts,
            sizes=sizes,
            options=self.options,
            seed=seed,
            tick=self.tick,
        )

    def sizes(self) -> tuple[int, ...]:
        """Return the pairs that further baselines learn from."""
        training_pairs = self.parts.train
        sizes = set[int]()
        for share in self.options.saturation:
            size = max(LEAST, round(share * training_pairs))
            if size < training_pairs:
                sizes.add(size)
        return tuple(sorted(sizes))

    def report(
        self,
        games: Mapping[tuple[int, NonMembers], Arrays],
        sides: Mapping[str, Side],
        answers: Arrays,
    ) -> PanoramiaReport:
        """Audit every model in every way."""
        options = self.options
        scores = tuple(GameScores.of(*key, game, self.models) for key, game in games.items())
        generated = [games[seed, "generated"] for seed in options.seeds]
        shown = []
        if options.conditional:
            shown = self.shown(generated, sides)
        rows = audit_all(scores, shown=shown, options=options)
        sizes = (*self.sizes(), self.parts.train)
        saturation = saturation_of(generated, sizes=sizes, options=options)
        return PanoramiaReport(
            rows=rows,
            saturation=saturation,
            seeds=options.seeds,
            sizes={"generator": self.generator_rows.size, **vars(self.parts)},
            options=self.words(),
            warnings=tuple(warnings_of(rows, saturation)),
            losses=tuple(losses_of(answers, self.models)),
            scores=scores,
        )

    def shown(self, games: Sequence[Arrays], sides: Mapping[str, Side]) -> list[Learning]:
        """Return what is known of the audited examples of each game without a target."""
        members = sides["members"].table
        others = sides["generated"].table
        learnings = []
        for game in games:
            shows_member = game["coins"][:, None]
            member_table = members[game["rows"]]
            other_table = others[game["others"]]
            shown_table = np.where(shows_member, member_table, other_table)
            learnings.append(shown_of(game, shown_table, seed=self.options.seeds[0]))
        return learnings


def _generator_rows(
    generator: Generator | Sampler,
    options: Options,
    members: int,
    ids: ArrayInput | None,
    documents: ArrayInput | None,
    generator_ids: ArrayInput | None,
) -> IntArray:
    """Return the rows of the members that train the generator."""
    if not (hasattr(generator, "fit") or hasattr(generator, "sample")):
        raise InputTypeError(f"generator must have a method fit or sample, got {generator!r}")
    labels: AnyArray = np.arange(members)
    if ids is not None:
        labels = vector(ids, name="ids", kinds="biufSU")
    check_length(labels, examples=members, name="ids")
    check_ids(labels, np.ones(members, dtype=np.bool_))
    if generator_ids is not None:
        chosen = vector(generator_ids, name="generator_ids", kinds="biufSU")
        unknown = np.setdiff1d(chosen, labels)
        if unknown.size:
            raise OptionError(f"generator_ids has {unknown[0]!r}, which is not the id of a member")
        return np.flatnonzero(np.isin(labels, chosen))
    if not hasattr(generator, "fit"):
        raise OptionError(
            "the generator is fitted already: pass generator_ids, ids of what it learnt from"
        )
    shares = {"generator": options.shares[0], "audit": 1 - options.shares[0]}
    seed = options.seeds[0]
    return split_members(members, shares=shares, documents=documents, seed=seed)["generator"]


def _words(value: object) -> str:
    """Name an option by its value, without the place in memory that a repr may hold."""
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
