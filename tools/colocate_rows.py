#!/usr/bin/env python3
"""Writes the rows of a `gpushare colocate` result in the compact form that tests compare with.

  tools/colocate_rows.py RESULT_JSON... OUT
  tools/colocate_rows.py out/h200_gpu/result.json benchmarks/results/h200_gpu_colocate.json

Of several results a row comes from the first that has it. A row: case, policy, p50_ns,
p50_over_alone and p99_over_alone of the first LC app, be (the first BE app's rate over its rate alone) and
realised_load. The references of a case (lc_alone, library_alone) are kept; be_alone is 1 by
definition and left out.
"""

import json
import sys


def rows_of(result):
    for run in result["runs"]:
        if not run["lc"]:
            continue
        yield {
            "case": run["case"],
            "policy": run["policy"],
            "p50_ns": run["lc"][0]["p50_ns"],
            "p50_over_alone": round(run["lc"][0]["p50_over_alone"], 4),
            "p99_over_alone": round(run["lc"][0]["p99_over_alone"], 4),
            "be": round(run["be"][0]["rate_of_solo"], 4) if run["be"] else 0,
            "realised_load": round(run["realised_load"], 4),
        }


def main(arguments):
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    rows = {}
    first = None
    for path in arguments[:-1]:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        if "partial" in result:
            print(f"{path} is a partial set; gpushare colocate --resume completes it", file=sys.stderr)
            return 1
        first = first or result
        for row in rows_of(result):
            rows.setdefault((row["case"], row["policy"]), row)
    manifest = first["manifest"]
    with open(arguments[-1], "w", encoding="utf-8") as file:
        head = {
            "schema_version": 1,
            "scenario": first["scenario"],
            "seed": first["seed"],
            "queries": manifest["queries"],
            "rounds": manifest.get("rounds", 1),
            "gpu": manifest.get("gpu", ""),
            "driver": manifest.get("driver", ""),
        }
        text = json.dumps(head, indent=1)[:-2] + ',\n "rows": [\n  '
        file.write(text + ",\n  ".join(json.dumps(row) for row in rows.values()) + "\n ]\n}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
