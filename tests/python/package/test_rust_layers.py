"""Rust files import each name from the file that defines it, and never in a circle."""

import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile
from pathlib import Path

import pytest

CRATES = sorted((Path(__file__).parents[3] / "rust").glob("*/src"))

COMMENT = re.compile(r"//.*")
INLINE_MODULE = re.compile(r"^(?:pub )?mod \w+ \{$.*?^\}$", re.MULTILINE | re.DOTALL)
CHILD = re.compile(r"^\s*(?:pub(?:\(\w+\))? )?mod (\w+);", re.MULTILINE)
USE = re.compile(r"\buse ([^;]+);")
DEFINITION = r"\b(?:fn|struct|enum|trait|type|const|static|macro_rules!) {}\b"

Module = tuple[str, ...]


def modules(source: Path) -> dict[Module, Path]:
    """The files of a crate by module path, the root's empty."""
    found: dict[Module, Path] = {}
    for path in sorted(source.rglob("*.rs")):
        parts = path.relative_to(source).with_suffix("").parts
        found[parts[:-1] if parts[-1] in {"lib", "mod"} else parts] = path
    return found


def leaves(tree: str) -> Iterator[list[str]]:
    """The paths of a `use` tree: a::{b, c::{d, e}} holds three."""
    head, brace, rest = tree.partition("{")
    prefix = [part.split()[0] for part in head.split("::") if part.strip() not in {"", "self"}]
    if not brace:
        yield prefix
        return
    depth, start = 0, 0
    inner = rest.rpartition("}")[0]
    for index, character in enumerate([*inner, ","]):
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            for leaf in leaves(inner[start:index]):
                yield prefix + leaf
            start = index + 1


def paths(text: str, module: Module, children: set[str]) -> Iterator[Module]:
    """Where the paths of a piece of code lead, those into the crate it belongs to."""
    local = "|".join([r"\$?crate", "super", *sorted(children)])
    inline = re.findall(rf"(?<![\w:])(?:{local})(?:::\w+)+", USE.sub("", text))
    imports = [leaf for tree in USE.findall(text) for leaf in leaves(tree)]
    for first, *rest in [*imports, *(path.split("::") for path in inline)]:
        if first in {"crate", "$crate"}:
            yield tuple(rest)
        elif first == "super":
            more = len(list(takewhile(lambda part: part == "super", rest)))
            yield (*module[: len(module) - 1 - more], *rest[more:])
        elif first in children:
            yield (*module, first, *rest)


def imports(module: Module, path: Path) -> Iterator[Module]:
    text = COMMENT.sub("", path.read_text(encoding="utf-8"))
    children = set(CHILD.findall(text))
    yield from paths(INLINE_MODULE.sub("", text), module, children)
    for inner in INLINE_MODULE.findall(text):
        yield from paths(inner, (*module, "inline"), children)


def defines(path: Path, name: str) -> bool:
    text = INLINE_MODULE.sub("", COMMENT.sub("", path.read_text(encoding="utf-8")))
    return re.search(DEFINITION.format(name), text) is not None


def is_face(path: Path) -> bool:
    return path.name in {"lib.rs", "mod.rs"}


def arrows(source: Path) -> Iterator[tuple[Module, Module, str]]:
    """File, file it imports from and what: an empty name stands for the module itself."""
    files = modules(source)
    for module, path in files.items():
        if is_face(path):
            continue
        for target in imports(module, path):
            depth = max(n for n in range(len(target) + 1) if target[:n] in files)
            name = target[depth] if depth < len(target) else ""
            if target[:depth] != module:
                yield module, target[:depth], name


def test_every_way_to_name_a_file_is_read() -> None:
    code = """
use crate::a::{B, c::{self, D as E}};
use super::super::f::G;
use std::fmt;
fn h() -> super::I { child::j(crate::k::l()) }
"""
    assert set(paths(code, ("x", "y", "z"), {"child"})) == {
        ("a", "B"),
        ("a", "c"),
        ("a", "c", "D"),
        ("x", "f", "G"),
        ("x", "y", "I"),
        ("x", "y", "z", "child", "j"),
        ("k", "l"),
    }


@pytest.mark.parametrize("source", CRATES, ids=lambda source: source.parent.name)
def test_names_come_from_the_file_that_defines_them(source: Path) -> None:
    files = modules(source)
    roundabout = {
        "::".join(module): "::".join((*target, name))
        for module, target, name in arrows(source)
        if is_face(files[target]) or (name and not defines(files[target], name))
    }
    assert roundabout == {}


@pytest.mark.parametrize("source", CRATES, ids=lambda source: source.parent.name)
def test_no_circle_of_files(source: Path) -> None:
    graph: dict[Module, set[Module]] = {}
    for module, target, _ in arrows(source):
        graph.setdefault(module, set()).add(target)
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" -> ".join("::".join(module) for module in error.args[1]))
    assert len(order) > 5


@pytest.mark.parametrize("source", CRATES, ids=lambda source: source.parent.name)
def test_faces_declare_and_export_only(source: Path) -> None:
    for path in source.rglob("*.rs"):
        assert not is_face(path) or not defines(path, r"\w+"), path
