"""The phases of a run: generate, train helpers, ask the targets, play the games, audit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from leakbound._base.checkpoints import Arrays, Checkpoints, digest
from leakbound._base.streams import Purpose
from leakbound._base.validation import check_ids, check_length, complement, vector
from leakbound.audits import audit_panoramia
from leakbound.audits.panoramia.conditional import PairAudit
from leakbound.claims import PureDP
from leakbound.cuts import CutPolicy, UnionBound
from leakbound.errors import IncompatibleOptionsError, LengthMismatchError, OptionError
from leakbound.generators import MemberSplit, check_duplicates
from leakbound.panoramia.examples import Examples, check_alike
from leakbound.panoramia.game import LEAST, Game, Parts, Side
from leakbound.panoramia.losses import fallen, helper_name, losses_of
from leakbound.panoramia.options import Helper, Trained, each_helper
from leakbound.panoramia.report import PanoramiaReport
from leakbound.panoramia.scores import (
    CORRECTIONS,
    Conditional,
    GameScores,
    shown_of,
    withheld_together,
)
from leakbound.panoramia.table import Audit, PanoramiaRow, Saturation, warnings_of
from leakbound.results import ZeroRunResult

if TYPE_CHECKING:
    from leakbound._base.types import ArrayInput, FloatArray, IntArray
    from leakbound.audits.panoramia.conditional import Shown
    from leakbound.panoramia.options import Target
    from leakbound.panoramia.settings import Settings
    from leakbound.panoramia.table import Result
    from leakbound.results import PanoramiaResult

Progress: TypeAlias = Callable[[str, float], None]
"""Called with what is being done and the share of the work done so far, from 0 to 1."""


class Ticks:
    """Counts steps and reports the share of them done."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def __call__(self, what: str) -> None:
        """Say that a step begins."""
        if self._progress is not None:
            self._progress(what, min(1.0, self._done / self._total))
        self._done += 1


