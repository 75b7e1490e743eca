# make run      install into .venv, then the whole loop on this machine, no key and no GPU
# make test     the whole suite
# make check    what every change must pass, in seconds
# make fix      repair what tools can repair

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# torch first and pinned: the libraries above it then build on the version that was tested.
TORCH := torch==2.13.0

.PHONY: venv run test check fix clean
venv: $(STAMP)

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python -m pip install --quiet --editable '.[dev,grpo]'
	touch $@

run: venv
	$(BIN)/wer run --env bfcl --backend grpo --preset cpu

test: venv
	$(BIN)/pytest $(if $(MARKS),-m "$(MARKS)")

check: venv
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -m "not docker and not llm and not slow"

fix: venv
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf .venv dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
