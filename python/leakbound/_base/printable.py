"""Text of others, so that a terminal prints it and does nothing else."""

_LONGEST = 2000
"""Characters of one line."""


def printable(text: str, *, lines: bool = False) -> str:
    r"""Return text with escapes in place of what is no character to see.

    Escaped are control characters (which move the cursor, rename the window or erase what a
    terminal shows), marks that turn the direction of writing, other invisible ones, halves of
    surrogate pairs, and separators of lines; line feeds too, unless `lines`.

    Examples
    --------
    >>> printable("a\x1b[2J\u202eb\n"), printable("μ ≥ 1\n", lines=True)
    ('a\\x1b[2J\\u202eb\\n', 'μ ≥ 1\n')
    """
    if lines:
        return "\n".join(map(printable, text.split("\n")))
    if not text.isprintable():
        text = "".join(one if one.isprintable() or one == "\xa0" else _escaped(one) for one in text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _escaped(one: str) -> str:
    return ascii(one)[1:-1]
