#!/usr/bin/env python3
"""Mutation testing: changes one line of the sources at a time and asks whether a test fails.

    pip install universalmutator
    git clone . ../mutants && cd ../mutants      # the script changes the sources of its own clone
    cmake -B build/mutants -G Ninja -DCMAKE_BUILD_TYPE=Debug -DGPUSHARE_CUDA=OFF -DGPUSHARE_LAYERS=SHARED \\
          -DCMAKE_LINK_DEPENDS_NO_SHARED=ON -DCMAKE_CXX_FLAGS='-O1 -g0' && ninja -C build/mutants
    tools/mutation_test.py build/mutants --count 200 --seed 1 --out mutants.json

The sample is drawn evenly from every mutant that universalmutator makes of the .cc files of src/core and src/models.
A mutant that does not compile, or compiles to the same code, is replaced by the next of the sample. A mutant is
killed when a test fails, crashes or takes longer than its limit, twice. Survivors are printed as differences: each is a
missing test or an equivalent program, which a person decides. --shard 0/2 and 1/2 divide one sample between two
clones. The report is written after each mutant, and a second call goes on where the first one stopped.

A survivor costs every test. --test-seconds-max 2 leaves the longer ones out, and a second call with --survivors-of
mutants.json judges what survived that with all tests, and with those that were written since.
"""

import argparse
import concurrent.futures
import difflib
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

FOLDERS = ("src/core", "src/models")
# Labels of tests that are skipped, because they cannot see a mutant.
LABELS_LEFT_OUT = "^(gate|perf|gpu)$"
# A test that takes this many times as long under a mutant counts as one that never ends.
TEST_SLOWDOWN_MAX = 5
TEST_SECONDS_MIN = 5


def run(command, **options):
    # A mutant may print any bytes.
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, **options)


def is_code(line):
    """False for a line that is empty, a comment, an include or a namespace."""
    text = line.strip()
    return bool(text) and not re.match(r"(//|#|}  // namespace|namespace )", text)


def mutants_of(source, mutate):
    """Every (line number, old line, new line) that universalmutator makes of one file, without repeats."""
    before = source.read_text().splitlines()
    found = set()
    with tempfile.TemporaryDirectory() as folder:
        made = run([mutate, str(source), "cpp", "--noCheck", "--mutantDir", folder])
        if made.returncode != 0:
            sys.exit(f"mutation_test: '{mutate}' fails for {source} with {made.returncode}: {made.stderr.strip()[-300:]}")
        for path in sorted(pathlib.Path(folder).iterdir()):
            after = path.read_text().splitlines()
            if len(after) == len(before) + 1:  # an inserted statement
                number = next((i for i, (a, b) in enumerate(zip(before, after)) if a != b), None)
                if number is not None and is_code(before[number]):
                    found.add((number, before[number], after[number] + " " + before[number].strip()))
            elif len(after) == len(before):
                changed = [i for i in range(len(before)) if before[i] != after[i]]
                if len(changed) == 1 and is_code(before[changed[0]]):
                    found.add((changed[0], before[changed[0]], after[changed[0]]))
    return sorted(found)


def sample(arguments):
    """The mutants in the order in which they are tried."""
    everything = []
    for folder in FOLDERS:
        for source in sorted(pathlib.Path(folder).rglob("*.cc")):
            everything += [(str(source), *mutant) for mutant in mutants_of(source, arguments.mutate)]
    if not everything:
        sys.exit(f"mutation_test: '{arguments.mutate}' makes no mutants.")
    random.Random(arguments.seed).shuffle(everything)
    index, count = (int(part) for part in arguments.shard.split("/"))
    return everything[index::count]


def survivors_of(report):
    """What survived in a report, found again by the line that it changes. What is not there any more is left out."""
    found = []
    for entry in json.loads(pathlib.Path(report).read_text())["mutants"]:
        source, number, old, new = entry["mutant"]
        lines = pathlib.Path(source).read_text().splitlines() if pathlib.Path(source).exists() else []
        places = [i for i, line in enumerate(lines) if line == old]
        if entry["result"] == "survived" and places:
            found.append((source, min(places, key=lambda place: abs(place - number)), old, new))
    return found


def objects_of(build, source):
    """The digest of the file's object code."""
    paths = sorted(pathlib.Path(build).rglob(pathlib.Path(source).name + ".o"))
    stem = os.path.dirname(source).split("/")[-1]
    digest = hashlib.sha256()
    for path in paths:
        if stem in str(path):
            digest.update(path.read_bytes())
    return digest.hexdigest()


