#!/usr/bin/env bash
# Builds the benchmarks (Release) and runs each, with the machine, the commit and the command in the
# result: benchmarks/results/<benchmark>.json.
#
#   tools/bench.sh [BENCHMARK...]     e.g. host_benchmark; without arguments all of them
#
# GPUSHARE_BENCH_SECONDS: least seconds of one measurement (default 1); each is repeated 5 times, and the
# medians over the repetitions are what counts.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds="${GPUSHARE_BENCH_SECONDS:-1}"
benchmarks=("$@")
if [[ ${#benchmarks[@]} -eq 0 ]]; then
  mapfile -t benchmarks < <(sources_named benchmarks/host _benchmark.cc)
fi
"$root/tools/setup.sh"
configure bench
compile bench "${benchmarks[@]}"

commit="$(git -C "$root" describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)"
cpu="$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
results="$root/benchmarks/results"
mkdir -p "$results"
for benchmark in "${benchmarks[@]}"; do
  say "running $benchmark"
  scratch="$(mktemp)"
  "$root/build/bench/benchmarks/host/$benchmark" --benchmark_min_time="$seconds" --benchmark_repetitions=5 \
    --benchmark_report_aggregates_only=true --benchmark_counters_tabular=true \
    --benchmark_context=commit="$commit" --benchmark_context=cpu="${cpu:-unknown}" \
    --benchmark_context=command="tools/bench.sh $benchmark" \
    --benchmark_out="$scratch" --benchmark_out_format=json --benchmark_color=false
  # Names of the machine and of its folders say nothing to a reader elsewhere.
  python3 - "$scratch" "$results/$benchmark.json" <<'PYTHON'
import json, sys
with open(sys.argv[1], encoding='utf-8') as file:
    result = json.load(file)
for key in ('host_name', 'executable'):
    result['context'].pop(key, None)
with open(sys.argv[2], 'w', encoding='utf-8') as file:
    json.dump(result, file, indent=1)
    file.write('\n')
PYTHON
  rm -f "$scratch"
  say "wrote benchmarks/results/$benchmark.json"
done
