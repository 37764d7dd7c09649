#!/usr/bin/env bash
# Checks that the command compiles for other systems, without linking and without a C compiler: all of it for Linux on
# aarch64, transfers and the lab for macOS, the lab for Windows. Then builds it with its transfer commands only, for this
# system, and checks that help and errors name the commands that it leaves out. For a target that the Rust toolchain
# lacks, Debian's compiler is fetched; if that fails, the target is skipped with a line. Results are cached in
# target/targets.
# usage: tests/targets.sh [TARGET]...
set -euo pipefail
. "$(dirname "$0")/../packaging/words.sh"
cd "$root"
targets=("$@")
if [ ${#targets[@]} = 0 ]; then targets=(aarch64-unknown-linux-musl aarch64-apple-darwin x86_64-pc-windows-gnu); fi

# blake3 in Rust alone.
export CARGO_FEATURE_PURE=1 CARGO_TARGET_DIR=target/targets CARGO_INCREMENTAL=0
# aws-lc-sys and zstd-sys with declarations only: their build scripts, which need a C compiler, are replaced.
aws_lc=$(sed -n '/^name = "aws-lc-sys"$/{n;s/^version = "\(.*\)"$/aws_lc_\1/;s/[.]/_/gp}' Cargo.lock)

for target in "${targets[@]}"; do
  if ! need_target "$target"; then
    say "skipped: $target: the Rust toolchain has no such target, and Debian's compiler cannot be fetched"
    continue
  fi
  case $target in
    *-linux-*) features=() ;;
    *-apple-*) features=(--no-default-features --features "transfer lab") ;;
    *) features=(--no-default-features --features lab) ;;
  esac
  declared=target.$target.$aws_lc
  "${CARGO:-cargo}" check --quiet --locked --target "$target" --package fairwave-cli ${std[@]+"${std[@]}"} \
    ${features[@]+"${features[@]}"} \
    --config "$declared.rustc-cfg=[\"universal\"]" --config "$declared.root=\"/nonexistent\"" \
    --config "$declared.include=\"/nonexistent\"" --config "target.$target.zstd.root=\"/nonexistent\""
  say "good: $target"
done
if [ $# != 0 ]; then exit; fi
unset RUSTC RUSTC_BOOTSTRAP

"${CARGO:-cargo}" build --quiet --locked --package fairwave-cli --no-default-features --features transfer
small=target/targets/debug/fairwave
"$small" --help | grep -q '^Not in this build (feature lab): simulate, sweep,' || { "$small" --help; exit 1; }
if said=$("$small" simulate five-to-one 2>&1) || [ $? != 2 ]; then echo "the lab is not left out: $said"; exit 1; fi
[[ $said = *"'simulate' needs the feature 'lab', which this build leaves out"* ]] || { echo "$said"; exit 1; }
say "good: transfer alone"
