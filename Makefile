# All targets use .venv and the Spark configuration in conf/, and ignore other settings of the caller's environment.
PYTHON ?= $(or $(shell command -v python3.11),$(shell command -v python3),python3.11)
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export SPARK_CONF_DIR := $(CURDIR)/conf
export DBT_PROFILES_DIR := $(CURDIR)
export DBT_SEND_ANONYMOUS_USAGE_STATS := false

.PHONY: setup quickstart demo check golden reference docs lint test test-delta test-planted test-iceberg soak soak-fold soak-lifecycle soak-process soak-functional soak-iceberg matrix lock audit wheel clean

setup: .venv/ready  ## create .venv with everything in it

.venv/ready: requirements.lock conf/packages conf/coordinates tests/packages
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || { echo "make: Python 3.11 is needed, and '$(PYTHON)' is not that; name it with 'make PYTHON=...'" >&2; exit 2; }
	@command -v java >/dev/null || { echo "make: Java 17 is needed, and 'java' is not on PATH" >&2; exit 2; }
	@test -x .venv/bin/pip || $(PYTHON) -m venv .venv
	@echo "setup: installing requirements.lock into .venv"
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@# Spark would download the jars at its first start. With the download here, demo and tests do not wait for it.
	@RECONCILE_PACKAGES="$$(cat tests/packages)" SPARK_HOME="$$(.venv/bin/python -c 'import pyspark; print(pyspark.__path__[0])')" bash conf/spark-env.sh
	@touch $@

EXTRAS := dev test thrift spark dbt datastream spanner bigtable expectations
lock: pyproject.toml  ## choose new versions for setup to install
	.venv/bin/pip-compile --quiet --no-strip-extras $(EXTRAS:%=--extra %) --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-header -o requirements.lock pyproject.toml

audit: setup  ## list what setup installs, with the advisories about it
	@test -x target/audit/bin/pip-audit || { $(PYTHON) -m venv target/audit && target/audit/bin/pip install --quiet --disable-pip-version-check pip-audit==2.10.1; }
	@python tests/audit.py --pip-audit target/audit/bin/pip-audit --jars "$${RECONCILE_JARS:-$${XDG_CACHE_HOME:-$$HOME/.cache}/dbt-reconcile/jars}"

quickstart: setup  ## ten orders, appended, merged, tested and shown
	@python demo/quickstart.py

demo: setup  ## ingest the capture, merge it, prove parity: under 4 minutes on two cores
	@python demo/run.py

check: setup  ## under a minute, without Spark: style, types, the SQL of every shape of model, refusals, unit tests
	@ruff check . && ruff format --check --quiet .
	@mypy --no-error-summary & types=$$!; \
	python -m pytest -n 2 --quiet -m "not soak" tests/render tests/unit || code=1; \
	wait $$types || code=1; exit $${code:-0}

golden: setup  ## accept the SQL that is rendered now as the expected SQL in tests/sql
	python -m pytest --quiet --accept-goldens tests/render/test_golden_sql.py

reference: setup  ## write docs/reference from the code
	@python docs/reference.py

# mkdocs has its own environment, as pip-audit has.
docs: target/docs/ready  ## build the documentation as a site in target/site; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 target/docs/bin/mkdocs build --strict && echo "docs: target/site/index.html"

target/docs/ready: docs/requirements.txt
	@test -x target/docs/bin/pip || $(PYTHON) -m venv target/docs
	@target/docs/bin/pip install --quiet --disable-pip-version-check -r docs/requirements.txt
	@touch $@

lint: setup
	ruff check .
	ruff format --check .
	mypy
	@# The session has its own metastore, so that linting does not create lakehouse/.
	SPARK_SUBMIT_OPTS=-XX:TieredStopAtLevel=1 PYSPARK_SUBMIT_ARGS='--conf "spark.driver.extraJavaOptions=-Dderby.system.home=target/lint" --conf spark.sql.warehouse.dir=target/lint/warehouse pyspark-shell' sqlfluff lint --quiet models

