# Everything here needs Python 3.11 or newer with its venv module, and make; the rest goes into .venv.

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check

# If PYTHON is set by the user, only that one is tried; otherwise the first one that is new enough is used.
PYTHON ?= python3
ifeq ($(origin PYTHON),file)
PYTHONS := $(PYTHON) python3.14 python3.13 python3.12 python3.11
else
PYTHONS := $(PYTHON)
endif
NEW_ENOUGH := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

# Tests mostly wait for their processes, so run one more at once than the development machine has cores.
PYTEST_JOBS ?= --numprocesses 3 --dist worksteal

# What needs no real agent program, no browser and no Slurm; `make test` takes the short ones among them.
HERMETIC := not agents and not page and not slurm and not lint
TESTS := short
WHICH_short := $(HERMETIC) and not slow and not soak and not screen and not server and not drivers and not nodes and not hosts
WHICH_all := $(HERMETIC)
# Of the real programs, `test-agents` leaves out combinations whose parts others try; with TESTS=all it leaves out none.
AGENTS_short := agents and not slow
AGENTS_all := agents
WHICH = $(or $(WHICH_$(TESTS)),$(error TESTS is short or all, not '$(TESTS)'))

# Long tests and those with real programs of others: a third of the cases (1, 2 or 3) or all. See tests/turns.py.
TURN := all

