"""Splits by the name of what made them: which are random, and what an audit of each needs."""

from __future__ import annotations

from dataclasses import dataclass

from leakbound.errors import IncompatibleOptionsError, OptionError

__all__ = ["SPLITS", "check_split"]


@dataclass(frozen=True)
class _Splitter:
    """What made a split: the column that an audit of it needs, or why it is not random."""

    needs: str = ""
    flaw: str = ""


_SHUFFLE = "it takes rows in the order of storage: shuffle=True makes it random"
_SPLITTERS = {
    "random": _Splitter(),
    "train_test_split": _Splitter(),
    "train_test_split:stratify": _Splitter(needs="strata"),
    "KFold:shuffle": _Splitter(),
    "StratifiedKFold:shuffle": _Splitter(needs="strata"),
    "GroupShuffleSplit": _Splitter(needs="groups"),
    "KFold": _Splitter(flaw=_SHUFFLE),
    "StratifiedKFold": _Splitter(flaw=_SHUFFLE),
    "GroupKFold": _Splitter(flaw="it fills folds by the sizes of groups, in a fixed order"),
    "TimeSeriesSplit": _Splitter(flaw="time decides who is a member"),
    "time": _Splitter(flaw="time decides who is a member"),
    "site": _Splitter(flaw="where an example comes from decides who is a member"),
    "hash": _Splitter(flaw="a feature of the example decides who is a member"),
    "row-share": _Splitter(
        flaw="groups that are added until a share of the rows is reached depend on their sizes"
    ),
    "cleaned": _Splitter(flaw="what was held out was cleaned by a comparison with what was not"),
}
SPLITS = ", ".join(name for name, one in _SPLITTERS.items() if not one.flaw)
"""The names of splits that are audited."""


def check_split(name: str, *, strata: str, groups: str) -> None:
    """Raise where a split is not random, or lacks the column that an audit of it needs."""
    splitter = _SPLITTERS.get(name)
    if splitter is None:
        message = f"--split must be one of {', '.join(_SPLITTERS)}; got {name!r}"
        raise OptionError(message)
    if splitter.flaw:
        message = (
            f"--split {name} is not a random split: {splitter.flaw}. Members then differ from the "
            "others whatever was trained: use leakbound zero-run, which corrects for that"
        )
        raise IncompatibleOptionsError(message)
    given = {"strata": strata, "groups": groups}
    if splitter.needs and not given[splitter.needs]:
        message = f"--split {name} needs --{splitter.needs} COL, what the split was made by"
        raise IncompatibleOptionsError(message)
