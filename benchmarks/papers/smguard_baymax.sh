#!/bin/bash
# Runs the experiments of SMGuard and Baymax that have no H200 figures yet, and keeps their rows.
#
#   smguard_baymax.sh GPUSHARE DEVICE OUT
#   smguard_baymax.sh build/gpu/tools/gpushare/gpushare cuda out/papers      on an H200: 44 minutes
#   smguard_baymax.sh build/dev/tools/gpushare/gpushare sim out/papers       simulated: 5 minutes
#   ONLY=one_ms smguard_baymax.sh ...                                        one of them
#
# Seconds on an H200, by the simulated spans of all rows, LC and the library alone among them: fewer 1520, bursts 470,
# one_ms 220, reserved 250, evicted 40, refill 70, copies 15, many 76.
set -euo pipefail
if [ $# -ne 3 ]; then
  sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
gpushare=$1 device=$2 out=$3
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"

# run NAME SCENARIO [OPTION...]: the rows go to OUT/NAME.json.
run() {
  local name=$1 scenario=$2
  shift 2
  [ -z "${ONLY:-}" ] || [ "$ONLY" = "$name" ] || return 0
  echo "== $name"
  GPUSHARE_LATENCY=spin "$gpushare" colocate "$scenario" --device "$device" --rounds 1 --out "$out/$name" "$@" > "$out/$name.txt"
  python3 "$here/tables.py" "$out/$name/result.json" --json "$out/$name.json" \
    --command "gpushare colocate $(basename "$scenario") --device $device --rounds 1 $*"
}

# cases PREFIX: the names of papers_smguard's cases that begin so, separated by commas.
cases() {
  python3 -c "import json, sys; print(','.join(c['name'] for c in json.load(open(sys.argv[2]))['cases'] if c['name'].startswith(sys.argv[1])))" \
    "$1" "$here/../../examples/scenarios/papers_smguard.json"
}

# Fewer workers an SM: 24 pairs and adaptive's bounds at 1,500 queries a pair.
run fewer "$here/../../examples/scenarios/papers_smguard.json" --case "$(cases single)" --policy adaptive --queries 1500
run bursts "$here/../../examples/scenarios/papers_smguard.json" --case "$(cases bursts)" --queries 200 \
  --policy plain_streams,bare,smguard,adaptive

for name in one_ms reserved evicted; do
  python3 "$here/smguard.py" $name > "$out/$name.scenario.json"
done
run one_ms "$out/one_ms.scenario.json" --policy plain_streams,bare,smguard,smguard:active,smguard:packed,adaptive
run reserved "$out/reserved.scenario.json" --queries 40
run evicted "$out/evicted.scenario.json"

# Baymax: eq. 4's refill (7.3), pageable copies one at a time (6), and many BE apps (7.5).
run refill "$here/../../examples/scenarios/papers_baymax.json" --policy baymax,baymax:nc
run copies "$here/../../examples/scenarios/papers_copies.json" --policy baymax,baymax:np --queries 300 \
  --case few_copies-pageable-0.3,few_copies-pageable-0.6,many_copies-pageable-0.3,many_copies-pageable-0.6
run many "$here/../../examples/scenarios/papers_many_be.json" --policy baymax,baymax:nc,baymax:np --duration 1.5
