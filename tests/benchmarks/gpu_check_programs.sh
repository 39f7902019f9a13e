#!/usr/bin/env bash
# Every program that tools/gpu_check.sh runs is a target of some CMakeLists.txt, and every benchmark
# for a GPU is run by one of its groups.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"

listed="$("$root/tools/gpu_check.sh" --list | awk '{ print $2 }' | sort -u)"
failed=0
# PROGRAMS, from standard input, that the text of the files does not have.
missing() {
  local name
  while read -r name; do
    grep -rqw --include=CMakeLists.txt -- "$name" "$root"/{benchmarks,examples,tests,tools} || echo "$name"
  done
}
for name in $(missing <<< "$listed"); do
  echo "tools/gpu_check.sh runs '$name', and no CMakeLists.txt makes it." >&2
  failed=1
done
benchmarks="$(cd "$root/benchmarks" && find gpu soak faults idle kernelet -name '*_benchmark.c[cu]' -printf '%f\n' | sed 's/\.c[cu]$//' | sort)"
for name in $(comm -13 <(echo "$listed") <(echo "$benchmarks")); do
  echo "No group of tools/gpu_check.sh runs '$name'." >&2
  failed=1
done
[[ "$(wc -l <<< "$listed")" -ge 30 && "$(wc -l <<< "$benchmarks")" -ge 10 ]] || failed=1
# The check itself: a program that nobody makes is found.
[[ "$(missing <<< no_such_"benchmark")" == no_such_benchmark ]] || failed=1
exit "$failed"
