# Everything a newcomer needs: `make run` measures this host, `make test` tests the checkout.
# Both set themselves up in .venv the first time and take seconds when nothing changed.

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
ARGS   ?=
TESTS  ?= tests

C_SOURCES := $(wildcard csrc/*.c csrc/kernels/*.c csrc/pages/*.c)
C_HEADERS := $(wildcard csrc/*.h csrc/kernels/*.h)
C_TESTS   := $(wildcard tests/native/*/*.c tests/native/*.c)
NATIVE    := bench/_native.abi3.so

# What `make lint-c` asks of our own C; the extension itself is built with fewer, so that a newer
# compiler's warnings never break a user's build.
STRICT := -std=gnu11 -D_GNU_SOURCE -O2 -Icsrc -Wall -Wextra -Wshadow -Wconversion \
          -Wstrict-prototypes -Wmissing-prototypes -Werror
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1

.DEFAULT_GOAL := help
.PHONY: help run test build lint lint-python lint-c fix sanitize check clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: build ## set up, then measure this host (about a minute); ARGS="--preset standard"
	@$(PY) -m bench run $(ARGS)

test: build $(VENV)/.test ## set up, then run the tests; TESTS=tests/native
	$(PY) -m pytest $(TESTS)

build: $(NATIVE) ## set up .venv and build the extension in place

lint: lint-python lint-c ## ruff, mypy, nbstripout, clang-format, clang-tidy, strict gcc

lint-python: $(VENV)/.lint
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy
	@for notebook in $$(git ls-files '*.ipynb'); do \
	  $(VENV)/bin/nbstripout --verify $$notebook || exit 1; done

lint-c: $(VENV)/.lint
	$(VENV)/bin/clang-format --dry-run --Werror $(C_SOURCES) $(C_HEADERS) $(C_TESTS)
	@for source in $(C_SOURCES) $(C_TESTS); do \
	  $(CC) $(STRICT) -fsyntax-only $$source || exit 1; done
	$(VENV)/bin/clang-tidy --quiet --warnings-as-errors='*' $(C_SOURCES) -- \
	  -std=gnu11 -D_GNU_SOURCE -Icsrc $(TIDY_INCLUDES)

fix: $(VENV)/.lint ## format Python and C, apply ruff's fixes
	$(PY) -m ruff check --fix
	$(PY) -m ruff format
	$(VENV)/bin/clang-format -i $(C_SOURCES) $(C_HEADERS) $(C_TESTS)

# Python itself is not built with the sanitizers: their run-time must be there first, and what the
# interpreter never frees is not ours.
sanitize: build $(VENV)/.test ## run the native tests under AddressSanitizer and UBSan
	CFLAGS="$(SANITIZE)" LDFLAGS="$(SANITIZE)" $(PY) setup.py -q build_ext --force \
	  --build-lib build/sanitize --build-temp build/sanitize-objects
	LD_PRELOAD=$$($(CC) -print-file-name=libasan.so):$$($(CC) -print-file-name=libubsan.so) \
	  ASAN_OPTIONS=detect_leaks=0:handle_segv=0:allow_user_segv_handler=1 \
	  PAGESTORM_EXTENSION=$(CURDIR)/build/sanitize/$(NATIVE) \
	  $(PY) -m pytest tests/native

check: lint test ## what .ci/run calls

clean: ## remove what was built; keeps .venv and results
	rm -rf build dist *.egg-info $(NATIVE) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

# ---- set-up ---------------------------------------------------------------------------------

$(VENV)/.made: pyproject.toml setup.py
	@PYTHON="$(PYTHON)" CC="$(CC)" sh ./.ci/requirements
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) ..."
	@$(PY) -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	@$(PY) -m pip install --quiet --disable-pip-version-check "setuptools>=77" "cffi>=2.0"
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable ".[analysis]"
	@touch $@

$(VENV)/.test: $(VENV)/.made
	@$(PY) -m pip install --quiet --disable-pip-version-check --group test
	@touch $@

$(VENV)/.lint: $(VENV)/.made
	@$(PY) -m pip install --quiet --disable-pip-version-check --group lint
	@touch $@

# setuptools compiles all of it again when a source or a header changed, and nothing otherwise.
$(NATIVE): $(VENV)/.made $(C_SOURCES) $(C_HEADERS) csrc/build_native.py
	@$(PY) setup.py -q build_ext --inplace > build.log 2>&1 || { cat build.log; rm -f build.log; exit 1; }
	@grep -E 'warning:' build.log || true
	@rm -f build.log
	@touch $@
