# What a newcomer does, one command each. `make help` lists them.

CARGO ?= cargo
PYTHON ?= python3
OUT ?= out
TARGET := $(or $(CARGO_TARGET_DIR),target)
SSDLAB := $(TARGET)/release/ssdlab
# Says how long a suite took.
TIMED := scripts/timed

DRIVES := demo-slc demo-tlc demo-qlc
RECORDING := examples/recordings/rocksdb_fillrandom_overwrite_ext4.csv.zst
# Seconds that each fuzz target runs in `make test`.
FUZZ_SECONDS ?= 15
# Seeds of the campaign in `make test`: more than 100,000 power cuts.
TORTURE_SEEDS ?= 12000
# Systems that `make test` draws.
SYSTEMS ?= 2000
# Seconds that `make torture`, `make torture-live` and each target of `make fuzz` go on, and the seed of everything random in
# them and in `make properties`: by default the commit's.
SECONDS_LONG = $(if $(filter command line environment override,$(origin SECONDS)),$(SECONDS),600)
SEED ?= $(or $(shell git rev-parse --short HEAD 2>/dev/null),1)

# Cases that `make properties` draws for each property.
CASES ?= 5000

# Whether `make check` runs the unit tests of base, flash and device, which are a build of their own: those three crates alone have
# other features of their dependencies.
UNIT_TESTS ?= yes

# Test programs have the seeded bugs in them, each off until a test turns it on: so all that tests need is built once.
SEEDED := --features ssdlab-torture/seeded-bugs,ssdlab-live/seeded-bugs,ssdlab-fs/seeded-bugs

.DEFAULT_GOAL := help
.PHONY: help demo build try check test test-build test-rust test-recorded test-docs test-docs-long test-systems test-report test-live torture-live test-torture torture properties test-fuzz fuzz bench bench-serve fmt deps clean need-rust need-python

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-12s %s\n", $$1, $$2 }'

demo: build ## Replay a real program's recording and the steady-state experiment on three drives; reports under out/
	@echo
	@echo "== RocksDB on ext4, recorded block by block (examples/recordings), on three drives written full before =="
	$(SSDLAB) run --device $(DRIVES) --workload $(RECORDING) \
		--precondition fill --replay closed:8 --out $(OUT)/rocksdb
	@echo
	@echo "== Uniform random overwrites, 32 at a time, until write amplification is steady and then once over the drive =="
	$(SSDLAB) run --device $(DRIVES) --workload rw=randwrite,bs=4k,iodepth=32,size=100%,io_size=100%,norandommap \
		--precondition steady --out $(OUT)/steady
	@echo
	@echo "Reports to look at: $(OUT)/rocksdb/report.html and $(OUT)/steady/report.html"

build: need-rust ## Build the command: target/release/ssdlab
	$(CARGO) build --release --locked -p ssdlab-cli

# Without optimisation across crates, and with what the last build left: an edit is compiled in under a minute.
try: need-rust ## Build quickly after an edit and run the command: make try ARGS="run -d demo-tlc -w rw=randwrite,bs=4k"
	@$(CARGO) build --profile try --locked -p ssdlab-cli
	@$(if $(ARGS),$(TARGET)/try/ssdlab $(ARGS),echo "built $(TARGET)/try/ssdlab; ARGS=\"run ...\" runs it")

check: need-rust need-python ## Check format, invariants, types of errors, words of comments, links of pages, lints, the API's documentation, dependencies, and run the unit tests of base, flash and device: a few minutes
	@$(CARGO) fmt --all --check
	@$(PYTHON) scripts/assertions
	@$(PYTHON) scripts/errors
	@$(PYTHON) scripts/words
	@$(PYTHON) scripts/links
	@$(TIMED) "lints" $(CARGO) clippy --workspace --all-targets --locked $(SEEDED) -- -D warnings
	@RUSTDOCFLAGS="-D warnings" $(TIMED) "documentation of the API" $(CARGO) doc --workspace --no-deps --locked --quiet
	@CARGO="$(CARGO)" $(TIMED) "dependencies" scripts/deps
	@$(if $(filter no,$(UNIT_TESTS)),echo "unit tests: left to make test",$(TIMED) "unit tests" \
		$(CARGO) test --locked -p ssdlab-base -p ssdlab-flash -p ssdlab-device --lib \
		--features ssdlab-flash/seeded-bugs,ssdlab-device/seeded-bugs)

