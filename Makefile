# Weft's chores. Every target makes what it needs, in .venv of this checkout; only Python 3.11+ must be there.
#   make setup   install Weft to use it
#   make demo    train, score, use and look into a small translator
#   make test    add the test tools, run the tests (five minutes on two cores); make test-all: every test (40 minutes)
#   make nightly the same, and none may skip for want of a library to compare with
#   make check   format, lint, types, messages of new commits, the rules of the house
#   make docs    the documentation site, in build/site; make docs-run: its pages with code run anew
#   make course  JupyterLab with the course's notebooks; make homework: the same for nbgrader
#   make marked  homework with other numbers for each student; make slides: lectures
#   make bench   Weft's speed beside transformers, OpenNMT-py and torch.nn, into build/bench (fetches data and peers)
#   make sbom    what is installed, as CycloneDX; make audit: its known weaknesses; make lock: its hashes
# PYTHON=python3.12   another interpreter;  TORCH_INDEX=URL   another source of torch wheels (CPU only, CUDA x)

.DEFAULT_GOAL := help
.PHONY: help setup setup-test setup-dev setup-hashed demo test test-all nightly test-changed test-forced check audit bench sbom lock format docs docs-run docs-gettext course homework marked slides clean

PYTHON ?=
TORCH_INDEX ?=
PYTEST_ARGS ?=

