# make demo   install edgefl, get Fashion-MNIST, ask what half the bandwidth costs, then run a moving network and write its report
# make test   install the dev extras, then lint, type-check and test, all but the expensive tests, in less than five minutes
# make nightly the same with all tests (a quarter of an hour)
# make paths  golden runs and training once more, with the instructions of other processors; part of `make test`
# make quick  lint, types, golden runs, and the cheapest case of each cheap unit test, in less than 40 seconds
# make costs  run all tests, and write what each costs into tests/costs.tsv, which says what `make test` and `make quick` leave out
# make lowest the unit tests of `make test` with the lowest versions that pyproject.toml declares but of torch, in an environment of its own
# make newest the same with the newest versions that it allows
# make readme run the demo and take its pictures into docs/
# make gallery draw every shipped scenario into docs/gallery.md
# make docs   build the pages of docs/ as a site (into site/), run their code and the notebooks
# make trust  compute docs/trust.md: each law beside its reference
# make town   run a day and a half of a town and draw it for README.md and docs/ (a few minutes)
# make city   ask in that town which opening of a session pays (20 minutes), and take the study's picture for docs/
# make cluster  get Ray, and test studies on a cluster of two nodes on this machine; wants a quiet one
# make editor  get the YAML language server that editors use (needs node and npm), and test it on the scenarios
# make gpu    all that wants a GPU, in one command: tests, speed, memory, whole runs; writes runs/gpu/gpu.md
# make bench  measure speed beside named rivals: BENCH=whole, radio, network, deciders, training, memory, "run SCENARIO"
# make shots  photograph terminal, notebook, report and site in Chromium, wide and narrow, light and dark, into runs/shots
# make codecs train Fashion-MNIST with every codec, each way: the table of docs/codecs.md (some minutes)
# make fuzz   try thousands of changed scenarios with validate and run; `make nightly` tries some of them
# make joints random combinations of features through small runs, by rules and references; a few minutes
# make damage damage run and study directories at random and read them; `make nightly` tries some of them
# make faults inject each named fault of tests/faults; its check must fail (five minutes); `make nightly` does some of it
# make mutants try 200 changed operators, constants and bounds, drawn with a seed, against the tests of their modules
# make kill   kill runs and a study at random instants, resume them, and compare every byte
# make touched count the files that each feature touches outside its rooms
# make schema write the JSON Schemas that editors use, beside the scenarios
# make golden write the tables of the golden runs again; CHANGELOG.md says when that is allowed
# tests start some hundred processes: each would compile all modules, and pytest all tests, again
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FASHION := /usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz
CHROMIUM := /usr/bin/chromium

.PHONY: demo docs readme gallery trust town city test tests style types nightly paths quick costs lowest newest \
  cluster editor checks gpu bench codecs fuzz joints damage faults mutants kill touched schema golden shots clean

MOVING := scenarios/handover_hexagonal.yaml

demo: $(VENV)/installed $(FASHION)
	@rm -rf runs/demo
	@echo "How much longer does training take with half the bandwidth? (6 runs)"
	@$(BIN)/edgefl study scenarios/studies/half_band.yaml --out runs/half_band
	@echo
	@echo "Two minutes in a town: 140 devices move among 21 cells"
	@$(BIN)/edgefl run $(MOVING) --out runs/demo
	@$(BIN)/edgefl report runs/demo --picture runs/demo/moving.png
	@echo
	@echo "Go on with:"
	@echo "  $(BIN)/edgefl compare runs/half_band --target 0.8 --explain   another target, and all numbers"
	@echo "  $(BIN)/edgefl run quickstart --set devices.count=80           a change of your own"
	@echo "  $(BIN)/edgefl new mine                                        a scenario of your own"

readme: demo
	rm -rf runs/readme
	$(BIN)/edgefl study scenarios/studies/quickstart.yaml --out runs/readme
	cp runs/readme/comparison.png docs/quickstart.png
	cp runs/demo/moving.png docs/moving.png

docs: $(VENV)/installed-docs $(FASHION)
	$(BIN)/mkdocs build
	$(BIN)/pytest tests/end_to_end/test_docs.py tests/end_to_end/test_notebooks.py

gallery: $(VENV)/installed $(FASHION)
	$(BIN)/python docs/gallery.py

trust: $(VENV)/installed
	$(BIN)/python docs/trust.py

TOWN := $(BIN)/edgefl report runs/town --picture

town: $(VENV)/installed $(FASHION)
	rm -rf runs/town
	$(BIN)/edgefl run scenarios/city_day.yaml --set duration_s=115200 --set record.positions_s=20 --out runs/town
	rm -f docs/town.png docs/town.webp docs/town_phone.webp
	$(TOWN) docs/town.png --at 8.1
	$(TOWN) docs/town.webp
	$(TOWN) docs/town_phone.webp --phone

city: $(VENV)/installed $(FASHION)
	rm -rf runs/city_day
	$(BIN)/edgefl study scenarios/studies/city_day.yaml --out runs/city_day
	$(BIN)/edgefl day runs/city_day
	cp runs/city_day/day.png docs/city_day.png

# types are checked on one core beside the tests, whose two processes leave a core idle now and then
test: style $(FASHION) $(CHROMIUM)
	$(MAKE) --jobs 2 types tests