test: test-rust test-recorded test-docs test-systems test-report test-live test-torture test-fuzz ## Run all tests: Rust, recorded results, numbers of the documentation, whole systems, the report in headless Chromium, served drives, power cuts, the fuzz targets

# What all suites use: the test programs, and the command in their profile.
test-build: need-rust need-python
	@CARGO="$(CARGO)" $(TIMED) "building the Rust tests" $(PYTHON) scripts/rust-tests --build $(SEEDED)

test-rust: test-build ## Run the Rust tests of all crates, those that look for seeded bugs among them
	@CARGO="$(CARGO)" $(TIMED) "the Rust tests" $(PYTHON) scripts/rust-tests $(SEEDED)

test-recorded: test-build ## Hold the results of many small runs against the recorded ones, to the nanosecond
	@$(TIMED) "recorded results" $(PYTHON) tests/results/run.py $(TARGET)/debug/ssdlab

test-docs: test-build ## Hold the cheapest numbers of the documentation against what the commands find now
	@$(TIMED) "numbers of the documentation: products" $(PYTHON) scripts/products $(TARGET)/debug/ssdlab --check --quick
	@$(TIMED) "numbers of the documentation: dram-less" $(PYTHON) scripts/dram-less $(TARGET)/debug/ssdlab --check --quick
	@$(TIMED) "numbers of the documentation: transcripts" $(PYTHON) scripts/transcripts $(TARGET)/debug/ssdlab --quick

test-docs-long: build need-python ## Hold all numbers of the documentation that a script finds against what it finds now, in half an hour
	$(PYTHON) scripts/products $(SSDLAB) --check
	$(PYTHON) scripts/dram-less $(SSDLAB) --check
	$(PYTHON) scripts/transcripts $(SSDLAB)
	$(PYTHON) scripts/victims $(SSDLAB) --check
	$(PYTHON) scripts/shrd-pays $(SSDLAB) --check

test-systems: test-build ## Draw 2,000 whole systems and run the command on them
	@$(TIMED) "whole systems" $(PYTHON) tests/systems/run.py $(TARGET)/debug/ssdlab --systems $(SYSTEMS) --save $(OUT)/systems

test-report: test-build ## Probe the report in headless Chromium
	@$(TIMED) "the report in a browser" $(PYTHON) tests/report/chromium.py $(TARGET)/debug/ssdlab

test-live: test-build ## Serve drives to real programs and cut their power
	@$(TIMED) "served drives" $(PYTHON) tests/live/run.py $(TARGET)/debug/ssdlab --seeded $(TARGET)/debug/examples/seeded_server

torture-live: need-rust need-python ## Cut the power of served drives for SECONDS=600 under file systems and databases
	$(CARGO) build --release --locked -p ssdlab-cli
	$(PYTHON) tests/live/run.py $(SSDLAB) --seed "$(SEED)" --seconds $(SECONDS_LONG) kill/kill stacks/kill full_disk/kill segments/kill filesystems databases caches fio_jobs

test-torture: test-build ## Cut the power of small drives more than 100,000 times
	@SSDLAB_TORTURE_SEEDS=$(TORTURE_SEEDS) CARGO="$(CARGO)" $(TIMED) "power cuts" \
		$(PYTHON) scripts/rust-tests --only "torture: campaign::drives_survive" $(SEEDED) -- --nocapture

