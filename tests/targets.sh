#!/usr/bin/env bash
# Checks that the code compiles for other systems, without linking and without a C compiler: the whole command for Linux
# on aarch64, the lab for macOS and Windows. A target that the Rust toolchain lacks is installed by rustup; if that fails,
# the target is skipped with a line. Results are cached in target/targets.
# usage: tests/targets.sh [TARGET]...
set -euo pipefail
cd "$(dirname "$0")/.."
lab=(units schemes node proto scenario sim fluid catalogue)
targets=("$@")
if [ ${#targets[@]} = 0 ]; then targets=(aarch64-unknown-linux-musl aarch64-apple-darwin x86_64-pc-windows-gnu); fi

# blake3 in Rust alone.
export CARGO_FEATURE_PURE=1 CARGO_TARGET_DIR=target/targets CARGO_INCREMENTAL=0
# aws-lc-sys with declarations only: its build script, which needs a C compiler, is replaced.
aws_lc=$(sed -n '/^name = "aws-lc-sys"$/{n;s/^version = "\(.*\)"$/aws_lc_\1/;s/[.]/_/gp}' Cargo.lock)

for target in "${targets[@]}"; do
  if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ] && ! rustup --quiet target add "$target" >/dev/null 2>&1; then
    echo "skipped: $target: the Rust toolchain has no such target, and rustup cannot fetch it" >&2
    continue
  fi
  case $target in
  *-linux-*) crates=(cli) ;;
  # The journal of a sweep is locked by its device and inode number, which Windows does not have.
  *-windows-*) crates=("${lab[@]}") ;;
  *) crates=("${lab[@]}" study) ;;
  esac
  declared=target.$target.$aws_lc
  "${CARGO:-cargo}" check --quiet --locked --target "$target" "${crates[@]/#/--package=fairwave-}" \
    --config "$declared.rustc-cfg=[\"universal\"]" --config "$declared.root=\"/nonexistent\"" \
    --config "$declared.include=\"/nonexistent\""
  echo "good: $target: ${crates[*]}" >&2
done
