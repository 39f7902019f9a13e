# shellcheck shell=bash
# What the scripts of this folder share; sourced, never run.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
jobs="${GPUSHARE_JOBS:-$(nproc)}"

say() { printf 'gpushare: %s\n' "$*"; }
die() {
  printf 'gpushare: %s\n' "$*" >&2
  exit 1
}

# Folder where tools/setup.sh puts the CUDA toolkit's wheels when the machine has no nvcc.
cuda_wheels="$root/build/cuda-toolchain"

# Prints the root of the CUDA toolkit to build with, or nothing.
cuda_toolkit() {
  local nvcc
  if [[ -z "${GPUSHARE_FORCE_CUDA_WHEELS:-}" ]]; then
    if [[ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]]; then
      printf '%s\n' "${CUDA_HOME:-/usr/local/cuda}"
      return
    fi
    if nvcc="$(command -v nvcc)"; then
      dirname "$(dirname "$(readlink -f "$nvcc")")"
      return
    fi
  fi
  if [[ -x "$cuda_wheels/bin/nvcc" ]]; then printf '%s\n' "$cuda_wheels"; fi
}

# configure PRESET [-DOPTION=...]: cmake, quiet unless it fails. Does nothing when the same options were
# configured before; ninja itself runs cmake again when a CMakeLists.txt has changed.
configure() {
  local preset="$1"
  shift
  local folder="$root/build/$preset" options="$*" log
  if [[ -f "$folder/build.ninja" && "$(cat "$folder/.configured" 2>/dev/null)" == "$options" ]]; then
    return
  fi
  mkdir -p "$folder"
  log="$folder/configure.log"
  say "configuring build/$preset"
  if ! (cd "$root" && cmake --preset "$preset" "$@") > "$log" 2>&1; then
    cat "$log" >&2
    die "cmake failed for the preset $preset."
  fi
  grep -E '^-- gpushare: ' "$log" | sed 's/^-- //' || true
  printf '%s' "$options" > "$folder/.configured"
}

# compile PRESET [TARGET...]: ninja, quiet unless it fails or compiles for long.
compile() {
  local preset="$1" start=$SECONDS
  shift
  say "building build/$preset"
  local log="$root/build/$preset/build.log"
  if ! ninja -C "$root/build/$preset" -j "$jobs" "$@" > "$log" 2>&1; then
    grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking|Checking)' "$log" | tail -n 200 >&2
    die "the build of the preset $preset failed."
  fi
  say "built build/$preset in $((SECONDS - start)) s"
}

# sources_named FOLDER ENDING: the names, without the ending, of the files in FOLDER that end so.
sources_named() {
  local file
  for file in "$root/$1"/*"$2"; do
    if [[ -f "$file" ]]; then basename "$file" .cc; fi
  done
}
