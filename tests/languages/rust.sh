#!/usr/bin/env bash
# Builds the Rust crates against an installed prefix, runs their tests and their example on the simulated device.
#
#   tests/languages/rust.sh BUILD_OR_PREFIX [CMAKE]    a build tree, which is installed first, or a prefix
#
# Exit code 77: there is no cargo, or one older than 1.63.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
crates="$here/../../bindings/rust"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

version="$(cargo --version 2> /dev/null | sed -n 's/^cargo \([0-9.]*\).*/\1/p' || true)"
if [[ -z "$version" ]] || [[ "$(printf '1.63\n%s\n' "$version" | sort -V | head -n 1)" != 1.63 ]]; then
  echo "Skipped: the crates need cargo 1.63 or later, and there is ${version:-none}."
  exit 77
fi
prefix="$1"
if [[ -f "$1/CMakeCache.txt" ]]; then
  prefix="$scratch/prefix"
  "${2:-cmake}" --install "$1" --prefix "$prefix" > "$scratch/install.log" || { cat "$scratch/install.log" >&2; exit 1; }
  # What is installed is what a user builds.
  crates="$prefix/share/gpushare/rust"
fi
export GPUSHARE_DEVICE=sim CARGO_TARGET_DIR="$scratch/target" CARGO_NET_OFFLINE=true RUSTFLAGS='-D warnings'
unset LD_LIBRARY_PATH
cd "$scratch"
cp -R "$crates" crates
cd crates

# Found by pkg-config; then by GPUSHARE_PREFIX.
PKG_CONFIG_PATH="$(dirname "$(find "$prefix" -name gpushare.pc)")" cargo check --quiet
export GPUSHARE_PREFIX="$prefix"
cargo test --quiet
cargo run --quiet --example quickstart | tee "$scratch/printed"
grep -q '^query: ok in [0-9]* us$' "$scratch/printed" || { echo 'The example shows no query.' >&2; exit 1; }
grep -q '^training step: evicted [1-9][0-9]* times$' "$scratch/printed" || { echo 'The example shows no eviction.' >&2; exit 1; }

# A prefix without the library is an error that names it.
if GPUSHARE_PREFIX="$scratch/nowhere" cargo check --quiet 2> "$scratch/error.log"; then
  echo 'A prefix without the library is not refused.' >&2
  exit 1
fi
grep -q "$scratch/nowhere" "$scratch/error.log" || { cat "$scratch/error.log" >&2; exit 1; }
if cargo fmt --version > /dev/null 2>&1; then cargo fmt --check; fi
echo "The Rust crates work with cargo $version."
