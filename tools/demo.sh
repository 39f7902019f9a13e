#!/usr/bin/env bash
# From a fresh clone to a report: installs what is missing, builds the library and the tool, runs LC
# beside BE under five policies on the same arrivals, and prints what an H200 measured below each case.
#
#   tools/demo.sh [ARGUMENT...]     arguments are passed on to `gpushare colocate`
#
# GPUSHARE_DEMO_QUERIES: queries of each case (default 3000, what the H200 ran); GPUSHARE_DEMO_OUT: output
# folder (out/demo).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

out="${GPUSHARE_DEMO_OUT:-$root/out/demo}"
queries="${GPUSHARE_DEMO_QUERIES:-3000}"
results="$root/benchmarks/results"

"$root/tools/setup.sh" --demo
architectures="$(architectures_here)"
configure release "-DCMAKE_CUDA_ARCHITECTURES=$architectures"
compile release gpushare gpushare_command
tool="$root/build/release/tools/gpushare/gpushare"

mkdir -p "$out"
# The table lands with the other files, or not at all.
table="$out/table.txt.partial"
trap 'rm -f "$table"' EXIT
say "running examples/scenarios/demo.json with $queries queries a case"
# The first file's rows win; the second has the policies that the first has not.
"$tool" colocate "$root/examples/scenarios/demo.json" --device auto --queries "$queries" --out "$out" \
  --measured "$results/h200_gpu_colocate.json,$results/h200_gpu_baselines.json" "$@" > "$table"
for file in result.json report.html trace.pftrace; do
  [[ -s "$out/$file" ]] || die "the run ended without $out/$file."
done
mv "$table" "$out/table.txt"
head -n 1 "$out/table.txt"
sed -n '/^All cases/,/^ *adaptive .*QoS kept/p' "$out/table.txt"
say "report: $out/report.html"
say "trace:  $out/trace.pftrace (open it in a Perfetto viewer)"
say "table:  $out/table.txt (each case with its latencies and evictions)"
cat <<END

Next, from this folder ($root):
  a first program in C:
    cc examples/quickstart.c -Iinclude -Lbuild/release/bindings/c -lgpushare -Wl,-rpath,\$PWD/build/release/bindings/c -o quickstart && ./quickstart
  install the library and the command:
    cmake --install build/release --prefix DIR
END
if grep -q '^CMAKE_CUDA_COMPILER:' "$root/build/release/CMakeCache.txt"; then
  cat <<END
  the library of kernels too, for the architectures $architectures (others: -DCMAKE_CUDA_ARCHITECTURES=...):
    cmake --build build/release --target gpushare_kernels && cmake --install build/release --prefix DIR
END
fi
