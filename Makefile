# `make ch1` needs Python 3.11 and nothing else: it creates .venv, installs requirements.txt into it and runs chapter 1.
PYTHON ?= python3
PY := .venv/bin/python
PIP := $(PY) -m pip install -qq --disable-pip-version-check
NOTEBOOKS := $(wildcard notebooks/*.ipynb)

.PHONY: help setup ch1 bench test lab notebooks check readme

help: ## this list
	@sed -n 's/^\([a-z0-9]*\):[^#]*## /  make \1	/p' Makefile | expand -t 20

setup: .venv/.ready ## create .venv and install requirements.txt (every other target does it where needed)

ch1: .venv/.ready ## chapter 1: every pair, measured on this machine
	$(PY) benchmark.py --chapter 1

bench: .venv/.ready ## what you ask for: make bench ARGS="--chapter 1 --only 'coal*' --size large"
	$(PY) benchmark.py $(or $(ARGS),--list)

test: .venv/.tested ## unit tests, every pair's tests, the notebooks
	$(PY) -m pytest tests $(NOTEBOOKS) --nbval-lax --nbval-current-env --nbval-cell-timeout 120

lab: .venv/.ready ## open the notebooks in JupyterLab
	$(PY) -m jupyter lab --allow-root --LabApp.default_url=/lab/tree/notebooks/ch1_performance_basics.ipynb

notebooks: .venv/.ready ## run the notebooks and keep their outputs in them
	$(PY) -m jupyter nbconvert --to notebook --execute --inplace $(NOTEBOOKS)

check: .venv/.tested ## style, types, and every pair verified without timing it
	$(PY) -m ruff check . && $(PY) -m mypy && $(PY) benchmark.py --chapter 1 --check

readme: .venv/.ready ## write the tables of README.md and of the chapters anew from recorded/
	$(PY) -m common.report

# A stamp says that what it stands for is whole. The first one is missing until everything is installed and while more
# is being added, because pip takes a package that it was killed over for an installed one: then .venv is made anew.
.venv/.ready: requirements.txt
	@$(ALONE) 'test $@ -nt $< && exit; echo "installing requirements.txt into .venv: minutes, and gigabytes with CUDA"; \
	rm -rf .venv; "$(PYTHON)" -m venv .venv; $(PIP) -r $<; touch $@'

.venv/.tested: pyproject.toml .venv/.ready
	@$(ALONE) 'test $@ -nt $< && exit; echo "installing the test tools into .venv"; \
	mv .venv/.ready .venv/.adding; $(PIP) -e ".[test]"; mv .venv/.adding .venv/.ready; touch $@'

# Runs a shell command while holding a lock, which its children inherit: whoever runs make again, even while the pip
# of a make that was killed is still at work, waits for it and then looks at what is there.
define LOCKED
import fcntl, os, sys, tempfile, zlib
if sys.version_info < (3, 11):
    sys.exit("needs Python 3.11 or newer, and this is %s: try `make PYTHON=python3.12 ...`" % sys.version.split()[0])
name = "speed-of-light-%d-%08x.lock" % (os.getuid(), zlib.crc32(os.getcwd().encode()))
lock = os.open(os.path.join(tempfile.gettempdir(), name), os.O_RDWR | os.O_CREAT, 0o600)
os.set_inheritable(lock, True)
fcntl.flock(lock, fcntl.LOCK_EX)
os.execvp("sh", ["sh", "-ec", sys.argv[1]])
endef
export LOCKED
ALONE := "$(PYTHON)" -c "$$LOCKED"