# The tests that need Spark; `make check` runs the others. ON_ICEBERG: the tests that depend on the table format.
TABLES := $(addprefix tests/,lifecycle process functional cluster)
# make test-delta MINUTES=40 FROM=7: the laws and the lives of all kinds of models, then the other files, the seventh first, while time is left; as CI runs them.
ALWAYS := $(patsubst %,tests/fold/test_%.py,laws keyless_laws capture ledger quarantine snapshots_beside_log) tests/lifecycle/test_lives.py
OTHERS = $(filter-out $(ALWAYS),$(sort $(wildcard $(addsuffix /test_*.py,$(TABLES) tests/fold))))
LEVELS = $(if $(MINUTES),--minutes $(MINUTES) $(ALWAYS) $(shell printf '%s\n' $(OTHERS) | awk '{ file[NR] = $$0 } END { for (i = 0; i < NR; i++) print file[($(FROM) - 1 + i) % NR + 1] }'),tests/fold $(TABLES))
ON_ICEBERG := tests/lifecycle $(addprefix tests/functional/test_,iceberg.py iceberg_staging.py file_formats.py)

# An archive of loaded and verified Java classes, and a jar of the files that Spark reads from conf/ by class path; see tests/java/bin/java.
target/classes.jsa: .venv/ready conf/log4j2.properties conf/package-reconcile.orm tests/java/typical_run.py
	@mkdir -p target && rm -rf target/typical_run $@ && mkdir target/typical_run
	@.venv/bin/python -m zipfile -c target/conf.jar conf/log4j2.properties conf/package-reconcile.orm
	@echo "test: writing down the classes that tests share, once"
	@cd target/typical_run && TESTED_JAVA="$${JAVA_HOME:+$$JAVA_HOME/bin/}java" JAVA_HOME="$(CURDIR)/tests/java" CLASSES_TO="$(CURDIR)/$@" RECONCILE_PACKAGES="$$(cat ../../tests/packages)" SPARK_SUBMIT_OPTS="-XX:TieredStopAtLevel=1 -XX:+UseParallelGC" spark-submit ../../tests/java/typical_run.py >log 2>&1 || { cat log; exit 1; }
	@rm -r target/typical_run

# Two workers, each with a Spark session, since the driver plans on one core.
PYTEST := python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations=10

test: test-delta test-planted test-iceberg  ## test every rule: at most 8 minutes on two cores

test-delta: setup target/classes.jsa
	$(PYTEST) -m "not planted and not soak and not matrix" $(LEVELS)

# They show that the tests would notice a bug, and change their result only when tests or macros do: CI runs them in turn.
test-planted: setup target/classes.jsa
	$(PYTEST) -m "planted and not soak and not matrix" tests/fold

test-iceberg: setup target/classes.jsa
	$(PYTEST) -m "not soak and not matrix" --file-format iceberg $(ON_ICEBERG)

soak: soak-fold soak-lifecycle soak-process soak-functional soak-iceberg  ## run long variants of tests: at most 10 minutes

soak-fold soak-lifecycle soak-process: setup target/classes.jsa
	$(PYTEST) -m "soak and not matrix" tests/$(subst soak-,,$@) $(if $(filter soak-process,$@),tests/unit)

soak-functional: setup target/classes.jsa
	$(PYTEST) -m "soak and not matrix" tests/functional tests/cluster

soak-iceberg: setup target/classes.jsa
	$(PYTEST) -m "not soak and not matrix" --file-format iceberg tests/process/test_append_datastream.py -k "killed_at_each_place or purged or second_writer or append_of_nothing"
	$(PYTEST) -m "not soak and not matrix" --file-format iceberg tests/functional/test_maintain.py
	$(PYTEST) -m "not matrix" --file-format iceberg tests/functional/test_clustering.py
	$(PYTEST) -m "not matrix" -k "forty_values or tombstone" --file-format iceberg tests/functional/test_erase.py tests/functional/test_tombstones.py

matrix: setup target/classes.jsa  ## run one part of the longest tests, as PART=kills-delta-first, or other versions, as PART=lanes; without PART, list the parts and when each passed
	@python tests/matrix.py $(PART)

wheel: setup  ## build the wheel of the jobs: see docs/operations/versions.md
	@rm -rf build  # setuptools takes what an earlier build has left there
	@python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist . && ls dist

clean:
	rm -rf lakehouse target logs dbt_packages dist build