@dataclass(frozen=True, eq=False)
class Run:
    """Options and data of a run, checked."""

    options: Settings
    targets: dict[str, Target]
    members: Examples
    nonmembers: Examples | None
    initial: Target | None
    teaching: IntArray
    ticks: Ticks

    @classmethod
    def of(
        cls,
        options: Settings,
        targets: dict[str, Target],
        members: Examples,
        nonmembers: Examples | None,
        initial: Target | None,
        ids: ArrayInput | None,
        documents: ArrayInput | None,
        generator_ids: ArrayInput | None,
        progress: Progress | None,
    ) -> Run:
        """Check what there is to check before hours of work."""
        if not targets:
            message = "target must be a model, or several by name, got none"
            raise OptionError(message)
        helpers = each_helper(options.helper)
        if nonmembers is None and any(helper.trained_on == "real" for helper in helpers):
            message = "a helper trained on real non-members needs some: pass nonmembers"
            raise IncompatibleOptionsError(message)
        check_alike(members, nonmembers)
        games = len(options.seeds) * (1 if nonmembers is None else 2) * (1 + len(targets))
        epochs = sum(helper.epochs for helper in helpers)
        steps = 2 + len(targets) + epochs + games + len(options.seeds) * len(options.saturation)
        run = cls(
            options,
            targets,
            members,
            nonmembers,
            initial,
            _teaching(options, len(members), ids, documents, generator_ids),
            Ticks(progress, steps),
        )
        for others in (run.audited.size, len(run.held_out or members)):
            run.parts.within(others).check()
        if run.helped_by("members") and run.teaching.size < LEAST:
            message = (
                f"a helper trained on members of the generator needs at least {LEAST} of them, got "
                f"{run.teaching.size}"
            )
            raise IncompatibleOptionsError(message)
        return run

    @property
    def audited(self) -> IntArray:
        """Rows of the members that did not train the generator."""
        return np.setdiff1d(np.arange(len(self.members)), self.teaching)

    @property
    def parts(self) -> Parts:
        """Sizes of the parts of a game."""
        options, left = self.options, self.audited.size
        whole = len(self.members)
        train, validation = (
            round(share * whole) for share in (options.train_share, options.validation_share)
        )
        return Parts(train, validation, left - train - validation)

    @property
    def held_out(self) -> Examples | None:
        """Non-members that did not train a helper."""
        if self.nonmembers is None or not self.helped_by("real"):
            return self.nonmembers
        return self.nonmembers.take(slice(len(self.nonmembers) // 2, None))

    def helped_by(self, examples: Trained) -> bool:
        """Tell whether a helper learns from such examples."""
        return any(one.trained_on == examples for one in each_helper(self.options.helper))

    def made_of(self) -> dict[str, str]:
        """Return what the outcome depends on, in words and digests."""
        from leakbound.panoramia.models.target import fingerprint

        others = self.nonmembers
        models = {**self.targets, "": self.initial}
        return {
            **{f.name: _words(getattr(self.options, f.name)) for f in fields(self.options)},
            "members": digest(self.members.x, self.members.y, self.teaching),
            "nonmembers": "none" if others is None else digest(others.x, others.y),
            "targets": " ".join(
                f"{name}:{fingerprint(model)}" for name, model in models.items() if model
            ),
        }

    def report(self, kept: Checkpoints) -> PanoramiaReport:
        """Go through all phases."""
        samples = _examples(kept.phase("generated", self._generate))
        pool = samples.take(slice(self.parts.all))
        sides = {"members": self.members.take(self.audited), "generated": pool}
        if self.held_out is not None:
            sides["nonmembers"] = self.held_out
        said: Arrays = {}
        for index, helper in enumerate(each_helper(self.options.helper)):
            said |= kept.phase(
                f"helper-{index}",
                lambda index=index, helper=helper: self._ask_helper(  # type: ignore[misc]
                    index, helper, samples, sides
                ),
            )
        said |= kept.phase("targets", lambda: self._ask_targets(sides))
        seen = {name: self._side(name, one, said) for name, one in sides.items()}
        games = [self._games(seed, seen, kept) for seed in self.options.seeds]
        return self._summary(games, seen, said)

    def _generate(self) -> Arrays:
        """Fit the generator, and draw what the audit and the helper need."""
        self.ticks("fitting the generator")
        generator, lesson = self.options.generator, self.members.take(self.teaching)
        fitted = generator.fit(lesson.x, lesson.y) if hasattr(generator, "fit") else generator
        helper = self.options.helper_examples or len(self.members)
        needed = self.parts.all + (helper if self.helped_by("generated") else 0)
        drawn = fitted.sample(
            needed, seed=Purpose.RUN_SAMPLES.derived(self.options.seeds[0], bits=32)
        )
        both = drawn.values if drawn.labels is None else (drawn.values, drawn.labels)
        samples = Examples.read(both, "the generator")
        check_alike(self.members, samples, "the generator's samples")
        if len(samples) != needed:
            message = f"the generator returned {len(samples)} samples and not {needed}"
            raise LengthMismatchError(message)
        check_duplicates(samples.x, self.members.x)
        return {"x": samples.x} | ({} if samples.y is None else {"y": samples.y})

    def _ask_helper(
        self, index: int, helper: Helper, samples: Examples, sides: Mapping[str, Examples]
    ) -> Arrays:
        """Train a helper, and ask it of every example."""
        from leakbound.panoramia.models import target as models

        inputs, target = self.options.inputs, next(iter(self.targets.values()))
        lesson = self._lesson(helper, samples)
        model = models.train(helper, target, lesson, inputs, index, self.ticks)
        return {
            f"{helper_name(index)} {name}": models.signals(model, one, inputs)
            for name, one in sides.items()
        }

    def _lesson(self, helper: Helper, samples: Examples) -> Examples:
        """Return what a helper learns from, in random order."""
        if helper.trained_on == "members":
            order = Purpose.HELPER_LESSON.rng(self.options.seeds[0]).permutation(self.teaching)
            return self.members.take(order)
        if helper.trained_on == "real" and self.nonmembers is not None:
            return self.nonmembers.take(slice(len(self.nonmembers) // 2))
        return samples.take(slice(self.parts.all, None))

    def _ask_targets(self, sides: Mapping[str, Examples]) -> Arrays:
        """Score every example with every target; those of O(1) with the untrained model too."""
        from leakbound.panoramia.models import target as models

        said: Arrays = {}
        for target, model in self.targets.items():
            self.ticks(f"asking {target}")
            for name, one in sides.items():
                said[f"target {target} {name}"] = models.signals(model, one, self.options.inputs)
        if self.initial is not None and "nonmembers" in sides:
            for name in ("members", "nonmembers"):
                said[f"initial {name}"] = models.signals(
                    self.initial, sides[name], self.options.inputs
                )
        return said

    def _side(self, name: str, examples: Examples, said: Arrays) -> Side:
        targets = {target: said[f"target {target} {name}"][:, None] for target in self.targets}
        first = next(iter(targets.values()))
        helpers = [
            said[f"{helper_name(index)} {name}"][:, None]
            for index in range(len(each_helper(self.options.helper)))
        ]
        return Side(examples, np.concatenate([first[:, :0], *helpers], axis=1), targets)

    def _games(self, seed: int, seen: Mapping[str, Side], kept: Checkpoints) -> dict[str, Arrays]:
        """Play against generated non-members, and against real ones where there are some."""
        played = {}
        for others in ("generated", "nonmembers"):
            if others not in seen:
                continue
            parts = self.parts.within(len(seen[others]))
            game = Game(
                self.options.attack,
                parts,
                self._sizes(parts) if others == "generated" else (),
                complement(self.options.confidence) / 2,
                self.options.cuts,
                seed,
            )
            played[others] = kept.phase(
                f"game-{seed}-{others}",
                lambda game=game, others=others: game.play(  # type: ignore[misc]
                    seen["members"], seen[others], self.ticks
                ),
            )
        return played

    def _sizes(self, parts: Parts) -> tuple[int, ...]:
        sizes = {max(LEAST, round(share * parts.train)) for share in self.options.saturation}
        return tuple(sorted(size for size in sizes if size < parts.train))

    def _summary(
        self, games: list[dict[str, Arrays]], seen: Mapping[str, Side], said: Arrays
    ) -> PanoramiaReport:
        scores = [
            {
                others: self._scores(seed, others, game, seen, said)
                for others, game in played.items()
            }
            for seed, played in zip(self.options.seeds, games, strict=True)
        ]
        rows = self._rows(scores, [self._shown(one, seen) for one in games], seen)
        saturation = self._saturation(games)
        parts = self.parts
        return PanoramiaReport(
            rows=rows,
            saturation=saturation,
            seeds=self.options.seeds,
            sizes={
                "generator": self.teaching.size,
                "train": parts.train,
                "validation": parts.validation,
                "test": parts.test,
            },
            options={f.name: _words(getattr(self.options, f.name)) for f in fields(self.options)},
            warnings=tuple(warnings_of(rows, saturation)),
            losses=tuple(losses_of(said, self.targets)),
            scores=tuple(game for scored in scores for game in scored.values()),
        )

    def _rows(
        self,
        scores: list[dict[str, GameScores]],
        shown: list[Shown | None],
        seen: Mapping[str, Side],
    ) -> tuple[PanoramiaRow, ...]:
        """Audit every target in every way."""
        rows = []
        for target in self.targets:
            for audit, result_of in self._audits(target, seen).items():
                results = tuple(map(result_of, scores, shown))
                if audit in CORRECTIONS:
                    results = withheld_together(
                        tuple(one for one in results if isinstance(one, ZeroRunResult))
                    )
                rows.append(PanoramiaRow(target=target, audit=audit, results=results))
        return tuple(rows)

    def _shown(self, played: dict[str, Arrays], seen: Mapping[str, Side]) -> Shown | None:
        """Return what is known of the audited examples without a target, for Zero-Run."""
        if not self.options.conditional:
            return None
        game = played["generated"]
        return shown_of(
            game,
            _visible(game, *(seen[name].table for name in ("members", "generated"))),
            seed=self.options.seeds[0],
        )

    def _scores(
        self, seed: int, others: str, game: Arrays, seen: Mapping[str, Side], said: Arrays
    ) -> GameScores:
        """Return coins and scores of a game, and for real non-members those of O(1)."""

        def by_loss(target: str) -> FloatArray:
            scores = [
                fallen(seen[name].targets[target][:, 0], said.get(f"initial {name}"))[game[rows]]
                for name, rows in (("members", "rows"), (others, "others"))
            ]
            return np.where(game["coins"], *scores)

        real = others == "nonmembers"
        return GameScores(
            seed,
            "real" if real else "generated",
            game["coins"],
            game["baseline"],
            {target: game[f"attack-{target}"] for target in self.targets},
            {target: by_loss(target) for target in self.targets} if real else {},
        )

    def _audits(
        self, target: str, seen: Mapping[str, Side]
    ) -> dict[Audit, Callable[[dict[str, GameScores], Shown | None], Result]]:
        confidence = self.options.confidence

        def compare(game: GameScores, cuts: CutPolicy = self.options.cuts) -> PanoramiaResult:
            return game.audit(target, confidence=confidence, cuts=cuts)

        def given_examples(game: GameScores, shown: Shown, name: Conditional) -> ZeroRunResult:
            audit = PairAudit.prepare(
                game.attacks[target], game.member, shown, confidence=confidence, seed=game.seed
            )
            return audit.bound(PureDP(), CORRECTIONS[name])

        audits: dict[Audit, Any] = {"PANORAMIA": lambda scores, _: compare(scores["generated"])}
        if self.options.union:
            audits["PANORAMIA, union"] = lambda scores, _: compare(
                scores["generated"], UnionBound()
            )
        if self.options.conditional:
            audits |= {
                name: lambda scores, shown, name=name: given_examples(
                    scores["generated"], shown, name
                )
                for name in CORRECTIONS
            }
        if "nonmembers" in seen:
            audits["RM;RN"] = lambda scores, _: compare(scores["nonmembers"])
            audits["O(1)"] = lambda scores, _: scores["nonmembers"].audit_losses(
                target, confidence=confidence
            )
        return audits

    def _saturation(self, games: list[dict[str, Arrays]]) -> Saturation:
        """Audit the further baselines as the baseline is."""
        sizes = self._sizes(self.parts)

        def c_lb(game: Arrays, key: str, seed: int) -> float:
            return audit_panoramia(
                game[key],
                game[key],
                game["coins"],
                confidence=self.options.confidence,
                cuts=self.options.cuts,
                seed=seed,
            ).c_lb

        return Saturation(
            2 * np.array([*sizes, self.parts.train], dtype=np.int64),
            tuple(
                np.array(
                    [
                        c_lb(played["generated"], key, seed)
                        for key in (*(f"baseline-{size}" for size in sizes), "baseline")
                    ]
                )
                for seed, played in zip(self.options.seeds, games, strict=True)
            ),
        )


def _visible(game: Arrays, members: FloatArray, others: FloatArray) -> FloatArray:
    """Return what the coins of a game show, of tables of both sides."""
    return np.where(game["coins"][:, None], members[game["rows"]], others[game["others"]])


def _examples(arrays: Arrays) -> Examples:
    return Examples(arrays["x"], arrays.get("y"))


def _teaching(
    options: Settings,
    members: int,
    ids: ArrayInput | None,
    documents: ArrayInput | None,
    generator_ids: ArrayInput | None,
) -> IntArray:
    """Return the rows of the members that train the generator."""
    labels = np.arange(members) if ids is None else vector(ids, "ids", kinds="biufSU")
    check_length(labels, members, "ids")
    check_ids(labels, np.ones(members, dtype=np.bool_))
    if generator_ids is not None:
        chosen = vector(generator_ids, "generator_ids", kinds="biufSU")
        unknown = np.setdiff1d(chosen, labels)
        if unknown.size:
            message = f"generator_ids names {unknown[0]!r}, which is no member's id"
            raise OptionError(message)
        return np.flatnonzero(np.isin(labels, chosen))
    if not hasattr(options.generator, "fit"):
        message = (
            "the generator is fitted already: pass generator_ids, the ids of the members that it "
            "was fitted to, so that they are not audited"
        )
        raise IncompatibleOptionsError(message)
    share = options.generator_share
    split = MemberSplit.create(
        members,
        shares={"generator": share, "audit": 1 - share},
        ids=labels,
        documents=documents,
        seed=options.seeds[0],
    )
    return split.positions("generator")


def _words(value: object) -> str:
    """Name an option by its value, without the place in memory that a repr may hold."""
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
