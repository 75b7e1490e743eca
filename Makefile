# make run      install into .venv, then the whole loop on this machine, no key and no GPU
# make test     the whole suite
# make check    what every change must pass, in about four minutes
# make bench    what WER costs, beside its peers: figures.json (docs/benchmarks.md)
# make docs     the documentation as a site, in site/
# make fix      repair what tools can repair
# make openrlhf-cpu   what the tests of the openrlhf backend run: OpenRLHF on a CPU, in a Python of its own

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# torch first and pinned: the libraries above it then build on the version that was tested.
TORCH := torch==2.13.0

# 4 GB; set WER_OPENRLHF_PYTHON to use an environment that you built yourself.
OPENRLHF_VENV ?= .venv-openrlhf
OPENRLHF_STAMP := $(OPENRLHF_VENV)/.installed
OPENRLHF_PINS := tests/support/openrlhf_cpu/requirements.txt

.PHONY: venv run test check bench docs fix clean openrlhf-cpu
venv: $(STAMP)

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet "$(TORCH)"
	$(BIN)/python -m pip install --quiet --editable '.[dev,grpo]'
	touch $@

openrlhf-cpu: $(if $(WER_OPENRLHF_PYTHON),,$(OPENRLHF_STAMP))

# vLLM's wheel brings a torchvision that this transformers cannot import; DeepSpeed's own ops
# would be compiled for CUDA, and its build needs the environment's torch.
$(OPENRLHF_STAMP): $(OPENRLHF_PINS)
	rm -rf $(OPENRLHF_VENV)
	$(PYTHON) -m venv $(OPENRLHF_VENV)
	$(OPENRLHF_VENV)/bin/python -m pip install --quiet --requirement $(OPENRLHF_PINS)
	$(OPENRLHF_VENV)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	DS_BUILD_OPS=0 $(OPENRLHF_VENV)/bin/python -m pip install --quiet --use-pep517 deepspeed==0.19.6
	$(OPENRLHF_VENV)/bin/python -m pip install --quiet --no-deps openrlhf==0.11.2
	touch $@

run: venv
	$(BIN)/wer run --env bfcl --backend grpo --preset cpu

test: venv openrlhf-cpu
	WER_OPENRLHF_PYTHON=$(or $(WER_OPENRLHF_PYTHON),$(abspath $(OPENRLHF_VENV))/bin/python) $(BIN)/pytest $(if $(MARKS),-m "$(MARKS)")

check: venv
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -m "not docker and not llm and not slow and not ray and not openrlhf"

bench: venv
	$(BIN)/python benchmarks/run.py -o figures.json

# The variable silences a banner about another project.
docs: venv
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

fix: venv
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:
	rm -rf .venv $(OPENRLHF_VENV) dist build site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
