"""`python -m leakbound` is the command line."""

import sys

from leakbound.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # `python -m` searches the working folder first: a file there must not replace a package.
        del sys.path[0]
    main()
