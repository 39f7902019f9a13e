#!/usr/bin/env bash
# From a fresh clone to a report: installs what is missing, builds the library and the tool,
# and runs LC beside BE under five policies on the same arrivals.
#
#   tools/demo.sh [ARGUMENT...]     arguments are passed on to `gpushare colocate`
#
# GPUSHARE_DEMO_QUERIES: queries of each case (default 3000); GPUSHARE_DEMO_OUT: output folder (out/demo).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

out="${GPUSHARE_DEMO_OUT:-$root/out/demo}"
queries="${GPUSHARE_DEMO_QUERIES:-3000}"

"$root/tools/setup.sh" --demo
configure release
compile release gpushare_command
tool="$root/build/release/tools/gpushare/gpushare"

mkdir -p "$out"
say "running examples/scenarios/h200_measured.json with $queries queries a case"
"$tool" colocate "$root/examples/scenarios/h200_measured.json" \
  --policy fifo,priority,baymax,smguard,adaptive --device auto --queries "$queries" --out "$out" "$@"
for file in result.json report.html trace.pftrace; do
  [[ -s "$out/$file" ]] || die "the run ended without $out/$file."
done
say "report: $out/report.html"
say "trace:  $out/trace.pftrace (open it in a Perfetto viewer)"
