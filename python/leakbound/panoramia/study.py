"""PANORAMIA from a trained model and its members to the table of bounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from leakbound._base.checks import check_ids, check_length, instance, vector
from leakbound._base.files import Arrays, Checkpoints, digest
from leakbound._base.streams import Purpose
from leakbound.errors import InputError, InputTypeError, OptionError
from leakbound.generators import check_duplicates, split_members
from leakbound.panoramia.examples import Examples, inputs_and_labels
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
# Members, generated examples and real non-members, and the same with outputs of models.
ExamplesOfSides: TypeAlias = Mapping[str, Examples]
Sides: TypeAlias = Mapping[str, Side]
# Outcomes by seed and by the kind of non-members.
Games: TypeAlias = dict[tuple[int, NonMembers], Arrays]


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
    tables_and_labels = _TablesAsNumbers.of(members, nonmembers, options.inputs, models)
    member_examples = tables_and_labels.examples(members, "members")
    nonmember_examples = None
    if nonmembers is not None:
        nonmember_examples = tables_and_labels.examples(nonmembers, "nonmembers")
    if tables_and_labels.frames is not None:
        generator = tables_and_labels.frames.with_categorical_columns(generator)
        options = replace(options, inputs=tables_and_labels.frames.inputs)
    rows_of_generator_members = _generator_rows(
        generator,
        options=options,
        members=len(member_examples),
        ids=ids,
        documents=documents,
        generator_ids=generator_ids,
    )
    options = replace(options, device=device_for(options.device, models.values()))
    study = _Study(
        models=models,
        members=member_examples,
        generator_rows=rows_of_generator_members,
        generator=generator,
        options=options,
        nonmembers=nonmember_examples,
        initial=initial,
        tick=_RunProgress(progress),
        tables=tables_and_labels,
    )
    study.check()
    phases = Checkpoints(folder=checkpoints, made_of=study.ingredients())
    # 2. Non-members are generated.
    generated_arrays = phases.phase("generated", study.generate)
    generated_examples = Examples(
        x=generated_arrays["x"], y=generated_arrays.get("y"), classes=tables_and_labels.classes
    )
    compared_examples = study.compared(generated_examples)
    # 3. Helpers are trained; every example is scored by them and by the models.
    model_outputs: Arrays = {}
    for index, helper in enumerate(options.helpers):
        score_examples = partial(
            study.helper_outputs, index, helper, generated_examples, compared_examples
        )
        model_outputs |= phases.phase(f"helper-{index}", score_examples)
    score_examples = partial(study.target_outputs, compared_examples)
    model_outputs |= phases.phase("targets", score_examples)
    # 4. For each seed, members are told from generated and from real non-members.
    sides = {}
    for side_name, examples in compared_examples.items():
        sides[side_name] = study.side(side_name, examples, model_outputs)
    games_of_seeds = study.games(phases, sides)
    # 5. Every model is audited in every way.
    return study.report(games_of_seeds, sides, model_outputs)


@dataclass(frozen=True, eq=False)
class _TablesAsNumbers:
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
    ) -> _TablesAsNumbers:
        """Settle it by all examples; networks are given a table of numbers as it is."""
        from torch import nn

        given_examples = [members]
        if nonmembers is not None:
            given_examples.append(nonmembers)
        tables_and_labels = [inputs_and_labels(examples) for examples in given_examples]
        tables_of_inputs, class_labels = zip(*tables_and_labels, strict=True)
        frames = Frames.of(tables_of_inputs, inputs)
        has_network = any(isinstance(model, nn.Module) for model in models.values())
        takes_numbers = has_network or inputs is not None
        if frames is not None and frames.plain and takes_numbers:
            frames = None
        return cls(frames=frames, classes=classes_of(class_labels))

    def examples(self, data: object, name: str) -> Examples:
        """Read members or non-members."""
        table, labels = inputs_and_labels(data)
        if self.frames is not None:
            table = self.frames.encoded(table)
        return Examples.read((table, labels), name, self.classes)

    @property
    def description(self) -> str:
        """What numbers stand for."""
        classes = "numbers"
        if self.classes is not None:
            classes = ", ".join(self.classes.tolist())
        return f"{self.frames}; {classes}"


class _RunProgress:
    """Counts steps and reports the share of them done."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._done = 0
        self.total = 1

    def __call__(self, what: str) -> None:
        """Say that a step begins."""
        if self._progress is not None:
            share_of_work = min(1.0, self._done / self.total)
            self._progress(what, share_of_work)
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
    tick: _RunProgress
    tables: _TablesAsNumbers

    def check(self) -> None:
        """Check models, sizes and what helpers need."""
        options = self.options
        real_nonmembers = self.nonmembers
        generator_members = self.generator_rows.size
        if not self.models:
            raise OptionError("model must be a trained model, or several by name; got none")
        if real_nonmembers is None and self.helped_by("real"):
            raise OptionError("a helper trained on real non-members needs some: pass nonmembers")
        if real_nonmembers is not None:
            self.members.check_alike(real_nonmembers, "nonmembers")
        self.parts.check()
        if self.held_out is not None:
            self.parts.within(len(self.held_out)).check()
        if self.helped_by("members") and generator_members < LEAST:
            raise OptionError(
                f"a helper trained on members of the generator needs at least {LEAST} of them, got "
                f"{generator_members}"
            )
        helper_epochs = sum(helper.epochs for helper in options.helpers)
        # A baseline and an attack on each model, for each kind of non-members.
        attacks_of_kind = 1 + len(self.models)
        attacks_of_all_kinds = len(self.nonmember_kinds) * attacks_of_kind
        attacks_of_seed = attacks_of_all_kinds + len(options.saturation)
        attacks_of_all_seeds = len(options.seeds) * attacks_of_seed
        self.tick.total = 2 + len(self.models) + helper_epochs + attacks_of_all_seeds

    @property
    def audited(self) -> IntArray:
        """Rows of the members that did not train the generator."""
        all_rows = np.arange(len(self.members))
        return np.setdiff1d(all_rows, self.generator_rows)

    @property
    def nonmember_kinds(self) -> tuple[NonMembers, ...]:
        """The kinds of non-members that members are compared with."""
        if self.nonmembers is None:
            return ("generated",)
        return ("generated", "real")

    @property
    def parts(self) -> Parts:
        """Sizes of the parts of a game."""
        _, train_share, validation_share = self.options.shares
        member_count = len(self.members)
        train_pairs = round(train_share * member_count)
        validation_pairs = round(validation_share * member_count)
        test_pairs = self.audited.size - train_pairs - validation_pairs
        return Parts(train=train_pairs, validation=validation_pairs, test=test_pairs)

    @property
    def held_out(self) -> Examples | None:
        """Non-members that did not train a helper: the second half, if there is one."""
        real_nonmembers = self.nonmembers
        if real_nonmembers is None or not self.helped_by("real"):
            return real_nonmembers
        half = len(real_nonmembers) // 2
        return real_nonmembers.take(slice(half, None))

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
        options_in_words = {"generator": _option_in_words(self.generator)}
        for option in fields(self.options):
            value = getattr(self.options, option.name)
            options_in_words[option.name] = _option_in_words(value)
        return options_in_words

    def ingredients(self) -> dict[str, str]:
        """Return what the outcome depends on, in words and digests."""
        from leakbound.panoramia.models.target import fingerprint

        real_nonmembers = self.nonmembers
        models = {**self.models, "": self.initial}
        fingerprints = []
        for name, model in models.items():
            if model:
                fingerprints.append(f"{name}:{fingerprint(model)}")
        digest_of_nonmembers = "none"
        if real_nonmembers is not None:
            digest_of_nonmembers = digest(real_nonmembers.x, real_nonmembers.y)
        return {
            **self.words(),
            "tables": self.tables.description,
            "members": digest(self.members.x, self.members.y, self.generator_rows),
            "nonmembers": digest_of_nonmembers,
            "models": " ".join(fingerprints),
        }

    def generate(self) -> Arrays:
        """Fit the generator, and draw what the audit and the helper need."""
        self.tick("fitting the generator")
        sampler: Any = self.generator
        if hasattr(sampler, "fit"):
            generator_members = self.members.take(self.generator_rows)
            sampler = sampler.fit(generator_members.x, generator_members.y)
        samples_needed = self.parts.all
        if self.helped_by("generated"):
            samples_needed += self.options.helper_examples or len(self.members)
        seed_of_samples = Purpose.RUN_SAMPLES.derived(self.options.seeds[0], bits=32)
        drawn_samples = sampler.sample(samples_needed, seed=seed_of_samples)
        values_and_labels = (drawn_samples.values, drawn_samples.labels)
        samples = Examples.read(values_and_labels, "the generator")
        self.members.check_alike(samples, "the generator's samples")
        values = samples.x
        if self.tables.frames is not None:
            values = self.tables.frames.written(values)
        if len(values) != samples_needed:
            raise InputError(
                f"the generator returned {len(values)} samples instead of {samples_needed}"
            )
        # The target may have learnt a copy of a member.
        check_duplicates(values, self.members.x)
        generated = {"x": values}
        if samples.y is not None:
            generated["y"] = samples.y
        return generated

    def helper_outputs(
        self,
        index: int,
        helper: Helper,
        samples: Examples,
        compared_examples: ExamplesOfSides,
    ) -> Arrays:
        """Train a helper, and score every example with it."""
        from leakbound.panoramia.models.target import signals, train

        # Samples beyond those that are audited.
        training_examples = samples.take(slice(self.parts.all, None))
        if helper.trained_on == "members":
            order_rng = Purpose.HELPER_LESSON.rng(self.options.seeds[0])
            shuffled_rows = order_rng.permutation(self.generator_rows)
            training_examples = self.members.take(shuffled_rows)
        if helper.trained_on == "real" and self.nonmembers is not None:
            half = len(self.nonmembers) // 2
            training_examples = self.nonmembers.take(slice(half))
        inputs = self.options.inputs
        model = train(
            helper,
            target=next(iter(self.models.values())),
            examples=training_examples,
            inputs=inputs,
            seed=index,
            progress=self.tick,
            device=self.options.device or "cpu",
        )
        helper_outputs: Arrays = {}
        for side_name, examples in compared_examples.items():
            key = f"{helper_name(index)} {side_name}"
            helper_outputs[key] = signals(model, examples=examples, inputs=inputs)
        return helper_outputs

    def target_outputs(self, compared_examples: ExamplesOfSides) -> Arrays:
        """Score every example with every model; those of O(1) with the untrained one too."""
        from leakbound.panoramia.models.target import signals

        inputs = self.options.inputs
        target_outputs: Arrays = {}
        for target, model in self.models.items():
            self.tick(f"asking {target}")
            for side_name, examples in compared_examples.items():
                key = f"target {target} {side_name}"
                target_outputs[key] = signals(model, examples=examples, inputs=inputs)
        if self.initial is not None and "real" in compared_examples:
            for side_name in ("members", "real"):
                examples = compared_examples[side_name]
                key = f"initial {side_name}"
                target_outputs[key] = signals(self.initial, examples=examples, inputs=inputs)
        return target_outputs

    def side(self, side_name: str, examples: Examples, model_outputs: Arrays) -> Side:
        """Put examples and what models say about them together."""
        initial_outputs = model_outputs.get(f"initial {side_name}")
        loss_decreases = {}
        target_signals = {}
        for target in self.models:
            outputs_of_target = model_outputs[f"target {target} {side_name}"]
            loss_decreases[target] = loss_decrease(outputs_of_target, initial_outputs)
            target_signals[target] = outputs_of_target[:, None]
        # Without a helper, the baseline sees no model.
        no_signals = next(iter(target_signals.values()))[:, :0]
        helper_signals = [no_signals]
        for index, _ in enumerate(self.options.helpers):
            outputs_of_helper = model_outputs[f"{helper_name(index)} {side_name}"]
            helper_signals.append(outputs_of_helper[:, None])
        return Side(
            examples=examples,
            helper=np.concatenate(helper_signals, axis=1),
            targets=target_signals,
            falls=loss_decreases,
        )

    def games(self, phases: Checkpoints, sides: Sides) -> Games:
        """Play the games of each seed, or take them from a run before."""
        games_played: Games = {}
        for seed in self.options.seeds:
            for nonmember_kind in self.nonmember_kinds:
                game = partial(self.play, seed, nonmember_kind, sides)
                outcome = phases.phase(f"game-{seed}-{nonmember_kind}", game)
                games_played[seed, nonmember_kind] = outcome
        return games_played

    def play(self, seed: int, nonmember_kind: NonMembers, sides: Sides) -> Arrays:
        """Play one game; how c grows is asked of generated non-members alone."""
        sizes: tuple[int, ...] = ()
        if nonmember_kind == "generated":
            sizes = self.sizes()
        nonmembers = sides[nonmember_kind]
        return play(
            members=sides["members"],
            nonmembers=nonmembers,
            parts=self.parts.within(len(nonmembers)),
            sizes=sizes,
            options=self.options,
            seed=seed,
            tick=self.tick,
        )

    def sizes(self) -> tuple[int, ...]:
        """Return the pairs that further baselines learn from."""
        training_pairs = self.parts.train
        smaller_sizes = set[int]()
        for training_share in self.options.saturation:
            size = max(LEAST, round(training_share * training_pairs))
            if size < training_pairs:
                smaller_sizes.add(size)
        return tuple(sorted(smaller_sizes))

    def report(
        self,
        games: Games,
        sides: Sides,
        model_outputs: Arrays,
    ) -> PanoramiaReport:
        """Audit every model in every way."""
        options = self.options
        scores = tuple(GameScores.of(*key, game, self.models) for key, game in games.items())
        generated_games = [games[seed, "generated"] for seed in options.seeds]
        learnings = []
        if options.conditional:
            learnings = self.learnings(generated_games, sides)
        rows = audit_all(scores, learnings=learnings, options=options)
        sizes = (*self.sizes(), self.parts.train)
        saturation = saturation_of(generated_games, sizes=sizes, options=options)
        return PanoramiaReport(
            rows=rows,
            saturation=saturation,
            seeds=options.seeds,
            sizes={"generator": self.generator_rows.size, **vars(self.parts)},
            options=self.words(),
            warnings=tuple(warnings_of(rows, saturation)),
            losses=tuple(losses_of(model_outputs, self.models)),
            scores=scores,
        )

    def learnings(self, games: Sequence[Arrays], sides: Sides) -> list[Learning]:
        """Return what is known of the audited examples of each game without a target."""
        table_of_members = sides["members"].table
        table_of_generated = sides["generated"].table
        learnings = []
        for game in games:
            member_rows = table_of_members[game["rows"]]
            generated_rows = table_of_generated[game["others"]]
            shown_rows = np.where(game["coins"][:, None], member_rows, generated_rows)
            learnings.append(shown_of(game, shown_rows, seed=self.options.seeds[0]))
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
    member_ids: AnyArray = np.arange(members)
    if ids is not None:
        member_ids = vector(ids, name="ids", kinds="biufSU")
    check_length(member_ids, examples=members, name="ids")
    check_ids(member_ids, np.ones(members, dtype=np.bool_))
    if generator_ids is not None:
        chosen_ids = vector(generator_ids, name="generator_ids", kinds="biufSU")
        unknown_ids = np.setdiff1d(chosen_ids, member_ids)
        if unknown_ids.size:
            raise OptionError(
                f"generator_ids has {unknown_ids[0]!r}, which is not the id of a member"
            )
        return np.flatnonzero(np.isin(member_ids, chosen_ids))
    if not hasattr(generator, "fit"):
        raise OptionError(
            "the generator is fitted already: pass generator_ids, ids of what it learnt from"
        )
    generator_share, *_ = options.shares
    parts = split_members(
        members,
        shares={"generator": generator_share, "audit": 1 - generator_share},
        documents=documents,
        seed=options.seeds[0],
    )
    return parts["generator"]


def _option_in_words(value: object) -> str:
    """Name an option by its value, without the place in memory that a repr may hold."""
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
