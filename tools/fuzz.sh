#!/usr/bin/env bash
# Builds the fuzzers (libFuzzer, in the asan preset's build) and runs each.
#
#   tools/fuzz.sh [FUZZER...]
#
# GPUSHARE_FUZZ_SECONDS: seconds of fuzzing for all of them together (default 60). What a fuzzer finds is
# left under build/asan/findings; inputs that it found worth keeping are under build/asan/corpus.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds="${GPUSHARE_FUZZ_SECONDS:-60}"
configure asan
compile asan fuzzers
mapfile -t fuzzers < <(sources_named tests/fuzz _fuzzer.cc)
if [[ $# -gt 0 ]]; then fuzzers=("$@"); fi
[[ ${#fuzzers[@]} -gt 0 ]] || die "tests/fuzz has no fuzzer."

# Each runs by itself, `jobs` of them at a time.
each=$((seconds * (jobs < ${#fuzzers[@]} ? jobs : ${#fuzzers[@]}) / ${#fuzzers[@]}))
if [[ $each -lt 1 ]]; then each=1; fi
findings="$root/build/asan/findings"
mkdir -p "$findings"
say "fuzzing ${fuzzers[*]} for $each s each, $jobs at a time"

run_one() {
  local name="$1" each="$2" corpus="$root/build/asan/corpus/$1" log="$findings/$1.log"
  local seeds="$root/tests/fuzz/corpus/$1"
  mkdir -p "$corpus"
  local folders=("$corpus")
  if [[ -d "$seeds" ]]; then folders+=("$seeds"); fi
  local dictionary=()
  if [[ -f "$root/tests/fuzz/$name.dict" ]]; then dictionary=("-dict=$root/tests/fuzz/$name.dict"); fi
  if "$root/build/asan/tests/fuzz/$name" -max_total_time="$each" -timeout=20 -rss_limit_mb=2048 \
    -max_len=16384 -print_final_stats=1 -artifact_prefix="$findings/$name-" "${dictionary[@]}" \
    "${folders[@]}" > "$log" 2>&1; then
    printf 'gpushare: %s: clean after %s inputs\n' "$name" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  else
    tail -n 80 "$log" >&2
    printf 'gpushare: %s found a problem; its input is under build/asan/findings.\n' "$name" >&2
    return 1
  fi
}
export -f run_one
export root findings
# shellcheck disable=SC2016  # the inner shell expands them
printf '%s\n' "${fuzzers[@]}" | xargs -P "$jobs" -I{} bash -c 'run_one "$1" "$2"' _ {} "$each"
