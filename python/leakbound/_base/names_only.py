"""Arguments that go by name: whoever leaves the name out is told how to write it."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from leakbound._base.scalars import shown
from leakbound.errors import OptionTypeError

__all__ = ["names_only"]

F = TypeVar("F", bound=Callable[..., Any])


def names_only(*names: str) -> Callable[[F], F]:
    """Have a method, or a class, say which of its names an argument without one was meant for."""

    def decorate(called: F) -> F:
        if isinstance(called, type):
            constructor = refusing(called.__init__, called.__name__)  # type: ignore[misc]
            called.__init__ = constructor  # type: ignore[misc]
            return called
        return cast("F", refusing(called, called.__name__))

    def refusing(method: Any, title: str) -> Any:
        @wraps(method)
        def call(self: object, *unnamed: object, **named: object) -> object:
            if unnamed:
                pairs = zip(names, unnamed, strict=False)
                written = ", ".join(f"{name}={shown(value)}" for name, value in pairs)
                message = f"{title} takes its arguments by name: write {title}({written})"
                raise OptionTypeError(message)
            return method(self, **named)

        return call

    return decorate