VENV := .venv
RUN := $(VENV)/bin/python
NEEDS := pyproject.toml constraints.txt hatch_build.py $(wildcard weft/native/*.cpp weft/native/*.h)
USERS := -e ".[all]"
TESTERS := -e ".[all,export,tune]" --group test --group serve-tests
DEVELOPERS := $(TESTERS) --group dev
# What slow tests compare with; without them those tests skip, and nobody sees that they have stopped passing.
PEER_GROUPS := import-tests export-tests loop-tests vectors-tests metrics-tests
PEERS := $(TESTERS) $(addprefix --group ,$(PEER_GROUPS))
WRITERS := -e ".[all,export]" --group docs
# Threads that spin while they wait cost up to ten times on a shared machine; tests are tiny, one each is best.
QUIET := OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=

HOUSE := $(wildcard tests/test_house*.py)
# Scripts are not typed; but what they call must be there.
NAMES_ALONE := --ignore-missing-imports $(addprefix --disable-error-code=,arg-type assignment call-arg call-overload \
    dict-item func-returns-value has-type index list-item misc no-untyped-call no-untyped-def operator override \
    return-value type-arg union-attr var-annotated)
NUMERIC := tests/laws tests/oracles tests/nn tests/search tests/train
# Limited for oneDNN alone, torch still asks it for its LSTM in bfloat16, which it then has not.
FORCED := ATEN_CPU_CAPABILITY=default ATEN_CPU_CAPABILITY=avx2,ONEDNN_MAX_CPU_ISA=AVX2,MKL_ENABLE_INSTRUCTIONS=AVX2
KERNELS := tests/laws/test_cells.py $(wildcard tests/nn/test_*_kernel.py) tests/nn/test_choice.py tests/train/test_kernels.py
WAYS := WEFT_CELLS=torch WEFT_CELLS=steps WEFT_LINEAR=torch WEFT_LINEAR=onednn

# A comma would end the argument of $(call install,...): extras have variables above.
# pip: what it is doing is shown, and every 20 seconds that it still works; all it says goes to .venv/setup.log
define install
@begun=$$(date +%s); (while sleep 20 >/dev/null 2>&1; do echo "  ... $$(($$(date +%s) - begun)) seconds"; done) & beat=$$!; \
    trap 'kill $$beat 2>/dev/null' EXIT; \
    { $(RUN) -m pip install --disable-pip-version-check $(1); echo $$? >$(VENV)/status; } 2>&1 | tee $(VENV)/setup.log \
    | grep --line-buffered -E "^ *(Collecting|Building|Preparing|Installing|Successfully|ERROR|error|fatal)|Downloading .*[0-9] [MG]B" \
    | awk '{ print "  " substr($$0, 1, 100); fflush() }' || true; \
    status=$$(cat $(VENV)/status); [ "$$status" = 0 ] || echo "pip failed; all it said is in $(VENV)/setup.log" >&2; exit $$status
endef

help:
	@sed -n '2,11s/^# \{0,1\}//p' Makefile

setup: $(VENV)/ready
setup-test: $(VENV)/ready-test
setup-dev: $(VENV)/ready-dev

demo: $(VENV)/ready
	@OMP_WAIT_POLICY=passive $(RUN) -m weft demo

test: $(VENV)/ready-test
	@echo "make test: the tests of tests/ and the examples in the docstrings of weft/, without the slow ones"
	@echo "           and without the rules of the house, which make check holds"
	@$(QUIET) $(RUN) -m pytest -n auto --maxprocesses 8 --dist worksteal -m "not slow" \
	    $(addprefix --ignore=,$(HOUSE)) $(PYTEST_ARGS)
	@echo "All passed. Next: make demo (a translator in minutes), make test-all (the slow tests too), make check."

test-all: $(VENV)/ready-all
	@echo "make test-all: every test, the slow ones too"
	@$(QUIET) $(RUN) -m pytest -n auto --maxprocesses 8 --dist worksteal $(PYTEST_ARGS)
	@$(MAKE) --no-print-directory test-forced

nightly: $(VENV)/ready-all
	@echo "make nightly: every test; one that skips for want of a library to compare with is a failure"
	@WEFT_PEERS="$(PEER_GROUPS)" $(MAKE) --no-print-directory test-all

# The slow tests of the packages that changed in the last commits, until the time is up (seconds).
CHANGED_SECONDS ?= 480
test-changed: $(VENV)/ready-test
	@$(QUIET) $(RUN) -m tests.changed --seconds $(CHANGED_SECONDS)

# As on processors with fewer instructions, and with kernels forced: nothing may depend on how one machine rounds.
test-forced: $(VENV)/ready-test
	@failed=; for way in $(FORCED); do \
	    echo "make test-forced: $$way"; \
	    env $(QUIET) $$(echo $$way | tr , ' ') $(RUN) -m pytest -q -n auto --maxprocesses 8 --dist worksteal \
	        -m "not slow" -k "not bfloat16" $(NUMERIC) $(PYTEST_ARGS) || failed="$$failed $$way"; \
	done; for way in $(WAYS); do \
	    echo "make test-forced: $$way"; \
	    env $(QUIET) $$way $(RUN) -m pytest -q -n auto --maxprocesses 8 --dist worksteal -m "not slow" $(KERNELS) \
	        $(PYTEST_ARGS) || failed="$$failed $$way"; \
	done; [ -z "$$failed" ] || { echo "make test-forced: failed with$$failed, see above" >&2; exit 1; }

check: $(VENV)/ready-dev
	@echo "make check: format (ruff)"
	@$(RUN) -m ruff format --check .
	@echo "make check: lint (ruff)"
	@$(RUN) -m ruff check .
	@echo "make check: types (mypy), and of scripts the names that they use"
	@$(RUN) -m mypy
	@$(RUN) -m mypy benchmarks experiments $(NAMES_ALONE)
	@echo "make check: messages of the commits of the last day"
	@$(RUN) -m tests.commits
	@echo "make check: import direction and the other rules of the house ($(HOUSE))"
	@$(QUIET) $(RUN) -m pytest -q $(HOUSE)
	@$(MAKE) --no-print-directory audit
	@echo "All in order. Next: make test."

# The service answers for each package or for none: where it knows none, there is no network to it.
audit: $(VENV)/ready-dev
	@mkdir -p build
	@echo "make check: known weaknesses of what Weft is tested with (pip-audit)"
	@$(VENV)/bin/pip-audit -r constraints-hashed.txt --disable-pip --timeout 10 --progress-spinner off \
	    >build/audit.txt 2>&1; code=$$?; unknown=$$(grep -c "could not be audited" build/audit.txt); \
	if [ "$$unknown" -gt 20 ] || grep -qiE "connection|timed out|name resolution" build/audit.txt; then \
	    echo "pip-audit SKIPPED: the service of advisories cannot be reached; nothing was audited (build/audit.txt)"; \
	else grep -vE "could not be audited" build/audit.txt; exit $$code; fi

# One version, one machine, one thread: every program takes its turn; each round is in the dated JSON.
BENCH_ARGS ?= --rounds 5 --batches 2 --sentences 64 --alone 8
bench: $(VENV)/ready-test
	@$(RUN) -m weft data get multi30k --folder data/multi30k
	@$(RUN) benchmarks/translate.py --install transformers opennmt
	@mkdir -p build/bench
	@OMP_WAIT_POLICY=passive $(RUN) benchmarks/translate.py --data data/multi30k --model both \
	    --json build/bench/$$(date +%Y-%m-%d).json $(BENCH_ARGS)
	@OMP_WAIT_POLICY=passive $(RUN) benchmarks/steps.py --grid --rounds 5

sbom: $(VENV)/ready-dev
	@mkdir -p build
	@$(VENV)/bin/cyclonedx-py requirements constraints-hashed.txt --pyproject pyproject.toml \
	    --output-reproducible --of JSON -o build/sbom.json 2>build/sbom.log || { cat build/sbom.log; exit 1; }
	@echo "build/sbom.json: every package that make setup, setup-dev and docs install (CycloneDX)"

lock: $(VENV)/ready
	@$(RUN) -m pip install --disable-pip-version-check -q uv
	@{ sed -n '/^#/p' constraints-hashed.txt; $(VENV)/bin/uv pip compile -q pyproject.toml -c constraints.txt \
	    --extra all --extra export --extra tune --group test --group serve-tests --group dev --group docs --universal \
	    --python-version 3.11 --generate-hashes --no-header --no-annotate; } >constraints-hashed.txt.part
	@mv constraints-hashed.txt.part constraints-hashed.txt
	@echo "constraints-hashed.txt is written anew"

setup-hashed: $(VENV)/made
	@echo "Installing exactly the files of constraints-hashed.txt, their hashes checked, and Weft."
	@$(RUN) -m pip install --disable-pip-version-check --require-hashes -r constraints-hashed.txt
	@$(RUN) -m pip install --disable-pip-version-check --no-deps --no-build-isolation -e .

format: $(VENV)/ready-dev
	@$(RUN) -m ruff check --fix .
	@$(RUN) -m ruff format .

# Doctrees and the outputs of pages that run are kept in build, so only what changed is built again.
SPHINX := $(QUIET) $(RUN) -m sphinx -q -W --keep-going -j auto -d build/doctrees

docs: $(VENV)/ready-docs
	@$(SPHINX) -b html docs build/site
	@$(QUIET) $(RUN) docs/_ext/languages.py site build/site
	@$(RUN) docs/_ext/links.py build/site
	@echo "The site is in build/site: open build/site/index.html"

# Runs every page that holds code, also those whose outputs are kept in docs/_executed.
docs-run: $(VENV)/ready-docs
	@rm -rf build/jupyter-cache build/doctrees docs/_executed
	@$(MAKE) --no-print-directory docs

# Notebooks with pictures inside and folded solutions; those that are there already may hold a student's work.
COURSE ?= course-notebooks
COURSE_LANGUAGE ?= en
course: $(VENV)/ready-course
	@test -e $(COURSE) || $(RUN) docs/_ext/notebooks.py $(COURSE) --language $(COURSE_LANGUAGE)
	@cd $(COURSE) && PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(CURDIR)/$(RUN) -m jupyter lab index.ipynb

homework: $(VENV)/ready-course
	@$(RUN) docs/_ext/notebooks.py build/homework --homework --language $(COURSE_LANGUAGE)

# Homework for marks, with other numbers for each name in the file NAMES.
NAMES ?= names.txt
marked: $(VENV)/ready-course
	@$(RUN) docs/_ext/marked.py build/marked $(NAMES) $(COURSE_LANGUAGE)

slides: $(VENV)/ready-docs
	@$(RUN) docs/_ext/slides.py build/slides $(COURSE_LANGUAGE)

docs-gettext: $(VENV)/ready-docs
	@$(SPHINX) -d build/doctrees-gettext -b gettext -t course -D suppress_warnings=myst.xref_missing docs build/gettext
	@$(RUN) docs/_ext/languages.py words build/gettext
	@echo "Catalogs to translate are in build/gettext; translations go to docs/_locale/LANGUAGE/LC_MESSAGES"

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/ready: $(NEEDS) | $(VENV)/made
	@echo "Installing Weft and what it runs on into $(VENV), from constraints.txt."
	@echo "torch is the large part: some 200 MB for the CPU, several GB with the CUDA libraries that Linux gets by"
	@echo "default; for the CPU alone: make setup TORCH_INDEX=(address of the CPU wheels)"
	@echo "It takes about four minutes on two free cores with a C++ compiler, for the compiled code, and longer on"
	@echo "a busy machine or a slow connection. What it is doing is shown below."
	$(if $(TORCH_INDEX),$(call install,--index-url "$(TORCH_INDEX)" -c constraints.txt torch))
	$(call install,-c constraints.txt $(USERS))
	@touch $@
	@echo "Ready. $(VENV)/bin/weft --help shows what it can do."

# The pip of a new environment may be older than dependency groups (Python 3.11 brings 23.2).
$(VENV)/groups: | $(VENV)/made
	$(call install,"pip>=25.1")
	@touch $@

$(VENV)/ready-test: $(VENV)/ready | $(VENV)/groups
	@echo "Installing pytest and what the tests compare with into $(VENV)."
	$(call install,-c constraints.txt $(TESTERS))
	@touch $@

$(VENV)/ready-all: $(VENV)/ready-test
	@echo "Installing the libraries that slow tests compare with into $(VENV), some 150 MB."
	$(call install,-c constraints.txt $(PEERS))
	@touch $@

$(VENV)/ready-dev: $(VENV)/ready-test
	@echo "Installing ruff, mypy and pre-commit into $(VENV)."
	$(call install,-c constraints.txt $(DEVELOPERS))
	@! git rev-parse --git-dir >/dev/null 2>&1 || $(VENV)/bin/pre-commit install --hook-type commit-msg || \
	    echo "The hook that checks messages of commits is not installed, see above."
	@touch $@

$(VENV)/ready-docs: $(VENV)/ready | $(VENV)/groups
	@echo "Installing Sphinx with its theme, and what the reference imports, into $(VENV)."
	$(call install,-c constraints.txt $(WRITERS))
	@touch $@

$(VENV)/ready-course: $(VENV)/ready | $(VENV)/groups
	@echo "Installing JupyterLab into $(VENV)."
	$(call install,-c constraints.txt --group course)
	@touch $@

# An interpreter of the right age, then a virtual environment that works; a broken one is made anew.
$(VENV)/made:
	@set -e; \
	for python in $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python3.14 python); do \
	    command -v "$$python" >/dev/null 2>&1 || continue; \
	    "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && found=$$python && break; \
	    seen="$$seen $$python ($$("$$python" -V 2>&1))"; \
	done; \
	if [ -z "$$found" ]; then \
	    echo "Weft needs Python 3.11 or later; found:$${seen:- none}." >&2; \
	    echo "Install one, or name it: make setup PYTHON=/path/to/python3.12" >&2; exit 2; \
	fi; \
	if ! $(RUN) -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "Making $(VENV) with $$found ($$("$$found" -V 2>&1))"; \
	    "$$found" -m venv --clear $(VENV) || { \
	        echo "$$found cannot make a virtual environment; on Debian and Ubuntu install python3-venv." >&2; exit 2; }; \
	fi; \
	touch $@