torture: build need-python ## Cut the power of every design, of a cached map alone, then of stacks, of drives with their drivers, under each command set, under file systems, and of `append` alone, and run whole systems, for SECONDS=600 each, with seeds of the commit's own; then all sequences of 4, through the driver too, and of 3 calls on a file system; then test-docs-long
	$(SSDLAB) torture --seed $(shell printf '%d' 0x$(SEED)) --until $(SECONDS_LONG)s
	$(SSDLAB) torture --design dftl --seed $(shell printf '%d' 0x$(SEED)) --until $(SECONDS_LONG)s
	$(SSDLAB) torture --stacks --seed $(shell printf '%d' 0x$(SEED)) --until $(SECONDS_LONG)s
	$(SSDLAB) torture --drivers --seed $(shell printf '%d' 0x$(SEED)) --until $(SECONDS_LONG)s
	set -e; for set in cache segments shrd tags; do \
		$(SSDLAB) torture --command-set $$set --seed $(shell printf '%d' 0x$(SEED)) --until $(SECONDS_LONG)s; done
	set -e; for kind in alfs lfs journaling; do \
		$(SSDLAB) torture --fs $$kind --seed $(shell printf '%d' 0x$(SEED)) --until $(SECONDS_LONG)s; done
	$(SSDLAB) torture --host papers/amf/append.toml --seed $(shell printf '%d' 0x$(SEED)) --until $(SECONDS_LONG)s
	$(SSDLAB) torture --host examples/hosts/append.toml --device zns-tlc-1t --seed $(shell printf '%d' 0x$(SEED)) --until $(SECONDS_LONG)s
	$(PYTHON) tests/systems/run.py $(SSDLAB) --seed "$(SEED)" --seconds $(SECONDS_LONG) --save $(OUT)/systems
	SSDLAB_TORTURE=300 $(CARGO) test --release --locked -p ssdlab-torture --test it shrd:: -- --nocapture
	SSDLAB_TORTURE=500 $(CARGO) test --release --locked -p ssdlab-torture --test it segments:: -- --nocapture
	SSDLAB_SEQUENCES=4 $(CARGO) test --release --locked -p ssdlab-torture --test it stacks::every_cut -- --nocapture
	$(SSDLAB) torture --exhaustive 4
	$(SSDLAB) torture --fs alfs --exhaustive 3
	$(SSDLAB) torture --fs lfs --exhaustive 3
	$(SSDLAB) torture --fs journaling --exhaustive 3
	$(MAKE) test-docs-long

properties: need-rust ## Run the Rust tests with CASES=5000 cases a property, with seeds of the commit's own
	PROPTEST_RNG_SEED=$(shell printf '%d' 0x$(SEED)) PROPTEST_CASES=$(CASES) $(CARGO) test --release --workspace --locked --no-fail-fast

test-fuzz: need-rust
	@CARGO="$(CARGO)" $(TIMED) "fuzz targets" scripts/fuzz $(FUZZ_SECONDS) 1

fuzz: need-rust ## Run every fuzz target for SECONDS=600, with another seed each time
	@CARGO="$(CARGO)" scripts/fuzz $(SECONDS_LONG) 0

bench: need-rust need-python ## Measure requests a second and bytes a page, beside the last recorded figures
	@CARGO="$(CARGO)" benches/run

bench-serve: build need-python ## Measure a served drive beside nbdkit's memory plugin, and how punctual it is
	benches/serve $(SSDLAB)

fmt: need-rust ## Format all code
	$(CARGO) fmt --all

deps: need-rust ## Check licences, versions and sources of the dependencies (deny.toml)
	@CARGO="$(CARGO)" scripts/deps

clean: ## Remove what was built and what the demo wrote
	$(CARGO) clean
	rm -rf $(OUT)

need-rust:
	@command -v $(CARGO) >/dev/null 2>&1 || { \
		echo "error: cargo is missing: install Rust 1.88 or later, see https://rustup.rs" >&2; exit 1; }
	@command -v cc >/dev/null 2>&1 || { \
		echo "error: a C compiler is missing (cc; zstd and xz need it): Debian, Ubuntu: apt-get install build-essential;" \
			"Fedora: dnf install gcc; macOS: xcode-select --install" >&2; exit 1; }

need-python:
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
		echo "error: python3 is missing (3.11 or later, for the report's test): Debian, Ubuntu: apt-get install python3;" \
			"Fedora: dnf install python3; macOS: brew install python" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "error: $(PYTHON) is older than 3.11: install a later one, or name it with make PYTHON=..." >&2; exit 1; }
