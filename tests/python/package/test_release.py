"""What a release rests on agrees with itself: workflows, versions."""

import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
GRANTS = {"contents": "read", "attestations": "write", "id-token": "write"}
"""The most that a job may do with the repository."""


def toml(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / name).read_text(encoding="utf-8"))


def workflow(path: Path) -> dict[Any, Any]:
    yaml = pytest.importorskip("ruamel.yaml")
    found: dict[Any, Any] = yaml.YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize(
    ("schema", "files"),
    [("github-workflows", WORKFLOWS), ("dependabot", [ROOT / ".github" / "dependabot.yml"])],
    ids=["workflows", "dependabot"],
)
def test_workflows_fit_their_schema(schema: str, files: list[Path]) -> None:
    pytest.importorskip("check_jsonschema")
    command = [sys.executable, "-m", "check_jsonschema", f"--builtin-schema=vendor.{schema}"]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_job_may_do_no_more_than_it_must_and_runs_what_is_there(path: Path) -> None:
    found = workflow(path)
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    assert found["permissions"] == {}
    for job in found["jobs"].values():
        assert job["permissions"].items() <= GRANTS.items()
        assert job["timeout-minutes"] < 360
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False
            line = step.get("run", "")
            assert "${{" not in line, "an expression in a script can be injected into"
            for word in line.split()[1:] if line.startswith("make ") else ():
                assert "=" in word or word in targets
            for script in re.findall(r"python (\S+\.py)(?:\s|$)", line):
                assert (ROOT / script).exists()


def test_python_versions_of_the_classifiers_are_tested() -> None:
    marked = {
        found[1]
        for text in toml("pyproject.toml")["project"]["classifiers"]
        if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text))
    }
    tested = workflow(ROOT / ".github" / "workflows" / "tests.yml")
    assert marked <= set(tested["jobs"]["python"]["strategy"]["matrix"]["python"])


def test_one_version() -> None:
    version = toml("Cargo.toml")["workspace"]["package"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert {
        crate["version"]
        for name, crate in toml("Cargo.toml")["workspace"]["dependencies"].items()
        if name.startswith("leakbound-")
    } == {version}


def test_actions_are_named_by_hash() -> None:
    """A tag is moved by whoever owns it; the hash of a commit is not."""
    files = [
        *WORKFLOWS,
        *(ROOT / ".github" / "actions").rglob("*.yml"),
        ROOT / "docs" / "audit.yml",
    ]
    used = [
        line.partition("uses:")[2].strip()
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
        if "uses:" in line
    ]
    others = [one for one in used if not one.startswith(("./", "OWNER/leakbound/"))]
    assert len(others) > 10
    assert [one for one in others if not re.search(r"@[0-9a-f]{40} # v\d+\.\d+", one)] == []


def test_packages_come_from_one_index() -> None:
    """Of two indices, either can offer a package of any name."""
    files = [ROOT / "Makefile", ROOT / ".ci" / "run", *WORKFLOWS]
    assert [file.name for file in files if "--extra-index-url" in file.read_text("utf-8")] == []


def test_workflows_install_fixed_versions() -> None:
    """By the constraints of this repository, or by hashes."""
    installs = [
        f"{path.name}: {line.strip()}"
        for path in WORKFLOWS
        for line in path.read_text(encoding="utf-8").splitlines()
        if "pip install" in line
    ]
    assert installs
    loose = [
        one
        for one in installs
        if "--constraint constraints.txt" not in one and "--require-hashes" not in one
    ]
    assert not loose


def test_an_address_is_all_that_links_and_hosted_notebooks_lack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs" / "_ext")
    addresses = importlib.import_module("addresses")
    assert (addresses.icons(""), addresses.notebooks("")) == ([], {})
    address = "https://code.example/owner/leakbound"
    assert addresses.icons(address)[0]["url"] == address
    binder = addresses.notebooks(address)["binder"]
    assert (binder["org"], binder["repo"]) == ("owner", "leakbound")
    assert Path(binder["dependencies"]).is_file()
    assert addresses.repository() == toml("pyproject.toml")["project"].get("urls", {}).get(
        "repository", ""
    )


LOCKS = sorted((ROOT / ".github").glob("*.txt"))


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_locks_have_a_hash_for_each_version_and_the_versions_of_the_tests(path: Path) -> None:
    pinned = dict(re.findall(r"^([a-z0-9._-]+)==([^ ;\\]+)", path.read_text("utf-8"), re.M))
    bare = [one for one in re.split(r"\n(?=\S)", path.read_text("utf-8")) if "--hash=" not in one]
    assert all(one.startswith("#") for one in bare)
    tested = re.findall(r"^([^#\s=]+)==(.+)$", (ROOT / "constraints.txt").read_text("utf-8"), re.M)
    names = {re.sub(r"[._-]+", "-", name.lower()): version for name, version in tested}
    assert pinned
    others = {
        name: version
        for name, version in pinned.items()
        if names.get(re.sub(r"[._-]+", "-", name), version) != version
    }
    assert others == {}


@pytest.mark.parametrize("name", ["docs", "wheels"])
def test_what_is_published_is_made_by_packages_named_by_hash(name: str) -> None:
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf-8")
    installs = [line.strip() for line in text.splitlines() if "pip install" in line]
    assert installs
    assert [one for one in installs if "--require-hashes" not in one] == []
