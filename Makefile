# Learning to Align. `make help` lists the commands.
# Every path is relative, so the folder that holds the course may have spaces in its name.

PY := .venv/bin/python
LAB_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help lab clean
# teachers: the learner's copy has nothing from here to "everyone".
NOTEBOOKS ?= $(wildcard notebooks/*.ipynb notebooks/solutions/*.ipynb notebooks/lectures/*.ipynb)
.PHONY: check test mirror solutions notebooks corpus model results results-real bench \
    bench-notebooks slides site learner zh grade lock audit test-newest test-faults
# everyone

help:
	@echo "make lab        open the course in JupyterLab"
# teachers
	@echo "make check      run ruff and the quick tests, before a commit"
	@echo "make test       run ruff, all tests and every notebook, outputs compared"
	@echo "make mirror     write what utils/ teaches into the notebooks that show it"
	@echo "make solutions  the same for the solutions of exercises"
	@echo "make notebooks  execute every notebook in place"
	@echo "make corpus     generate the Village corpus again"
	@echo "make model      train the small models that come with the course again"
	@echo "make results    measure what data/results doesn't hold yet"
	@echo "make results-real  the same on real text, which must be there or is downloaded"
	@echo "make bench      measure speed, against d2l"
	@echo "make bench-notebooks  measure how long the notebooks take, and their memory"
	@echo "make slides     write the lectures to build/slides: pages and, with Chromium, PDF"
	@echo "make site       write the course as a website to build/site, and check it in Chromium"
	@echo "make zh         write the Chinese notebooks to build/zh"
	@echo "make learner    write the copy for learners to build/learner, and as a zip"
	@echo "make grade SUBMITTED=folder  run what learners handed in: which checks pass?"
	@echo "make lock       write requirements.lock by requirements.txt"
	@echo "make audit      look all packages up among known vulnerabilities"
	@echo "make test-newest  run the tests with the newest version of everything"
	@echo "make test-faults  try many more faults, and notebooks in strange places (an hour)"
# everyone
	@echo "make clean      remove .venv, build and caches"
	@echo
	@echo "The first call makes .venv. PYTHON=python3.12 chooses the Python it is made with,"
	@echo "LAB_ARGS=--no-browser adds options to JupyterLab."
# teachers
	@echo "NOTEBOOKS=notebooks/03_additive_scoring.ipynb is what 'make notebooks' executes."
# everyone

lab: .venv/.installed
	$(PY) -m jupyterlab --ServerApp.ip=127.0.0.1 --ServerApp.root_dir=. \
	    --LabApp.news_url=None \
	    --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate \
	    --LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb $(LAB_ARGS)

# teachers
# Without nbval, which is slow to load: the quick tests run no notebook.
check: .venv/.installed
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(PY) -m pytest -p xdist -n auto -m "not slow" \
	    -o addopts="--import-mode=importlib -ra --dist=loadfile" \
	    tests/utils tests/tools tests/data

test: .venv/.installed
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m pytest -n auto

solutions: mirror
mirror: .venv/.installed
	$(PY) tools/mirror.py --write

notebooks: .venv/.installed
	env -u MPLBACKEND TQDM_DISABLE=1 LEARNING_TO_ALIGN_LANG=en \
	    $(PY) -m nbconvert --to notebook --execute --inplace \
	    --ExecutePreprocessor.timeout=-1 --ExecutePreprocessor.startup_timeout=3600 \
	    --ExecutePreprocessor.record_timing=False \
	    --ExecutePreprocessor.store_widget_state=False $(NOTEBOOKS)

corpus: .venv/.installed
	$(PY) data/village/generate.py

model: .venv/.installed
	$(PY) -m tools.experiments.models

results: .venv/.installed
	$(PY) -m tools.experiments

results-real: .venv/.installed
	$(PY) -m tools.experiments real_text told_apart beams own_text fine_tuning

bench: .venv/.installed
	$(PY) -m tools.benchmarks.speed

bench-notebooks: .venv/.installed
	$(PY) -m tools.benchmarks.notebooks

slides: .venv/.installed
	$(PY) -m tools.slides.build

learner: .venv/.installed
	$(PY) tools/learner.py

zh: .venv/.installed
	$(PY) tools/zh.py

grade: .venv/.installed
	$(PY) tools/grade/run.py \
	    "$(or $(SUBMITTED),$(error Name the folder of notebooks: make grade SUBMITTED=folder))"

# Tools for maintainers, in an environment of their own.
build/tools/.installed: | .venv/.installed
	$(PY) -m venv build/tools
	build/tools/bin/python -m pip install --quiet --disable-pip-version-check \
	    uv==0.13.9 pip-audit==2.10.1
	touch build/tools/.installed

# Everything is installed first; building then needs no network.
build/tools/.site: tools/site/requirements.txt tools/site/package-lock.json \
    build/tools/.installed
	@command -v npm >/dev/null || { echo "The site needs npm, which comes with Node.js, to install MathJax." >&2; exit 1; }
	build/tools/bin/python -m pip install --quiet --disable-pip-version-check \
	    --require-hashes -r tools/site/requirements.txt
	cp tools/site/package.json tools/site/package-lock.json build/tools
	npm ci --prefix build/tools --ignore-scripts --no-audit --no-fund
	touch build/tools/.site

site: build/tools/.site
	rm -rf build/site
	$(PY) -m tools.site.source
	build/tools/bin/sphinx-build --quiet --fail-on-warning --keep-going -c tools/site \
	    -d build/site-doctrees build/site-source build/site
	$(PY) -m tools.site.check build/site

# torch is left out, because its builds differ by machine, and so is CUDA; what torch
# needs besides is in, and so is what builds utils. Versions that still fit stay.
CUDA = cuda-bindings cuda-toolkit nvidia-cudnn-cu13 nvidia-cusparselt-cu13 \
    nvidia-nccl-cu13 nvidia-nvshmem-cu13 triton

lock: build/tools/.installed
	printf '%s\n' $(CUDA) > build/tools/cuda.txt
	(sed '/^-e/d' requirements.txt; echo 'setuptools>=77') > build/tools/lock.in
	cp requirements.lock build/tools/lock
	build/tools/bin/uv pip compile build/tools/lock.in --universal --quiet \
	    --python-version 3.10 --generate-hashes --no-header --no-annotate \
	    --no-emit-package torch --excludes build/tools/cuda.txt -o build/tools/lock
	(sed -n 1,2p requirements.lock; \
	    sed -n 's/^torch==.*/#     python -m pip install &/p' requirements.txt; \
	    sed -n 4p requirements.lock; cat build/tools/lock) > build/tools/requirements.lock
	mv build/tools/requirements.lock .
	build/tools/bin/uv pip compile tools/site/requirements.in --universal --quiet \
	    --python-version 3.10 --generate-hashes --no-header --no-annotate \
	    -o tools/site/requirements.txt