tests: $(VENV)/installed-dev
	$(BIN)/pytest -m "not nightly"
	$(BIN)/python -m tests.tools.code_paths

nightly: checks $(FASHION) $(CHROMIUM)
	$(BIN)/pytest
	$(BIN)/python -m tests.tools.code_paths -m ""

costs: $(VENV)/installed-dev $(FASHION) $(CHROMIUM)
	$(BIN)/pytest -p tests.tools.costs

paths: $(VENV)/installed-dev $(FASHION)
	$(BIN)/python -m tests.tools.code_paths

UNITS := tests/unit tests/golden

quick: checks $(FASHION)
	$(BIN)/pytest -m "not slow and not further" $(UNITS)

# With TORCH=--torch the lowest version of torch too; PIP_EXTRA_INDEX_URL may name an index of builds for CPUs.
lowest newest: $(FASHION)
	test -x $(VENV)-$@/bin/python || $(PYTHON) -m venv $(VENV)-$@
	$(PYTHON) -m tests.tools.bounds $@ $(TORCH) > $(VENV)-$@/versions.txt
	$(VENV)-$@/bin/pip install -q -U --upgrade-strategy eager -c $(VENV)-$@/versions.txt -e '.[test]'
	$(VENV)-$@/bin/pytest -m "not nightly" $(UNITS)
	$(VENV)-$@/bin/pytest tests/unit/analysis/test_export.py  # all of it: the only use of MLflow

checks: style types

style: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/installed-dev
	$(BIN)/mypy

cluster: $(VENV)/installed-dev
	$(BIN)/pip install -q -c constraints.txt -e '.[dev,ray,flower]'
	$(BIN)/pytest -n 0 tests/end_to_end/test_ray.py tests/unit/flower

# Without it these tests are skipped, and say so; where npm installs, the one on the PATH will do too.
editor: $(VENV)/installed-dev
	npm install --silent --no-fund --no-audit --prefix $(VENV)/editor yaml-language-server@1.25.0
	$(BIN)/pytest -n 0 tests/end_to_end/test_language_server.py

gpu: $(VENV)/installed-dev
	$(BIN)/python -m tests.tools.gpu

bench: $(VENV)/installed-dev
	$(BIN)/python -m tests.tools.bench $(or $(BENCH),whole --rounds 20 --repeats 3)

shots: $(VENV)/installed-docs $(CHROMIUM)
	$(BIN)/mkdocs build -q
	$(BIN)/python -m tests.tools.shots

codecs: $(VENV)/installed-dev $(FASHION)
	$(BIN)/python -m tests.tools.codecs

# with SEED=17, say, they draw others
DRAW = $(if $(SEED),--seed $(SEED))

fuzz: $(VENV)/installed-dev
	$(BIN)/python -m tests.tools.fuzz $(DRAW)

joints: $(VENV)/installed-dev
	$(BIN)/python -m tests.tools.joints $(DRAW)

damage: $(VENV)/installed-dev
	$(BIN)/python -m tests.tools.damage $(DRAW)

faults: $(VENV)/installed-dev $(FASHION)
	$(BIN)/python -m tests.tools.faults --write
	$(BIN)/python docs/trust.py faults

mutants: $(VENV)/installed-dev $(FASHION)
	$(BIN)/python -m tests.tools.mutants --write
	$(BIN)/python docs/trust.py faults

kill: $(VENV)/installed-dev $(FASHION)
	$(BIN)/python -m tests.tools.kill
	$(BIN)/python -m tests.tools.kill_study scenarios/studies/quickstart.yaml --kills 5

touched: $(VENV)/installed-dev
	$(BIN)/python -m tests.tools.touched --files

schema: $(VENV)/installed
	$(BIN)/edgefl schema scenario > scenarios/scenario.schema.json
	$(BIN)/edgefl schema study > scenarios/study.schema.json

golden: $(VENV)/installed-dev
	$(BIN)/python tests/golden/make.py

$(VENV)/installed: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install -qq --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt $(VENV)/installed
	@$(BIN)/pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(VENV)/installed-docs: pyproject.toml constraints.txt $(VENV)/installed-dev
	@$(BIN)/pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev,docs]'
	@touch $@

# Debian and Ubuntu ship the data as a package; elsewhere edgefl downloads it at the first run.
$(FASHION):
	@if command -v apt-get >/dev/null; then \
	  SUDO=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$SUDO apt-get update -qq && \
	  $$SUDO apt-get install -y -qq --no-install-recommends dataset-fashion-mnist; \
	else echo "no apt-get: edgefl will download Fashion-MNIST at the first run"; fi

# Reports are tested in a real browser; where there is none these tests are skipped, and say so.
$(CHROMIUM):
	@if command -v apt-get >/dev/null; then \
	  SUDO=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	  $$SUDO apt-get update -qq && \
	  $$SUDO apt-get install -y -qq --no-install-recommends chromium || \
	  echo "no chromium: the tests of reports in a browser will be skipped"; \
	else echo "no apt-get: the tests of reports in a browser will be skipped unless there is one"; fi

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-newest runs site fuzz-findings .pytest_cache .mypy_cache .ruff_cache
