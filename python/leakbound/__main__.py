"""`python -m leakbound` is the command line."""

from leakbound.cli import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
