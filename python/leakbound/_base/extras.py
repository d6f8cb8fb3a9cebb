"""Optional dependencies, imported where they are used."""

from collections.abc import Iterator
from contextlib import contextmanager

from leakbound.errors import MissingExtraError


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Import in the block what an extra installs."""
    try:
        yield
    except ImportError as error:
        message = (
            f"{what} needs {error.name}, which is not installed: pip install 'leakbound[{extra}]'"
        )
        raise MissingExtraError(message) from error
