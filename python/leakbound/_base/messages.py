"""Sentences about options and objects, and what to write in place of a wrong argument.

Python writes ``cuts=KLScan()``, the command line ``--cuts kl``. A message has such names as parts,
so that the command line spells each in its own way, and need not find them in a sentence.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter, signature
from typing import Any, NamedTuple, Self, TypeAlias, TypeVar

from leakbound.errors import InputTypeError


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


C = TypeVar("C", bound=Callable[..., object])
# How alike two names are, of which one was meant for the other.
_LEAST_SIMILARITY = 0.7

# What a number is meant as, where an option takes objects.
_OF_NUMBERS = {
    "claim": "ε is what is bounded, and result.check(epsilon={}) tests one",
    "cuts": "for a number of guesses write lb.cuts.Fixed({})",
}
# No larger number was meant as an ε or a number of guesses; the largest have no digits to show.
_MOST_MEANT = 10**12

TWO_PARTS = (
    "a of members and b of others: lb.audit(numpy.concatenate([a, b]), "
    "lb.{}(numpy.arange(len(a) + len(b)) < len(a)))"
)
"""How to pass scores of two parts, by the name of the design."""
_TESTED = "the result tests it, result.check({}=…)"
OF_CLAIMS = {
    "delta": "δ is part of the claim, claim=lb.ApproxDP(delta=…)",
    "epsilon": f"ε is what is bounded: {_TESTED.format('epsilon')}",
    "eps": f"ε is what is bounded: {_TESTED.format('epsilon')}",
    "mu": f"μ is bounded with claim=lb.GaussianDP(): {_TESTED.format('parameter')}",
    "rho": "rho is bounded with claim=lb.claims.ZeroConcentratedDP(): "
    f"{_TESTED.format('parameter')}",
    "noise_multiplier": "its inverse is bounded with claim=lb.SubsampledGaussianDP("
    f"sampling_rate=…, steps=…): {_TESTED.format('parameter')}",
    "family": "the family is the claim, such as claim=lb.GaussianDP()",
}
"""Hints for audits and plans that are given a part of a claim."""
OF_DESIGNS = {
    "member": "membership belongs to the design: lb.Coins(member), lb.RandomSplit(member), …",
    "groups": "groups belong to the design: lb.Coins(member, groups=…)",
    "strata": "strata belong to the design: lb.RandomSplit(member, strata=…)",
    "features": "features belong to the design: lb.RandomSplit(member, features=…), lb.ZeroRun(…)",
    "prior": "the prior belongs to the design: lb.Coins(member, prior=…)",
    "copies": "copies belong to the design: lb.Coins(member, copies=…)",
    "unit": "the unit belongs to the design: lb.Coins(member, unit=…)",
    "aggregate": "it belongs to the design, with groups: lb.Coins(member, groups=…, aggregate=…)",
    "attacks": "name attacks by their scores: lb.audit({'one': scores, 'other': …}, design)",
    "design": "say how members were chosen: lb.Coins(member), lb.RandomSplit(member), …",
}
"""Hints for an audit that is given a part of its design, or none."""
OF_AUDITS = {
    name: f"it belongs to lb.audit: lb.audit(scores, design, {name}=…)"
    for name in ("by", "claim", "confidence", "cuts", "ids", "seed", "sides")
} | {
    "delta": "δ is part of the claim: lb.audit(scores, design, claim=lb.ApproxDP(delta=…))",
    "epsilon": "ε is what is bounded: lb.audit(scores, design).check(epsilon=…)",
    "scores": "scores belong to lb.audit: lb.audit(scores, design)",
    "features": "they belong to lb.RandomSplit, lb.ZeroRun and lb.Panoramia",
    "strata": "they belong to lb.RandomSplit(member, strata=…)",
    "groups": "they belong to lb.Coins and lb.RandomSplit",
    "prior": "it belongs to lb.Coins(member, prior=…)",
    "propensity": "it belongs to lb.ZeroRun(member, propensity)",
    "baseline": "it belongs to lb.Panoramia(member, baseline=…)",
}
"""Hints for designs that are given a part of the audit, or of another design."""
OF_FAMILIES = {
    "epsilon": "a claim has no ε, which is what is bounded: result.check(epsilon=…) tests one",
    "mu": "a claim has no μ, which is what is bounded: result.check(parameter=μ) tests one",
    "rho": "a claim has no rho, which is what is bounded: result.check(parameter=rho) tests one",
    "noise_multiplier": "a claim has no noise multiplier, whose inverse is what is bounded: "
    "result.check(parameter=1 / noise_multiplier) tests one",
    "delta": "write lb.ApproxDP(delta=…)",
}
"""Hints for claims that are given the parameter, which the audit bounds."""
OF_PARAMETERS = {
    "mu": "μ is the parameter of lb.GaussianDP(): audit with that claim, then check(parameter=μ)",
    "rho": "rho is the parameter of lb.claims.ZeroConcentratedDP(): audit with that claim, then "
    "check(parameter=rho)",
    "noise_multiplier": "its inverse is the parameter of lb.SubsampledGaussianDP(…): audit with "
    "that claim, then check(parameter=1 / noise_multiplier)",
    "claim": "a result has one claim: audit again with a different one",
    "confidence": "a result has one confidence: audit again with a different one",
}
"""Hints for checks that are given a parameter of another claim."""
# Other words for options, where a call has them.
_SYNONYMS = {
    "alpha": "confidence=1 - alpha",
    "level": "confidence=1 - level",
    "significance": "confidence=1 - significance",
    "eps": "epsilon",
    "random_state": "seed",
    "rng": "seed",
    "stratify": "strata",
    "threshold": "cuts",
    "thresholds": "cuts",
    "subgroups": "by",
    "users": "groups",
    "weights": "prior",
    "probability": "prior",
}


def hinted(*, positional: str = "", **elsewhere: str) -> Callable[[C], C]:
    """Say what to write where a function, or a class, is called with arguments that it lacks.

    Python's own error is raised, with a hint after its message: what `elsewhere` has for a keyword
    that belongs to another object, or is missing, else an option of a close name, or all options.
    `positional` is for values that need a name. Signatures stay as they are.
    """
    return _Hints(positional=positional, one_array=False, elsewhere=elsewhere).decorated


def hinted_of_one_array(**elsewhere: str) -> Callable[[C], C]:
    """Do as `hinted`, and refuse a second array of a design that takes membership alone."""
    return _Hints(positional="", one_array=True, elsewhere=elsewhere).decorated


@dataclass(frozen=True)
class _Hints:
    """What to write in place of arguments that a call does not take: see `hinted`.

    With `one_array`, several arrays of a design raise InputTypeError.
    """

    positional: str
    one_array: bool
    elsewhere: Mapping[str, str]

    def decorated(self, function_or_class: C) -> C:
        """Return a function, or a class with its constructor, whose errors have hints."""
        if not isinstance(function_or_class, type):
            return self._with_hints(function_or_class)
        constructor: Callable[..., None] = vars(function_or_class)["__init__"]
        setattr(function_or_class, "__init__", self._with_hints(constructor))  # noqa: B010 (mypy)
        return function_or_class

    def _with_hints(self, function: C) -> C:
        """Return a function whose errors of arguments say what to write."""

        @wraps(function)
        def function_with_hints(*values: object, **options: object) -> object:
            try:
                return function(*values, **options)
            except TypeError as error:
                self.add_to(error, function, values, options)
                raise

        wrapper: Any = function_with_hints
        wrapped: C = wrapper
        return wrapped

    def add_to(
        self,
        error: TypeError,
        function: Callable[..., object],
        values: tuple[object, ...],
        options: Mapping[str, object],
    ) -> None:
        """Put a hint after the message of an error, if the call does not take its arguments."""
        arrays = len(values) - 1  # the first is the design itself
        if self.one_array and arrays > 1:
            design = type(values[0]).__name__
            raise InputTypeError(
                f"{design} takes one array, which examples were members, and named options, got "
                f"{arrays}: if these are scores of two parts, {TWO_PARTS.format(design)}"
            ) from None
        hint = self.hint(function, values, options)
        if hint:
            error.args = (f"{error}: {hint}",)

    def hint(
        self,
        function: Callable[..., object],
        values: tuple[object, ...],
        options: Mapping[str, object],
    ) -> str:
        """Return what to write in place of arguments; nothing where the call takes them."""
        function_signature = signature(function)
        named_kinds = {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}
        option_names = list[str]()
        for name, parameter in function_signature.parameters.items():
            if name != "self" and parameter.kind in named_kinds:
                option_names.append(name)
        try:
            bound_arguments = function_signature.bind_partial(*values, **options).arguments
        except TypeError:
            unknown_names = [name for name in options if name not in option_names]
            if not unknown_names:
                return self.positional or f"give options by name: {_listed_options(option_names)}"
            unknown = unknown_names[0]
            return self.elsewhere.get(unknown) or self._of_close_name(unknown, option_names)
        # What is missing; if nothing is, the error came from within.
        for name in option_names:
            is_required = function_signature.parameters[name].default is Parameter.empty
            if is_required and name not in bound_arguments:
                return self.elsewhere.get(name, "")
        return ""

    def _of_close_name(self, unknown: str, option_names: list[str]) -> str:
        """Return which option was meant, or which there are."""
        synonym = _SYNONYMS.get(unknown, "")
        option, _, _ = synonym.partition("=")
        if option in option_names:
            if "=" not in synonym:
                synonym += "=…"
            return f"write {synonym}"
        known_names = [*option_names, *self.elsewhere]
        close_names = get_close_matches(unknown, known_names, n=1, cutoff=_LEAST_SIMILARITY)
        if not close_names:
            return f"its options are {_listed_options(option_names)}"
        closest = close_names[0]
        if closest in option_names:
            return f"did you mean {closest}=…?"
        return f"if {closest} is meant, {self.elsewhere[closest]}"


def _listed_options(option_names: list[str]) -> str:
    """Return options as a message lists them."""
    return ", ".join(f"{name}=" for name in option_names)


def object_in_place_of(value: object, name: str, classes: tuple[type, ...]) -> str:
    """Say what to write in place of a class, a number, or a word that begins as a class does."""
    if isinstance(value, type):
        return ": call it"
    if name in _OF_NUMBERS and _may_be_epsilon_or_guesses(value):
        return f": {_OF_NUMBERS[name].format(value)}"
    if isinstance(value, str) and value:
        beginning = value.lower()
        for allowed in classes:
            if allowed.__name__.lower().startswith(beginning):
                return f": write {allowed.__name__}(...)"
    return ""


def _may_be_epsilon_or_guesses(value: object) -> bool:
    """Return whether a value is a number that can be an ε, or a number of guesses."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 < value < _MOST_MEANT
