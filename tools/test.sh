#!/usr/bin/env bash
# Everything that must pass: formats, ruff and mypy, the documentation site, all tests (pytest too), the sanitizers, the fuzzers, the ABI's gates,
# clang-tidy.
#
#   tools/test.sh            all of it
#   tools/test.sh --quick    format, ruff and mypy, the documentation site, the dev preset's tests
#   tools/test.sh --nightly  all of it, every test under both compilers, the tests of the label nightly, and fuzzing for ten minutes
#
# CI=true makes a missing nvcc an error, and the stage of the tests (gcc) runs only those that the address sanitizer's (clang)
# leaves out or runs otherwise. The others are compiled once more with gcc, for its warnings. GPUSHARE_FUZZ_SECONDS (default 60, in CI 20) and GPUSHARE_TIDY_SECONDS (default
# 240, in CI 90) bound the fuzzers and clang-tidy. GPUSHARE_DATA names the folder of the Azure traces;
# unset, ../shared/data is taken when it is there.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$root"

quick=0
nightly=0
case "${1:-}" in
  --quick) quick=1 ;;
  --nightly) nightly=1 ;;
  '') ;;
  *) die "tools/test.sh does not know the argument '$1'; it knows --quick and --nightly." ;;
esac

if [[ -z "${GPUSHARE_DATA:-}" && -d "$root/../shared/data" ]]; then
  GPUSHARE_DATA="$(cd "$root/../shared/data" && pwd)"
  export GPUSHARE_DATA
fi

# Continuous integration has 90 minutes, on a machine that is at times three times slower. The tests come first then.
slow_seconds=2700
ray_seconds=600  # to install Ray Serve, which takes one minute on an idle machine

failed=()
# stage NAME COMMAND...: runs it, says how long it took, remembers a failure and goes on.
stage() {
  local name="$1" start=$SECONDS
  shift
  say "== $name"
  if "$@"; then
    say "== $name: passed in $((SECONDS - start)) s"
  else
    failed+=("$name")
    say "== $name: FAILED after $((SECONDS - start)) s"
  fi
}

build_and_test() {  # PRESET TEST_PRESET [-DOPTION=...]
  local preset="$1" tests="$2"
  shift 2
  (
    set -e
    configure "$preset" "$@"
    compile "$preset"
    ctest --preset "$tests" -j "$jobs"
  )
}

# A thread-sanitizer build of everything would cost minutes; only what several threads touch is built.
build_and_test_threaded() {
  (
    set -e
    configure tsan
    compile tsan tests_threaded
    ctest --preset tsan -j "$jobs"
  )
}

python_checks() {
  (
    set -e
    "$python_tools/bin/python" -B bindings/python/generate.py
    cd bindings/python
    "$python_tools/bin/ruff" check --no-cache . ../../tests/python ../../examples ../../benchmarks/engines ../../benchmarks/matrix ../../benchmarks/papers ../../benchmarks/ray ../../tools/site ../../tests/gates/site_test.py ../rust
    "$python_tools/bin/mypy" --strict --cache-dir=/dev/null gpushare abi_json.py c_header.py c_layout.py generate.py ../../tests/python/typing_check.py
  )
}

tidy() {
  (
    set -e
    configure tidy
    python3 tools/tidy.py build/tidy --jobs "$jobs" --seconds "$GPUSHARE_TIDY_SECONDS"
  )
}

"$root/tools/setup.sh" --cuda
toolkit="$(cuda_toolkit)"
cuda=AUTO
tests=ALL
preset=dev
if [[ $nightly -eq 1 ]]; then
  preset=nightly
  : "${GPUSHARE_FUZZ_SECONDS:=600}"
fi
if [[ "${CI:-}" == true ]]; then
  cuda=ON
  if [[ $quick -eq 0 && $nightly -eq 0 ]]; then tests=NOT_SANITIZED; fi
  : "${GPUSHARE_FUZZ_SECONDS:=20}" "${GPUSHARE_TIDY_SECONDS:=90}"
fi
export GPUSHARE_FUZZ_SECONDS="${GPUSHARE_FUZZ_SECONDS:-60}" GPUSHARE_TIDY_SECONDS="${GPUSHARE_TIDY_SECONDS:-240}"

# The library is tested as packages carry it, if the source of its Abseil is to be had; else the test of the package skips.
abseil="$(tools/abseil_source.sh || true)"

stage 'clang-format' tools/format.sh --check
stage 'ruff and mypy' python_checks
stage 'documentation site' tools/docs.sh
if [[ $quick -eq 0 ]]; then
  stage 'address and undefined-behaviour sanitizers' build_and_test asan asan
  stage 'thread sanitizer' build_and_test_threaded
  if [[ "${CI:-}" == true && $SECONDS -gt $slow_seconds ]]; then
    say "== fuzzers, clang-tidy: left out, because this machine took $SECONDS s for the sanitizers (more than $slow_seconds s)"
  else
    stage 'fuzzers' tools/fuzz.sh
    stage 'clang-tidy' tidy
  fi
fi
# For the test python_ray alone, which skips without it, as where there is no network.
if [[ "${CI:-}" == true && $SECONDS -gt $slow_seconds ]]; then
  say "== Ray Serve: left out, because this machine took $SECONDS s until here (more than $slow_seconds s)"
elif [[ $quick -eq 0 ]] && ! timeout "$ray_seconds" tools/setup.sh --ray; then
  say "== Ray Serve: not installed, for the reason above or because it took $ray_seconds s; the test python_ray skips"
fi
stage 'tests' build_and_test dev "$preset" "-DGPUSHARE_CUDA=$cuda" "-DGPUSHARE_CUDA_TOOLKIT=$toolkit" "-DGPUSHARE_TESTS=$tests" \
  "-DGPUSHARE_ABSEIL_SOURCE=$abseil"
if [[ $tests == NOT_SANITIZED ]]; then
  stage 'warnings of gcc in the other tests' python3 tools/check_warnings.py build/dev --jobs "$jobs"
fi

if [[ ${#failed[@]} -gt 0 ]]; then
  printf -v list '%s, ' "${failed[@]}"
  die "failed: ${list%, } (after $SECONDS s)."
fi
say "everything passed in $SECONDS s"
