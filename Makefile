# Fairwave. `make demo` shows what it does, `make test` proves it; both do all set-up themselves.
# Needed beforehand: a Rust toolchain (rustup) and Python 3.11 or newer.

CARGO  ?= cargo
PYTHON ?= python3
VENV   := .venv
BIN    := target/release/fairwave
OUT    ?= out

export PYTHONDONTWRITEBYTECODE := 1
export MPLBACKEND := Agg

.PHONY: help build python demo test check test-rust test-bytes test-python bench soak report deny audit clean

help:            ## this list
	@grep -E '^[a-z-]+: .*##|^[a-z-]+:  +##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 14

build: $(BIN) python ## target/release/fairwave, and a .venv in which `import fairwave` works

.PHONY: $(BIN)
$(BIN):
	$(CARGO) build --release --locked

demo: $(BIN)     ## three networks, as text and as pictures in out/
	@bash examples/demo.sh $(BIN) $(OUT)

test: check test-rust test-bytes test-python ## everything that must be green
	@echo "all tests passed"

check:           ## formatting, lints, arrows, licences, docs, types
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --workspace --exclude fairwave-python --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items

test-rust:
	$(CARGO) test --locked

test-bytes: $(BIN) ## the same bytes from the debug and the release build, on one and on two threads
	$(CARGO) build --locked
	bash tests/same_bytes.sh target/debug/fairwave $(BIN)

bench:           ## criterion benches of all rooms
	$(CARGO) bench --locked

soak: $(BIN)     ## the long counts: thousands of random instances
	bash tests/soak.sh

report: $(BIN)   ## every experiment of the papers, full length, into report/
	$(BIN) papers run all --out report

clean:           ## remove what was built
	$(CARGO) clean
	rm -rf $(VENV) $(OUT) report
