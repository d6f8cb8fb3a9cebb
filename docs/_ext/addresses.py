"""Links to the repository and hosted notebooks, which pages have once it has an address."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]


def repository() -> str:
    """Return the address of the repository in `pyproject.toml`, or nothing before a release."""
    settings = DOCS.parent / "pyproject.toml"
    project = tomllib.loads(settings.read_text(encoding="utf-8"))["project"]
    urls = project.get("urls", {})
    return str(urls.get("repository", ""))


def icons(address: str) -> list[dict[str, str]]:
    """Return the link to the repository for the header of each page."""
    if not address:
        return []
    return [{"name": "Source", "url": address, "icon": "fa-brands fa-github"}]


def notebooks(address: str) -> dict[str, Any]:
    """Return the setting of sphinx-gallery that gives each tutorial a button of Binder."""
    if not address:
        return {}
    *_, owner, name = address.rstrip("/").split("/")
    binder = {
        "org": owner,
        "repo": name,
        "branch": "main",
        "binderhub_url": "https://mybinder.org",
        "dependencies": str(DOCS / "hosted" / "environment.yml"),
        "use_jupyter_lab": True,
    }
    return {"binder": binder}
