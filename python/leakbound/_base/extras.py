"""Optional dependencies, imported where they are used."""

from collections.abc import Iterator
from contextlib import contextmanager

from leakbound.errors import MissingExtraError

__all__ = ["needs"]


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Import in the block what an extra installs.

    Parameters
    ----------
    extra : str
        The extra.
    what : str
        What needs it, for the message.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    MissingExtraError
        If an import in the block fails.
    """
    try:
        yield
    except ImportError as error:
        message = (
            f"{what} needs {error.name}, which is not installed: pip install 'leakbound[{extra}]'"
        )
        raise MissingExtraError(message) from error
