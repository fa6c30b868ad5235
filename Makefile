# Every target does all of its own set-up; the second run starts in seconds.
PYTHON ?= python3
BIN := .venv/bin
WORLD ?= .world
REPLICAS ?= 1
READY := $(PYTHON) -I .ci/bootstrap.py

.DEFAULT_GOAL := help
.PHONY: help up demo test bench crash stops soak nightly shell kind down format lock

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

up: ## Start the whole world on this machine, simulators included (REAL=1: without them)
	@$(READY)
	@exec $(BIN)/issuesandbox local up --dir $(WORLD) --replicas $(REPLICAS) $(if $(REAL),--real) --tied

demo: ## Watch a sandbox being kept, and an issue becoming a pull request
	@$(READY)
	@exec $(BIN)/issuesandbox local demo --tied

test: ## Run every check and test, and say how many ran
	@$(READY)
	@exec $(BIN)/python -P .ci/checks.py

crash: ## Kill the operator at every call of a life (half an hour)
	@$(READY)
	@ISSUESANDBOX_CRASH=everywhere exec $(BIN)/python -P -m pytest -q -n 6 --dist worksteal \
	  tests/e2e/promises/test_crash.py tests/e2e/runs/test_runs_killed.py tests/unit/runs/test_run_crash.py

stops: ## Stop runs at two hundred instants
	@$(READY)
	@ISSUESANDBOX_STOPS=200 exec $(BIN)/python -P -m pytest -q tests/e2e/runs/test_stops.py

soak: ## Kill one of three operators every 20 s for five minutes while people work
	@$(READY)
	@exec $(BIN)/issuesandbox local soak --replicas 3 --tied

nightly: ## Run the state machine with a hundred thousand examples (an hour)
	@$(READY)
	@HYPOTHESIS_PROFILE=nightly exec $(BIN)/python -P -m pytest -q -n logical tests/property

bench: ## Measure speed and memory
	@$(READY)
	@$(BIN)/python -m pip install -q matplotlib==3.11.2
	@exec $(BIN)/python -P benchmarks/run.py

shell: ## Open a shell with KUBECONFIG and kubectl of the running world
	@$(READY)
	@exec $(BIN)/issuesandbox local shell --dir $(WORLD)

kind: ## Run the operator in a kind cluster (needs Docker, kind and DAYTONA_API_KEY)
	@exec $(PYTHON) -I .ci/kind.py

down: ## Stop the world that `make up` started
	@$(READY)
	@exec $(BIN)/issuesandbox local down --dir $(WORLD)

format: ## Format the code
	@$(READY)
	@$(BIN)/ruff format -q . && $(BIN)/ruff check -q --fix .

lock: ## Pin every dependency anew
	@$(READY)
	@$(BIN)/python -m pip install -q uv
	@$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --universal \
	  --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	  --no-strip-extras --custom-compile-command "make lock" -q -o requirements.lock
