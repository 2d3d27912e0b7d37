# The commands of this project. `make demo` shows the router at work, `make test` proves it.
# What each needs on Debian 12 beside Rust is installed when root, else named in one line.

CARGO ?= cargo
# Where cargo builds: target/ unless a variable says otherwise.
export CARGO_TARGET_DIR ?= $(CURDIR)/target
WEIR := $(CARGO_TARGET_DIR)/release/weir
# The collector is a workspace of its own, with a target folder of its own.
COLLECTOR_TARGET ?= $(CARGO_TARGET_DIR)/collector
COLLECTOR_CARGO := cd collector && CARGO_TARGET_DIR=$(COLLECTOR_TARGET) $(CARGO)

.PHONY: help build deb demo demo-bgp demo-lab demo-ixp demo-xdp demo-collector test test-collector test-long test-kernel bench mutants deny setup setup-demo hooks docs fmt

help:
	@echo "make demo       watch a router forward traffic between two hosts and measure it (root)"
	@echo "make demo-bgp   a full table by BGP into the forwarding tables, a link cut, a crash of BIRD (root, bird2)"
	@echo "make demo-lab   check the traffic generator and its searches, compare Weir and the Linux bridge (root)"
	@echo "make demo-ixp   BGP policy at two exchanges: leaks, hijacks, an undo, a de-peering, with BIRD (root)"
	@echo "make demo-xdp   frames to guests: cost beside the Linux bridge, restart, upgrade, samples (root)"
	@echo "make test       format, lints, layers, links, docs, tests"
	@echo "make test-long  the long runs: loom models, release-build tests, full benches"
	@echo "make test-collector  format and tests of the collector (part of make test)"
	@echo "make demo-collector  three routers, a flood, losses and a crash, and what the collector shows (root)"
	@echo "make test-kernel  against Debian's kernels in qemu: their tags, bonds and labels, AF_XDP zero-copy"
	@echo "make mutants    changes of the code that no test notices (cargo-mutants; part of test-long)"
	@echo "make deny       licences, sources and versions of all crates by deny.toml (cargo-deny; part of make test)"
	@echo "make build      the release binary, target/release/weir"
	@echo "make deb        a Debian package with service, man pages and completions, in target/debian"
	@echo "make hooks      check commit subjects in this clone"
	@echo "make docs       the documentation site, in target/book (needs mdbook)"
	@echo "make bench      what a packet costs on this machine"

# Packages of the demo alone, and those of the tests.
setup-demo:
	@./scripts/setup demo

setup:
	@./scripts/setup test

build:
	$(CARGO) build --release --locked -p weir
	@if [ "$(CARGO_TARGET_DIR)" != "$(CURDIR)/target" ]; then mkdir -p target/release && ln -sf "$(WEIR)" target/release/weir; fi

deb: build
	mkdir -p target
	$(CARGO) run -q --locked -p xtask -- licenses target/copyright
	WEIR_COPYRIGHT=target/copyright packaging/deb $(WEIR) target/debian

demo: setup-demo build
	$(WEIR) demo $(DEMO_ARGS)

demo-bgp: setup build
	$(WEIR) demo bgp $(DEMO_ARGS)

demo-lab: setup-demo build
	$(WEIR) lab demo $(DEMO_ARGS)

demo-ixp: setup build
	$(WEIR) peering demo $(DEMO_ARGS)

demo-xdp: setup build
	$(WEIR) xdp demo $(DEMO_ARGS)

bench: build
	$(WEIR) bench

# Which changes of the code no test notices (cargo-mutants): each day another part of them; hours.
mutants:
	scripts/mutants

# Without the network: neither advisories nor the index are fetched, nor crates that only other systems need.
deny:
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny --offline --locked --target x86_64-unknown-linux-gnu check bans licenses sources; \
	else echo "skipped: no cargo-deny (cargo install cargo-deny --locked)"; fi

hooks:
	git config core.hooksPath .githooks

docs:
	mdbook build docs

fmt:
	$(CARGO) fmt --all

test: setup
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -q -- -D warnings
	$(CARGO) run -q --locked -p xtask -- deps-check
	$(CARGO) run -q --locked -p xtask -- docs-check
	$(CARGO) run -q --locked -p xtask -- licenses
	$(MAKE) --no-print-directory deny
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked -q
	$(CARGO) run -q --locked -p xtask -- instructions
	$(MAKE) test-collector
	$(CARGO) run -q --locked -p xtask -- test

# DuckDB and chDB (pip install duckdb chdb-core) are used as oracles where they are installed.
test-collector:
	$(COLLECTOR_CARGO) fmt --check
	$(COLLECTOR_CARGO) test --locked

# The test build, since its dependencies are then built once for both.
demo-collector: setup-demo build
	$(COLLECTOR_CARGO) test --locked --no-run
	python3 collector/demo/demo.py --weir $(WEIR) --collector $(COLLECTOR_TARGET)/debug/weir-collector \
	  --screenshots $(COLLECTOR_TARGET)/demo $(DEMO_ARGS)

# Says what it needs where something is missing; a quarter of an hour at most.
# The suites of Debian whose kernels are tried; "own" is the one that this machine has.
KERNEL_SUITES ?= own trixie trixie-backports
test-kernel: setup
	set -e; for suite in $(KERNEL_SUITES); do \
	  CARGO="$(CARGO)" WEIR_KERNEL_SUITE="$${suite#own}" scripts/test-kernel $(KERNEL_CASES); done

test-long: test build
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$(CARGO_TARGET_DIR)/loom" $(CARGO) test -p weir-ring --release --locked
	WEIR_LONG=1 $(CARGO) test --workspace --profile long --locked
	$(CARGO) test -p weir --profile long --locked --test python_client --test schemathesis -- --ignored
	packaging/test $(WEIR)
	scripts/mutants
	$(CARGO) run -q --locked -p xtask -- instructions $(WEIR)
	$(WEIR) bench
