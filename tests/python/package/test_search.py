"""What people search for on the site leads to the page that answers."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
ASKED = {
    "sklearn": "audits/random-split",
    "lightgbm": "audits/random-split",
    "huggingface": "tutorials/fine_tune",
    "llm": "tutorials/fine_tune",
    "mlflow": "guides/comparing",
    "epsilon": "guides/claims-and-thresholds",
    "federated": "pitfalls",
    "canary": "audits/canaries",
}
SPHINX = importlib.util.find_spec("sphinx") is not None


def terms() -> dict[str, tuple[str, ...]]:
    """Return the words of each page."""
    place = ROOT / "docs" / "_ext" / "search_terms.py"
    spec = importlib.util.spec_from_file_location("search_terms", place)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, tuple[str, ...]] = module.TERMS
    return found


def test_each_word_leads_to_one_page_which_exists() -> None:
    listed = [(word, page) for page, words in terms().items() for word in words]
    assert len({word for word, _ in listed}) == len(listed)
    assert dict(listed).items() >= ASKED.items()
    docs = ROOT / "docs"
    for page in terms():
        example = docs / "examples" / f"{page}.py"
        assert (docs / f"{page}.md").exists() or example.exists(), page


@pytest.mark.skipif(not SPHINX, reason="needs sphinx")
def test_the_index_of_the_search_has_them_as_main_entries(tmp_path: Path) -> None:
    from sphinx.application import Sphinx

    source = tmp_path / "docs"
    for page in ("index", *terms()):
        path = source / f"{page}.rst"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f":orphan:\n\n{page}\n{'=' * len(page)}\n\nText.\n", encoding="utf-8")
    out = tmp_path / "out"
    import sys

    sys.path.insert(0, str(ROOT / "docs" / "_ext"))
    try:
        config = {"extensions": ["search_terms"]}
        app = Sphinx(source, None, out, tmp_path / "trees", "html", config, status=None)
        app.build()
    finally:
        sys.path.remove(str(ROOT / "docs" / "_ext"))
    text = (out / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(re.sub(r"^Search\.setIndex\(|\)\s*;?\s*$", "", text))
    for word, page in ASKED.items():
        places = index["indexentries"][word]
        assert [(index["docnames"][number], main) for number, _, main in places] == [(page, True)]
