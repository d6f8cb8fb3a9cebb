"""Bundles are tested here, and the words of pages: figures are drawn in tests of reports."""

import shutil
from pathlib import Path

import pytest

from bundles import why, write
from leakbound.planning import Opening
from pages import undrawn

__all__ = ["undrawn"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Opening]:
    folder = tmp_path_factory.mktemp("bundles") / "bundle"
    _, opening = write(folder)
    assert why(folder, commitment=opening.commitment) == ""
    return folder, opening


@pytest.fixture
def bundle(whole: tuple[Path, Opening], tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole[0], tmp_path / "bundle"))
