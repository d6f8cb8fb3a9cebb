"""The examples in the README, on the first page and in guides run, and give what they say.

Those in docstrings are tests of their own: pytest collects them from the package.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PRINTING = ["README.md", "docs/index.md", "docs/theory/poisson-binomial.md"]
GUIDES = (
    "theory/benchmark",
    *(f"guides/{name}" for name in ("a-billion-scores", "from-a-file", "planning")),
)
RUNNING = [f"docs/{name}.md" for name in GUIDES]


@pytest.mark.parametrize("page", [*PRINTING, *RUNNING])
def test_examples_run_and_print_what_pages_say(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    printed = r"\n+^```text\n(.*?)^```" if page in PRINTING else "()"
    examples = re.findall(rf"^```python\n(.*?)^```{printed}", text, re.M | re.S)
    assert examples, f"{page} has no example"
    names: dict[str, object] = {"__name__": "page"}
    for source, output in examples:
        exec(compile(source, page, "exec"), names)
        assert capsys.readouterr().out == output or page in RUNNING