class Tests:
    """The tests of a build tree, run from the shortest to the longest until one fails."""

    def __init__(self, build, jobs, seconds_max):
        self.jobs = jobs
        seconds_max = seconds_max or float("inf")
        listing = run(["ctest", "--test-dir", build, "--show-only=json-v1", "-LE", LABELS_LEFT_OUT])
        self.tests = [self._parse(test) for test in json.loads(listing.stdout)["tests"] if "command" in test]
        for test in self.tests:
            start = time.monotonic()
            if not self._passes(test):
                sys.exit(f"mutation_test: the test {test['name']} fails without a mutant.")
            test["seconds"] = time.monotonic() - start
            test["limit"] = TEST_SECONDS_MIN + TEST_SLOWDOWN_MAX * test["seconds"]
        self.tests = [test for test in self.tests if test["seconds"] <= seconds_max]
        self.tests.sort(key=lambda test: test["limit"])

    @staticmethod
    def _parse(test):
        values = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        variables = dict(variable.split("=", 1) for variable in values.get("ENVIRONMENT", []))
        return {"name": test["name"], "command": test["command"], "limit": 300, "folder": values["WORKING_DIRECTORY"],
                "environment": {**os.environ, **variables}, "skip": values.get("SKIP_RETURN_CODE", 0),
                "pattern": values.get("PASS_REGULAR_EXPRESSION", [])}

    @staticmethod
    def _passes(test):
        # Two clones, or two tests of one run, must not meet in a temporary folder.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            environment = {**test["environment"], "TMPDIR": folder, "TEST_TMPDIR": folder}
            try:
                result = run(test["command"], cwd=test["folder"], env=environment, timeout=test["limit"])
            except subprocess.TimeoutExpired:
                return False
        if test["pattern"]:
            return any(re.search(pattern, result.stdout + result.stderr) for pattern in test["pattern"])
        return result.returncode in (0, test["skip"])

    def first_failure(self, stem):
        """The name of a test that fails, or None. Tests with the source's own name come first."""
        ordered = sorted(self.tests, key=lambda test: stem not in test["name"])
        failed = []

        def judge(test):
            # A test that passes when it is repeated fails by chance, and kills nothing.
            if not failed and not self._passes(test) and not self._passes(test):
                failed.append(test["name"])

        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            list(pool.map(judge, ordered))
        return failed[0] if failed else None


def try_mutant(arguments, mutant, healthy, tests):
    """"invalid", "same code", "killed by TEST" or "survived"."""
    source, number, old, new = mutant
    path = pathlib.Path(source)
    text = path.read_text()
    lines = text.splitlines()
    assert lines[number] == old, f"{source}:{number + 1} has changed"
    lines[number] = new
    path.write_text("\n".join(lines) + "\n")
    try:
        build = run(["ninja", "-C", arguments.build, "-j", str(arguments.jobs)])
        if build.returncode != 0:
            return "invalid"
        if objects_of(arguments.build, source) == healthy[source]:
            return "same code"
        failure = tests.first_failure(path.stem)
        return f"killed by {failure}" if failure else "survived"
    finally:
        path.write_text(text)


def describe(mutant):
    source, number, old, new = mutant
    return "\n".join(difflib.unified_diff([old], [new], f"{source}:{number + 1}", "mutant", lineterm="", n=0))


def origin_of(arguments):
    """What a report belongs to: another sample, or other sources, cannot go on with it."""
    head = run(["git", "rev-parse", "HEAD"]).stdout.strip()
    return {"seed": arguments.seed, "shard": arguments.shard, "survivors_of": arguments.survivors_of, "head": head}


def judged_before(report, origin):
    """The mutants that an earlier call judged."""
    if not report.exists():
        return []
    earlier = json.loads(report.read_text())
    before = earlier.get("origin", {}) if isinstance(earlier, dict) else {}
    for key, value in origin.items():
        if before.get(key) != value:
            sys.exit(f"mutation_test: the report {report} has {key} {before.get(key)}, and this call has {value}; "
                     "name another report with --out.")
    return earlier["mutants"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="a build tree of this clone with every test built")
    parser.add_argument("--count", type=int, default=200, help="mutants to judge (default 200)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample (default 1)")
    parser.add_argument("--shard", default="0/1", help="which part of the sample, as INDEX/COUNT")
    parser.add_argument("--test-seconds-max", type=float, default=0, help="leave longer tests out (default 0: none)")
    parser.add_argument("--survivors-of", default="", help="judge the survivors of this report in place of a sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of ninja and ctest")
    parser.add_argument("--mutate", default=shutil.which("mutate") or "mutate", help="universalmutator's program")
    parser.add_argument("--out", default="mutants.json", help="the report")
    arguments = parser.parse_args()

    if run(["git", "diff", "--quiet"]).returncode != 0:
        sys.exit("mutation_test: this clone has changes that are not committed.")
    if run(["ninja", "-C", arguments.build]).returncode != 0:
        sys.exit("mutation_test: the sources do not build.")
    report = pathlib.Path(arguments.out)
    origin = origin_of(arguments)
    judged = judged_before(report, origin)
    tests = Tests(arguments.build, arguments.jobs, arguments.test_seconds_max)
    healthy = {}
    done = sum(entry["result"] not in ("invalid", "same code") for entry in judged)
    mutants = survivors_of(arguments.survivors_of) if arguments.survivors_of else sample(arguments)
    for mutant in mutants[len(judged):]:
        if done >= arguments.count:
            break
        start = time.monotonic()
        healthy.setdefault(mutant[0], objects_of(arguments.build, mutant[0]))
        result = try_mutant(arguments, mutant, healthy, tests)
        judged.append({"mutant": mutant, "result": result, "seconds": round(time.monotonic() - start, 1)})
        report.write_text(json.dumps({"origin": origin, "mutants": judged}, indent=1) + "\n")
        done += result not in ("invalid", "same code")
        if result == "survived":
            print(describe(mutant), flush=True)
    run(["ninja", "-C", arguments.build])
    killed = sum(entry["result"].startswith("killed") for entry in judged)
    survived = sum(entry["result"] == "survived" for entry in judged)
    print(f"{killed} of {killed + survived} mutants are killed ({killed / max(1, killed + survived):.0%}); "
          f"{len(judged) - killed - survived} did not compile or changed no code.")


if __name__ == "__main__":
    main()
