"""Sentences that keep which of their words name options and objects.

Python writes ``cuts=KLScan()``, the command line ``--cuts kl``. A message has such names as parts,
so that the command line spells each in its own way, and need not find them in a sentence.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Self, TypeAlias


class Option(NamedTuple):
    """An option and a value for it, as a part of a message."""

    name: str
    value: object

    def __str__(self) -> str:
        """Return the option as Python writes it."""
        if isinstance(self.value, type):
            return f"{self.name}={self.value.__name__}"
        return f"{self.name}={self.value!r}"


class Ways(NamedTuple):
    """What to do in Python, and on the command line, where these differ by more than names."""

    python: str
    shell: str

    def __str__(self) -> str:
        """Return what to do in Python."""
        return self.python


Part: TypeAlias = Option | Ways | str
"""An option with its value, two ways, or a name as Python writes it: ``Coins(member)``, ``k``."""
Spell: TypeAlias = Callable[[Part], str]
"""How a part is written."""


class Message(str):
    """A sentence with names of options and objects as parts: a text, as Python writes it.

    Parameters
    ----------
    template : str
        The sentence, as for `str.format`. A field without a value is itself a name:
        ``{Coins(member)}`` of an object; ``{copies}``, ``{ids=}`` or ``{copies=3}`` of an option.
    **values : object
        Values of the other fields. An `Option` is a part, as are `Ways`, and a message, or an error
        that has one, keeps its own.

    Examples
    --------
    >>> message = Message("{cuts} is not for {of}: use {Fixed}", of="zCDP", cuts=Option("cuts", 3))
    >>> message
    'cuts=3 is not for zCDP: use Fixed'
    >>> message.spelled(lambda part: f"<{part}>")
    '<cuts=3> is not for zCDP: use <Fixed>'
    """

    template: str
    values: Mapping[str, object]

    def __new__(cls, template: str, /, **values: object) -> Self:
        message = super().__new__(cls, _filled_template(template, values, spell=str))
        message.template = template
        message.values = values
        return message

    def __getnewargs_ex__(self) -> tuple[tuple[str], Mapping[str, object]]:
        """Return what makes the message, for pickles."""
        return (self.template,), self.values

    @classmethod
    def joined(cls, texts: Iterable[str]) -> Self:
        """Return texts one after the other, with the parts of those that have some."""
        values = {f"text{number}": text for number, text in enumerate(texts)}
        template = "; ".join(f"{{{name}}}" for name in values)
        return cls(template, **values)

    def spelled(self, spell: Spell) -> str:
        """Return the sentence with each part as `spell` writes it."""
        return _filled_template(self.template, self.values, spell=spell)


class _TemplateFields(dict[str, object]):
    """Values of a template, and the spelling of names that have none."""

    def __init__(self, values: Mapping[str, object], spell: Spell) -> None:
        spelled_values = {name: _spelled_value(value, spell) for name, value in values.items()}
        super().__init__(spelled_values)
        self._spell = spell

    def __missing__(self, name: str) -> str:
        return self._spell(name)


def _filled_template(template: str, values: Mapping[str, object], spell: Spell) -> str:
    """Return a template with its values, and its parts as they are spelled."""
    return template.format_map(_TemplateFields(values, spell))


def _spelled_value(value: object, spell: Spell) -> object:
    """Return the value of a field: an option or a message as it is spelled, or what it is."""
    if isinstance(value, Option | Ways):
        return spell(value)
    if isinstance(value, Message):
        return value.spelled(spell)
    if isinstance(value, BaseException) and value.args:
        return _spelled_value(value.args[0], spell)
    return value
