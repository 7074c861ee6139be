# Two commands for a newcomer: `make demo` and `make test`. Everything else is a part of them.
# TORCH_INDEX, if set, names the package index that has torch's CPU wheels; needed where the default index has CUDA builds only.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
VLLM_ENV := .vllm
VLLM_MODELLED := 0.33.0
# pytest-xdist: `auto` takes every core.
PYTEST_WORKERS ?= auto

.PHONY: demo test test-fast browser lint format typecheck wheel-check docs bench clean

demo: $(VENV)/.installed
	$(BIN)/python -m reasonctl audit --model fixture:qwen3 --parser qwen3
	$(BIN)/python -m reasonctl replay fixtures/traces/qwen3-open.jsonl --model fixture:qwen3-thinking
	$(BIN)/python -m reasonctl validate-config fixtures/budgets/slimserve-map.json --max-tokens 12000

test: browser $(VENV)/.tested $(VLLM_ENV)/.installed
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist worksteal

# Without the vLLM environment: seconds, for the inner loop.
test-fast: browser $(VENV)/.tested
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist worksteal -m "not vllm"

# The HTML report is tested in the system's Chromium; without one those tests fail, and the others run.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	echo "make: no Chromium: the tests of the HTML report will fail. apt-get install -y --no-install-recommends chromium" >&2

lint: $(VENV)/.tested
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

format: $(VENV)/.tested
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The repository root is the package, so the type checker looks at the installed wheel; this also proves py.typed.
typecheck: $(VENV)/.tested
	rm -rf build && mkdir -p build/typecheck
	$(PIP) wheel -q --no-deps --wheel-dir build/typecheck/wheel .
	$(PIP) install -q --no-deps --target build/typecheck/site build/typecheck/wheel/*.whl
	cd build/typecheck && MYPYPATH=site ../../$(BIN)/python -m mypy --config-file ../../pyproject.toml -p reasonctl

wheel-check: $(VENV)/.tested
	$(BIN)/python tests/wheel_check.py

# Every link inside docs/ is checked; nothing is fetched. The site is build/site.
docs: $(VENV)/.documented
	$(BIN)/zensical build --strict --clean

bench: $(VENV)/.tested $(VLLM_ENV)/.installed
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/replay.py

clean:
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(PIP) install -q -e .
	touch $@

$(VENV)/.tested: pyproject.toml $(VENV)/.installed
	$(PIP) install -q -e ".[dev,real]"
	touch $@

$(VENV)/.documented: pyproject.toml $(VENV)/.installed
	$(PIP) install -q -e ".[docs]"
	touch $@

# The real vLLM: one CPU environment, and the newer version's Python files laid over it (first on PYTHONPATH).
$(VLLM_ENV)/.installed: parsers/install.py parsers/environments.py | $(VENV)/.tested
	$(BIN)/python -m reasonctl vllm install $(VLLM_MODELLED) --into $(VLLM_ENV) --python "$(PYTHON)" --yes
	touch $@
