"""Names that are imported when they are first asked for, and packages that extras install.

What a program does not use, it does not load: importing the package costs little, and optional
dependencies are imported where they are needed.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TypeAlias

from leakbound.errors import MissingExtraError

Get: TypeAlias = Callable[[str], object]
Dir: TypeAlias = Callable[[], list[str]]
_PROVIDERS: dict[str, str] = {}


def lazy_attributes(package: str, file: str) -> tuple[Get, Dir, list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose names live elsewhere.

    Its stub, next to its file, lists them for type checkers too: ``from module import name as
    name``. Those of the package itself are its submodules, which `__all__` leaves out: some need
    an extra.
    """
    stub = Path(file).with_suffix(".pyi").read_text(encoding="utf-8")
    module_of_name = dict[str, str]()
    for module_name, name in re.findall(r"from (\S+) import [(\s]*(\w+) as", stub):
        module_of_name[name] = module_name

    def get_attribute(name: str) -> object:
        if name not in module_of_name:
            message = f"module {package!r} has no attribute {name!r}"
            subpackage = _subpackage_with(name, Path(file).parent)
            if subpackage:
                message += f": it is {package}.{subpackage}.{name}"
            raise AttributeError(message, name=name, obj=sys.modules[package])
        module_name = module_of_name[name]
        if module_name != package:
            attribute = getattr(import_module(module_name), name)
            setattr(sys.modules[package], name, attribute)
            return attribute
        try:
            return import_module(f"{package}.{name}")
        except MissingExtraError as error:
            raise AttributeError(str(error)) from error

    def names_of_attributes() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of_name})

    public_names = [name for name in module_of_name if module_of_name[name] != package]
    return get_attribute, names_of_attributes, sorted(public_names)


def _subpackage_with(name: str, folder: Path) -> str:
    """Return the first package in a folder whose stub lists a name; "" if there is none."""
    if name.startswith("_"):  # asked for by tools, about any object
        return ""
    import_of_name = re.compile(rf"import [(\s]*{re.escape(name)} as")
    for stub_file in sorted(folder.glob("*/__init__.pyi")):
        if import_of_name.search(stub_file.read_text(encoding="utf-8")):
            return stub_file.parent.name
    return ""


def provide(name: str, module: str) -> None:
    """Say which module has the function that lower rooms ask for by `provided`."""
    _PROVIDERS[name] = module


def provided(name: str) -> Callable[..., None]:
    """Import the function of this name from the module that provides it."""
    function: Callable[..., None] = getattr(import_module(_PROVIDERS[name]), name)
    return function


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Import in the block what an extra installs."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(
            f"{what} needs {error.name}, which is not installed: pip install 'leakbound[{extra}]'"
        ) from error


@contextmanager
def working_folder_last() -> Iterator[None]:
    """Let the block import from the working folder what is not installed, and nothing else.

    A file there could otherwise take the place of any package that is imported later.
    """
    if "" in sys.path:  # an interactive session, where the folder is searched anyway
        yield
        return
    sys.path.append("")
    try:
        yield
    finally:
        with suppress(ValueError):
            sys.path.remove("")
