# `make ch1` needs Python 3.11 and nothing else: it creates .venv, installs requirements.txt into it and runs chapter 1.
PYTHON ?= python3
PY := .venv/bin/python
PIP := $(PY) -m pip install -qq --disable-pip-version-check --no-compile
# of ten thousand files in the packages only what everything imports, also where Python is told to write none
COMPILE := PYTHONDONTWRITEBYTECODE= $(PY) -c "import torch._dynamo, rich.progress, matplotlib.pyplot, ipykernel.kernelapp"
CHAPTERS := $(sort $(wildcard ch[0-9]))
NOTEBOOKS := $(wildcard notebooks/*.ipynb)
LESSON = $(firstword $(wildcard notebooks/ch$(patsubst ch%,%,$(or $(CHAPTER),1))_*.ipynb))
NBVAL := $(NOTEBOOKS) --nbval-lax --nbval-current-env --nbval-cell-timeout 120
# one thread each: of two processes on two cores, two threads each would wait for each other
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -n 2 --dist loadgroup
ALONE := $(PY) -m pytest -p no:nbval tests/engine/test_times.py tests/calibration tests/liars/test_on_gpu.py tests/hardware

ifneq ($(filter lab,$(MAKECMDGOALS)),)  # before anything is installed
ifeq ($(LESSON),)
$(error no notebook of chapter "$(CHAPTER)": use CHAPTER=N, where N is one of $(sort $(foreach name,$(NOTEBOOKS:notebooks/ch%=%),$(firstword $(subst _, ,$(name))))))
endif
endif

.PHONY: help setup $(CHAPTERS) bench calibrate record test test-all mutants rest lab learn notebooks readme

help: ## this list
	@awk '/^([a-z0-9-]+|\$$\(CHAPTERS\)):[^#]*## / {name = $$1; sub(":", "", name); \
	sub(/.*CHAPTERS\)/, "$(CHAPTERS)", name); line = sprintf("  make %-12s", name); \
	for (i = 2; i < NF && $$i != "##"; i++); while (++i <= NF) if (length(line " " $$i) <= 80) line = line " " $$i; \
	else {print line; line = sprintf("%20s%s", "", $$i)}; print line}' Makefile

setup: .venv/.ready ## create .venv and install requirements.txt (every other target does it where needed)

$(CHAPTERS): ch%: .venv/.ready ## a chapter: every pair, measured on this machine
	$(PY) benchmark.py --chapter $*

bench: .venv/.ready ## what you ask for: make bench ARGS="--chapter 1 --only 'coal*' --fast"
	$(PY) benchmark.py $(or $(ARGS),--list)

calibrate: .venv/.ready ## does the harness measure truly on this machine? Minutes, and only while it does nothing else
	$(PY) -m tools calibrate $(ARGS)

record: .venv/.ready ## measure all that recorded/ lacks, or that is stale there, on this machine; ARGS=--help lists options
	$(PY) -m tools record $(ARGS)

# Two at a time (the rest: notebooks first, they are long, and style and types beside them); of the rest then, one after
# the other, those that compare times. All of it runs, whatever fails.
test: .venv/.tested ## what every change must pass: five minutes on two cores
	@$(PYTEST) -p no:nbval tests -m "not rest"

test-all: ## that and the rest: all sizes, notebooks, architectures, known times, style, types, a calibration
	@$(MAKE) --no-print-directory --keep-going test rest

mutants: .venv/.tested ## judge the wrong versions of lessons and exercises that are not judged yet, and keep what is said
	cd tests && ../$(PY) -m mutants $(ARGS)

rest: .venv/.tested
	@{ $(PY) -m ruff check . && $(PY) -m mypy; } > .venv/style.txt 2>&1 & style=$$!; \
	$(PYTEST) $(NBVAL) tests -m "rest and not alone"; two=$$?; wait $$style; style=$$?; cat .venv/style.txt; \
	$(ALONE) -m alone && [ $$style$$two = 00 ]

lab: .venv/.ready ## open chapter 1's notebook in JupyterLab, without its answers; another's: make lab CHAPTER=2
	@mkdir -p work 2> /dev/null && [ -w work ] || \
	{ echo "make lab: your notebooks are kept in work/, which cannot be written here: copy the course to a folder of yours" >&2; exit 1; }
	@for file in notebooks/*.ipynb; do [ -e work/$${file##*/} ] || \
	$(PY) -m jupyter nbconvert --log-level WARN --ClearOutputPreprocessor.enabled=True --to notebook --output-dir work $$file || exit; done
	PYTHONPATH=$(CURDIR) $(PY) -m jupyter lab --allow-root --LabApp.default_url=/lab/tree/$(LESSON:notebooks%=work%)

learn: .venv/.ready ## the exercise that you are at, or the next one after it is passed (python learn.py --help: all commands)
	$(PY) learn.py start

notebooks: .venv/.ready ## run the notebooks and keep their outputs in them
	SPEED_OF_LIGHT_FORECASTER=naive $(PY) -m jupyter nbconvert --to notebook --execute --inplace --ExecutePreprocessor.record_timing=False $(NOTEBOOKS)

readme: .venv/.ready ## write the tables of the READMEs and of recorded/ anew from the records
	$(PY) -m tools readmes

# A stamp says that what it stands for is whole. pip takes a package that it was killed over for an installed one: an
# environment of ours whose first installation did not end is made anew, and test tools whose did not are forced: they
# and all that they need, of which pip would take the newest where requirements.txt has a pin (but for `-e .`, no pin).
.venv/.ready: requirements.txt
	@"$(PYTHON)" -c 'import sys; sys.version_info < (3, 11) and sys.exit("needs Python 3.11 or newer: make PYTHON=...")'
	@echo "installing requirements.txt into .venv: this takes minutes"
	@if [ -e .venv/.unfinished ]; then rm -rf .venv; fi
	@if [ ! -e .venv ]; then mkdir .venv && touch .venv/.unfinished && "$(PYTHON)" -m venv .venv; fi
	@$(PIP) -r $< && $(COMPILE) && rm -f .venv/.unfinished && touch $@

.venv/.tested: pyproject.toml .venv/.ready
	@force=$$([ ! -e .venv/.adding ] || echo --force-reinstall); touch .venv/.adding; \
	grep -v '^-e' requirements.txt > .venv/.pins && \
	$(PIP) $$force -c .venv/.pins -e ".[test]" && rm .venv/.adding && touch $@