audit: build/tools/.installed
	build/tools/bin/python -m pip_audit --strict --disable-pip --require-hashes \
	    -r requirements.lock
	sed -n '/^torch==/p' requirements.txt > build/tools/torch.txt
	build/tools/bin/python -m pip_audit --strict --disable-pip --no-deps \
	    -r build/tools/torch.txt

test-newest:
	$(or $(PYTHON),python3) -m venv --clear build/newest
	build/newest/bin/python -m pip install --disable-pip-version-check -e ".[test]"
	build/newest/bin/python -m ruff check .
	build/newest/bin/python -m pytest -n auto

test-faults: .venv/.installed
	LEARNING_TO_ALIGN_FAULTS=10000 $(PY) -m pytest -n auto tests/utils tests/notebooks

# everyone
clean:
	rm -rf .venv .*_cache .hypothesis build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find . -name .ipynb_checkpoints -type d -prune -exec rm -rf {} +

# The stamp names its folder: a course that was moved or copied is installed again,
# because an environment holds absolute paths.
ifneq ($(shell cat .venv/.installed 2>/dev/null),$(shell pwd))
.PHONY: .venv/.installed
endif

.venv/.installed: requirements.txt pyproject.toml
	@rm -f .venv/.installed; \
	works() { \
	    "$$1" -c 'import sys; v = sys.version_info[:2]; sys.exit(not (3, 10) <= v <= (3, 13))' \
	        >/dev/null 2>&1; \
	}; \
	if [ -n "$(PYTHON)" ] || ! works $(PY) || ! $(PY) -m pip --version >/dev/null 2>&1; then \
	    python=; \
	    for candidate in $(if $(PYTHON),"$(PYTHON)",python3 python3.13 python3.12 python3.11 python3.10 python); do \
	        if works "$$candidate"; then python=$$candidate; break; fi; \
	    done; \
	    if [ -z "$$python" ]; then \
	        echo "This course needs Python 3.10, 3.11, 3.12 or 3.13 and $(if $(PYTHON),PYTHON=$(PYTHON) is none of them,found none): install one, or name the one to use, as in 'make lab PYTHON=python3.12'." >&2; \
	        exit 1; \
	    fi; \
	    if ! "$$python" -m venv --clear .venv >/dev/null 2>&1; then \
	        rm -rf .venv; \
	        echo "$$python cannot make a virtual environment: on Debian and Ubuntu install the package python3-venv, elsewhere run '$$python -m venv .venv' to see why." >&2; \
	        exit 1; \
	    fi; \
	fi; \
	echo "Installing requirements.txt into .venv. This happens once and takes a few minutes."; \
	$(PY) -m pip install --disable-pip-version-check -r requirements.txt && \
	$(PY) -m jupyter labextension disable --level=sys_prefix \
	    "@jupyterlab/apputils-extension:announcements" >/dev/null 2>&1 && \
	$(PY) -c "import matplotlib.font_manager" && \
	pwd > .venv/.installed
