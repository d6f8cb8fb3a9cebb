"""Install what is to be published, as a stranger would, and try it: `make dist` runs this.

A wheel is installed with no Rust on the path, a source distribution with it, each in an empty
virtual environment. Then examples of a guide print what it says, the command line
audits a file in every layout that the documentation names, or says which extra reads it, the smoke
tests pass, and with the extras of the README's install line a wheel runs what the README shows and
tutorials, all from outside the checkout.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SMOKE = (
    "tests/python/package/test_public_api.py",
    "tests/python/package/test_lazy_attributes.py",
    "tests/python/audits/test_one_run.py",
    "tests/python/claims/test_claims.py",
    "tests/python/cuts",
)
"""Tests that need nothing but the package, pytest and hypothesis."""
TUTORIALS = ("benchmark", "panoramia", "zero_run")
"""Those that audit files of `leakbound.datasets`."""


@dataclass(frozen=True)
class Installed:
    """A virtual environment with the package in it, and a folder to work in."""

    folder: Path
    environment: dict[str, str]
    pip: list[str]

    def run(self, program: str, *arguments: object, code: int = 0) -> str:
        """Run a program of the environment and return what it prints."""
        place = self.folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
        done = subprocess.run(
            [place / program, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode != code:
            ended = f"{program} {arguments} ended with {done.returncode}:\n"
            sys.exit(ended + done.stdout + done.stderr)
        return done.stdout


def main() -> None:
    """Try each file of the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="Where the wheel and the source are.")
    parser.add_argument("--unpinned", action="store_true", help="Take the newest dependencies.")
    options = parser.parse_args()
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if not options.unpinned:
        pip.append(f"--constraint={ROOT / 'constraints.txt'}")
    files = sorted(options.folder.glob("leakbound-*"))
    for file in files:
        with tempfile.TemporaryDirectory() as folder:
            installed = install(file.resolve(), Path(folder).resolve(), pip)
            for check in (is_elsewhere, runs_the_example, audits_a_file, audits_layouts):
                check(installed)
            passes_smoke_tests(installed)
            if file.suffix == ".whl":
                lists_its_crates(file)
                installed.run("python", *pip, f"{file.resolve()}[io]")
                audits_layouts(installed)
                runs_the_readme(installed, file.resolve())
                runs_tutorials(installed)
        sys.stdout.write(f"{file.name}: installed and tried\n")
    if not files:
        sys.exit(f"nothing to try in {options.folder}")


def install(file: Path, folder: Path, pip: list[str]) -> Installed:
    """Install a file into an empty environment, a wheel without Rust."""
    unwanted = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    environment = {name: text for name, text in os.environ.items() if name not in unwanted}
    environment |= {"PYTHONUTF8": "1", "COLUMNS": "80", "MPLBACKEND": "agg"}
    if file.suffix == ".whl":
        environment["PATH"] = without("cargo", without("rustc", environment["PATH"]))
        for program in ("cargo", "rustc"):
            if shutil.which(program, path=environment["PATH"]):
                sys.exit(f"{program} is on the path")
    venv.create(folder / "environment", with_pip=True)
    installed = Installed(folder, environment, pip)
    installed.run("python", *pip, file)
    return installed


def without(program: str, path: str) -> str:
    """Return the folders of a path that do not have a program."""
    folders = [one for one in path.split(os.pathsep) if not shutil.which(program, path=one)]
    return os.pathsep.join(folders)


def is_elsewhere(installed: Installed) -> None:
    """What is tried is what was installed, not the checkout."""
    where = installed.run("python", "-c", "import leakbound; print(leakbound.__file__)")
    if installed.folder.resolve() not in Path(where.strip()).resolve().parents:
        sys.exit(where)


def runs_the_example(installed: Installed) -> None:
    """Examples of the guide to files, which need NumPy alone, print what it says."""
    text = (ROOT / "docs" / "guides" / "from-a-file.md").read_text(encoding="utf-8")
    examples, output = (
        "".join(re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)) for kind in ("python", "text")
    )
    printed = installed.run("python", "-c", examples)
    if not output or printed != output:
        sys.exit(f"examples of the guide to files print\n{printed}")


def lists_its_crates(wheel: Path) -> None:
    """The wheel has a bill of materials, of crates as `Cargo.lock` has them, ours among them."""
    with zipfile.ZipFile(wheel) as archive:
        bills = [name for name in archive.namelist() if re.search(r"/sboms/.*cyclonedx", name)]
        if len(bills) != 1:
            sys.exit(f"{wheel.name} has {len(bills)} bills of materials, and needs one")
        bill = json.loads(archive.read(bills[0]))
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))
    locked = {(one["name"], one["version"]) for one in lock["package"]}
    listed = {(one["name"], one["version"]) for one in bill["components"]}
    lacking = {"leakbound-core", "leakbound-math", "pyo3"} - {name for name, _ in listed}
    if lacking or not listed <= locked:
        sys.exit(f"{bills[0]} lacks {sorted(lacking)} and has {sorted(listed - locked)}")


def audits_a_file(installed: Installed) -> None:
    """The command line answers a claim about a table of scores, with its exit code."""
    made = "import numpy as np; rng = np.random.default_rng(0); member = rng.random(1000) < 0.5; "
    made += "np.savez('scores.npz', score=rng.normal(2.0 * member), member=member)"
    installed.run("python", "-c", made)
    installed.run("leakbound", "--help")
    installed.run("leakbound", "coins", "scores.npz", "--claim", "eps=1", code=1)
    printed = installed.run("leakbound", "coins", "scores.npz", "--claim", "eps=100", code=3)
    if "lower bound" not in printed:
        sys.exit(printed)


def audits_layouts(installed: Installed) -> None:
    """The same scores give the same bound from every kind of file that packages at hand read."""
    with tempfile.TemporaryDirectory(dir=installed.folder) as folder:
        script = shutil.copy(ROOT / "tests/distribution/audit_layouts.py", folder)
        sys.stdout.write(installed.run("python", script, folder))


def runs_the_readme(installed: Installed, wheel: Path) -> None:
    """What the README shows runs with what its install line brings."""
    page = ROOT / "README.md"
    line = re.search(r'pip install "\.(\[[\w,]+\])"', page.read_text(encoding="utf-8"))
    if line is None:
        sys.exit("the README has no install line")
    installed.run("python", *installed.pip, f"{wheel}{line[1]}")
    with tempfile.TemporaryDirectory(dir=installed.folder) as folder:
        script = shutil.copy(ROOT / "tests/distribution/readme_commands.py", folder)
        sys.stdout.write(installed.run("python", script, page, folder))


def runs_tutorials(installed: Installed) -> None:
    """Tutorials run once downloaded, with the data that the wheel brings."""
    for name in TUTORIALS:
        shutil.copy(ROOT / "docs" / "examples" / "tutorials" / f"{name}.py", installed.folder)
        installed.run("python", f"{name}.py")


def passes_smoke_tests(installed: Installed) -> None:
    """The tests that need nothing but the package pass from outside the checkout."""
    installed.run("python", *installed.pip, "pytest", "hypothesis")
    shutil.copytree(
        ROOT / "tests", installed.folder / "tests", ignore=shutil.ignore_patterns("__*")
    )
    options = ["--quiet", "--import-mode=importlib", "--override-ini=pythonpath=tests/support"]
    installed.run("python", "-m", "pytest", *options, *SMOKE)


if __name__ == "__main__":
    main()