TEMPLATE_WORKERS := $(wildcard task_templates/*/workers)

.PHONY: help demo test soak test-screen test-server test-drivers test-nodes test-page soak-page test-typer test-extras test-hosts test-agents test-slurm test-all lint format bench turn clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

demo: $(VENV)/.run ## run the included survey on this repository, from start to report
	@$(PY) -m agentctl demo

test: $(VENV)/.dev ## run the tests, except the long ones; with TESTS=all also these, drivers, nodes, screen, server and hosts
	@case '$(TESTS)' in all) $(PY) -m tests.hosts.install || [ $$? -eq 69 ];; esac
	@$(PY) -m pytest $(PYTEST_JOBS) --turn $(TURN) -m "$(WHICH)"

soak: $(VENV)/.dev ## run only the long tests: races and failures, tried many times
	@$(PY) -m pytest $(PYTEST_JOBS) --turn $(TURN) -m "(slow or soak) and $(HERMETIC)"

test-agents: $(VENV)/.dev ## run the real agent programs, the MCP inspector and conformance suite, fetched from npm, against a stand-in model; TURN=1, 2 or 3: a third; TESTS=all: each combination
	@$(PY) -m tests.agents.install; code=$$?; \
	if [ $$code -eq 69 ]; then exit 0; elif [ $$code -ne 0 ]; then exit $$code; fi; \
	$(PY) -m pytest --numprocesses 3 --dist worksteal --turn $(TURN) -m "$(AGENTS_$(TESTS))" tests/agents

test-drivers: $(VENV)/.dev ## run agent programs, agents from plain models, and agentctl in an editor, by fakes and a stand-in model
	@$(PY) -m pytest $(PYTEST_JOBS) -m "drivers and not slow"

test-nodes: $(VENV)/.dev ## run workers on the nodes of a cluster, by a stand-in for Slurm
	@$(PY) -m pytest $(PYTEST_JOBS) -m "nodes and not slow"

test-screen: $(VENV)/.dev ## run the tests of the screen of `agentctl watch`
	@$(PY) -m pytest $(PYTEST_JOBS) -m "screen and not slow"

test-server: $(VENV)/.dev ## run the tests of `agentctl serve` with real servers
	@$(PY) -m pytest $(PYTEST_JOBS) -m "server and not slow"

# What measures frames has the machine for itself; so has, once more, what failed beside other browsers on few cores.
test-page: $(VENV)/.dev ## run the page of `agentctl serve` in a real browser; fetches Chromium, playwright, axe-core, schemathesis, and what lint checks its scripts with
	@$(PY) -m tests.page.install; code=$$?; \
	if [ $$code -eq 69 ]; then exit 0; elif [ $$code -ne 0 ]; then exit $$code; fi; \
	for part in "--numprocesses 2 --dist worksteal --ignore tests/page/test_many.py tests/page" "tests/page/test_many.py"; do \
		$(PY) -m pytest --turn $(TURN) -m page $$part || $(PY) -m pytest --turn $(TURN) -m page --last-failed --last-failed-no-failures none $$( \
			echo "$$part" | sed 's/--numprocesses 2 --dist worksteal//') || exit 1; \
	done

soak-page: $(VENV)/.dev ## have 200 events a second before an open page for MINUTES (30), and print what it takes
	@$(PY) -m tests.page.install; code=$$?; \
	if [ $$code -eq 69 ]; then exit 0; elif [ $$code -ne 0 ]; then exit $$code; fi; \
	SOAK_MINUTES=$(or $(MINUTES),30) $(PY) -m pytest --capture=no -o faulthandler_timeout=0 -m page tests/page/test_soak.py

test-typer: $(VENV)/.dev ## run the command line's tests over each minor version of typer that is allowed; fetches them
	@TURN=$(TURN) $(PY) -m tests.typers $(PYTEST_JOBS); code=$$?; [ $$code -eq 69 ] || exit $$code

test-extras: $(VENV)/.dev ## run README's first screen, and the lines that say how an extra is installed, in environments of pipx, uv and pip; fetches them
	@$(PY) -m tests.extras.install; code=$$?; \
	if [ $$code -eq 69 ]; then exit 0; elif [ $$code -ne 0 ]; then exit $$code; fi; \
	$(PY) -m pytest --numprocesses 2 tests/extras/printed.py tests/extras/first_screen.py

test-hosts: $(VENV)/.dev ## run --host and --hosts over real sshd on the loopback; fetches openssh-server
	@$(PY) -m tests.hosts.install; code=$$?; \
	if [ $$code -eq 69 ]; then exit 0; elif [ $$code -ne 0 ]; then exit $$code; fi; \
	$(PY) -m pytest $(PYTEST_JOBS) -m "hosts and not slow" tests/hosts

test-slurm: $(VENV)/.dev ## run workers on three nodes of a real Slurm, set up on this machine; installs Debian's packages
	@$(PY) -m tests.slurm.install; code=$$?; \
	if [ $$code -eq 69 ]; then exit 0; elif [ $$code -ne 0 ]; then exit $$code; fi; \
	$(PY) -m pytest --numprocesses 3 --dist worksteal --turn $(TURN) -m slurm tests/slurm

test-all: ## run every test there is, in every turn; takes more than an hour
	@$(MAKE) --no-print-directory TESTS=all test-agents test-typer test-extras test-page test-slurm
	@$(MAKE) --no-print-directory TESTS=all lint test

# What checks the page's scripts comes from npm, by test-page; whoever has Python alone is told what that left out.
lint: $(VENV)/.dev ## run ruff, mypy --strict, import-linter, what reads the sources and the documents, and the checks of the page's scripts
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy --strict
	@for folder in $(TEMPLATE_WORKERS); do \
		MYPYPATH=$$folder $(PY) -m mypy --strict $$folder || exit 1; \
	done
	@$(VENV)/bin/lint-imports --no-logo
	@$(PY) -m pytest --quiet -m lint tests/lint
	@$(PY) -m tests.page.scripts; code=$$?; [ $$code -eq 69 ] || exit $$code

format: $(VENV)/.dev ## rewrite the code the way `make lint` wants it
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

bench: $(VENV)/.run ## measure agentctl's speed and memory, and print one table
	@$(PY) bench/run.py

turn: $(VENV)/.dev ## write into the last commit which third of the longest cases it tries: the last step before a change lands
	@$(PY) -m tests.turns --write

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Each stamp is touched last, so an interrupted installation is repeated.
$(VENV)/.created:
	@for python in $(PYTHONS); do \
		if "$$python" -c '$(NEW_ENOUGH)' 2>/dev/null; then \
			echo "creating $(VENV) with $$("$$python" --version)"; \
			rm -rf $(VENV); \
			"$$python" -m venv $(VENV) && touch $@ && exit 0; \
			exit 1; \
		fi; \
	done; \
	echo "error: no Python 3.11 or newer with the venv module among: $(PYTHONS)" >&2; \
	echo "hint: install one (on Debian and Ubuntu python3-venv too), or name it: make PYTHON=/path/to/python3" >&2; \
	exit 1

$(VENV)/.run: $(VENV)/.created pyproject.toml
	@echo "installing agentctl into $(VENV)"
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.created pyproject.toml
	@echo "installing the tools for tests and lint into $(VENV)"
	@$(PIP) --editable '.[dev]'
	@touch $(VENV)/.run $@
