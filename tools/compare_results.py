#!/usr/bin/env python3
"""Compares what two builds of the command `gpushare` compute on the simulated device.

  compare_results.py BEFORE AFTER [--only SCENARIO,...] [--keep FOLDER]
  compare_results.py --run BINARY FOLDER [--only SCENARIO,...]
  compare_results.py --self-test

BEFORE and AFTER are each a binary or a folder of results that --run or --keep wrote. A binary runs every
scenario file of the repository with each seed of SEEDS and all policies that the scenario names. For each
run the script compares result.json, in which only BUILD_FACTS may differ, and the bytes of the event logs.
It prints one line a run and stops at the first difference, with its JSON path.

The trace scenarios need GPUSHARE_DATA (default: ../shared/data). All runs take about three minutes of CPU
time for each binary. Exit code 0: all results are the same; 1: a difference; 2: bad use.
"""

import argparse
import contextlib
import fnmatch
import io
import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What may differ between two results of the same decisions: JSON path ([] is any index) and the reason.
# A result holds no commit, no build flags, no host name and no time of the host.
BUILD_FACTS = {
    'manifest.gpushare_version': 'the version of the library',
    'manifest.scenario_digest': 'a digest of the scenario as text: it covers the description and the path '
                                'of the profile',
    'manifest.profile': 'the name of the profile; its content shows in every number',
    'message': 'the words with which the command refuses a scenario; its exit code must be the same',
}
# 'own' is the seed in the scenario file. tests/tools/command/command_test.cc uses 5 and 6.
SEEDS = ('own', '2', '3', '5', '6')
# The block tier simulates each block task, which takes up to ten times as long: one seed, these scenarios.
BLOCK_TIER = ('smoke', 'copies', 'h200_gpu')
SKIPPED_FOLDERS = {'.git', 'build', 'out', '.cache'}


def fail(message):
    print(f'compare_results: {message}', file=sys.stderr)
    sys.exit(2)


def scenarios(root):
    """Name and path of every scenario file under `root`."""
    found = {}
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        for file in sorted(files):
            path = pathlib.Path(folder, file)
            if path.suffix != '.json':
                continue
            try:
                content = json.loads(path.read_text(encoding='utf-8'))
            except ValueError:
                continue
            if isinstance(content, dict) and {'lc', 'policies', 'cases'} <= content.keys():
                relative = path.relative_to(root)
                examples = relative.parent == pathlib.Path('examples/scenarios')
                name = path.stem if examples else relative.with_suffix('').as_posix().replace('/', '_')
                found[name] = relative
    return found


def runs(only, root=ROOT):
    """(name of the run, path of the scenario, options) for everything that a binary has to run."""
    patterns = only.split(',') if only else ['*']
    found = scenarios(root)
    for pattern in patterns:
        if not fnmatch.filter(found, pattern):
            fail(f"--only names '{pattern}'; the scenarios are {', '.join(found)}.")
    for name, path in found.items():
        if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns):
            continue
        for seed in SEEDS:
            yield f'{name}/seed_{seed}', path, [] if seed == 'own' else ['--seed', seed]
        if name in BLOCK_TIER:
            yield f'{name}/block_tier', path, ['--tier', 'block']


def produce(binary, scenario, options, out):
    """Runs one scenario into the folder `out`. A refusal is a result too."""
    environment = dict(os.environ)
    environment.setdefault('GPUSHARE_DATA', str(ROOT.parent / 'shared' / 'data'))
    command = [str(binary), 'colocate', scenario.as_posix(), '--device', 'sim', '--out', str(out), *options]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        out.mkdir(parents=True, exist_ok=True)
        refusal = {'exit_code': done.returncode, 'message': done.stderr}
        (out / 'result.json').write_text(json.dumps(refusal, indent=1) + '\n', encoding='utf-8')
    for name in ('report.html', 'trace.pftrace'):  # both show what result.json and the logs hold
        (out / name).unlink(missing_ok=True)


def differences(before, after, path=''):
    """(JSON path, before, after) of every value that differs, build facts aside."""
    if re.sub(r'\[[^]]*\]', '[]', path) in BUILD_FACTS:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [*before, *(key for key in after if key not in before)]:
            below = f'{path}.{key}' if path else key
            if key not in before or key not in after:
                if re.sub(r'\[[^]]*\]', '[]', below) not in BUILD_FACTS:
                    yield below, before.get(key, 'absent'), after.get(key, 'absent')
            else:
                yield from differences(before[key], after[key], below)
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield f'{path}.length', len(before), len(after)
        for index, (old, new) in enumerate(zip(before, after)):
            label = ''
            if isinstance(old, dict):
                label = ' '.join(str(old[key]) for key in ('case', 'policy', 'app') if key in old)
            yield from differences(old, new, f'{path}[{index}{label and " " + label}]')
    elif type(before) is not type(after) or before != after:
        yield path, before, after


def first_difference(before, after):
    """One sentence on the first difference of two result folders, or None."""
    old, new = (json.loads((folder / 'result.json').read_text(encoding='utf-8')) for folder in (before, after))
    for side, other, name in ((old, new, 'before'), (new, old, 'after')):
        if 'exit_code' in side and 'exit_code' not in other:
            return f'only the binary {name} refuses it, exit_code {side["exit_code"]}: {side["message"].strip()}'
    for path, old, new in differences(old, new):
        return f'{path}: before {json.dumps(old)}, after {json.dumps(new)}'
    logs = [sorted(path.name for path in (folder / 'events').glob('*')) for folder in (before, after)]
    if logs[0] != logs[1]:
        return f'events: before {len(logs[0])} files, after {len(logs[1])}'
    for name in logs[0]:
        old, new = ((folder / 'events' / name).read_bytes() for folder in (before, after))
        if old != new:
            at = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
            return f'events/{name}: the first difference is at byte {at}'
    return None


def cpu_seconds():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def has_result(folder, name):
    return (folder / name / 'result.json').is_file()


def compare(before, after, only, keep, root=ROOT):
    """Compares run by run. Returns 0 or 1."""
    start, cpu, count = time.monotonic(), cpu_seconds(), 0
    with tempfile.TemporaryDirectory() as scratch:
        sides = []
        for side, name in ((before, 'before'), (after, 'after')):
            kept = keep if keep and name == 'after' and not side.is_dir() else pathlib.Path(scratch, name)
            sides.append((side, side if side.is_dir() else kept))
        planned = list(runs(only, root))
        if sides[0][0].is_dir() and not only:
            known = {name for name, _, _ in planned}
            for file in sorted(before.glob('*/*/result.json')):
                name = file.parent.relative_to(before).as_posix()
                if name not in known:
                    print(f'{name}: DIFFERENT: the repository no longer has this scenario or seed')
                    return 1
        for name, scenario, options in planned:
            for side, results in sides:
                if not side.is_dir():
                    produce(side, scenario, options, results / name)
            absent = [str(side) for side, results in sides if not has_result(results, name)]
            if absent == [str(before)]:
                print(f'{name}: new, there is no result before')
                continue
            if absent:
                print(f'{name}: DIFFERENT: {absent[0]} has no result')
                return 1
            difference = first_difference(*(results / name for _, results in sides))
            if difference:
                print(f'{name}: DIFFERENT: {difference}')
                return 1
            count += 1
            refused = '"exit_code"' in (sides[0][1] / name / 'result.json').read_text(encoding='utf-8')[:20]
            print(f'{name}: the same' + (' (both refuse the scenario)' if refused else ''), flush=True)
    if not count:
        print('compare_results: there was nothing to compare', file=sys.stderr)
        return 1
    print(f'{count} results are the same, in {time.monotonic() - start:.0f} s '
          f'({cpu_seconds() - cpu:.0f} s of CPU time).')
    return 0


def run_all(binary, out, only):
    total = cpu_seconds()
    for name, scenario, options in runs(only):
        start, cpu = time.monotonic(), cpu_seconds()
        produce(binary, scenario, options, out / name)
        print(f'{name}: {time.monotonic() - start:.1f} s ({cpu_seconds() - cpu:.1f} s of CPU time)', flush=True)
    print(f'All results are in {out}: {cpu_seconds() - total:.0f} s of CPU time.')
    return 0


# A stand-in for the command: writes one result and one log, and plants the difference that PLANT names.
FAKE_COMMAND = '''#!/usr/bin/env python3
import json, os, pathlib, sys
out = pathlib.Path(sys.argv[sys.argv.index('--out') + 1])
(out / 'events').mkdir(parents=True)
run = {'case': 'one', 'policy': 'fifo', 'lc': [{'app': 'a', 'p99_ns': 7}]}
result = {'runs': [run], 'manifest': {'gpushare_version': '1', 'queries': 9}}
log = b'abc'
%s
(out / 'result.json').write_text(json.dumps(result))
(out / 'events' / 'one-fifo.gpulog').write_bytes(log)
'''
# Planted differences, each with what the report must contain; None: nothing may be reported.
PLANTS = (
    ('', None),
    ("result['manifest']['gpushare_version'] = '2'", None),
    ("result['manifest']['commit'] = 'abc'", 'manifest.commit'),
    ("run['lc'][0]['p99_ns'] = 8", 'runs[0 one fifo].lc[0 a].p99_ns: before 7, after 8'),
    ("run['lc'][0]['p99_ns'] = 7.0", 'runs[0 one fifo].lc[0 a].p99_ns'),
    ("run['lc'].append({'app': 'b'})", 'runs[0 one fifo].lc.length: before 1, after 2'),
    ("del run['lc'][0]['p99_ns']", 'before 7, after "absent"'),
    ("log = b'abd'", 'events/one-fifo.gpulog: the first difference is at byte 2'),
    ("sys.exit('no such profile')", 'exit_code'),
)


def self_test():
    """Every planted difference is reported, build facts are not."""
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        scenario = root / 'examples' / 'scenarios' / 'tiny.json'
        scenario.parent.mkdir(parents=True)
        scenario.write_text('{"lc": [], "policies": [], "cases": []}\n', encoding='utf-8')
        (root / 'other.json').write_text('{"rows": []}\n', encoding='utf-8')

        def fake(plant):
            path = root / f'command_{len(list(root.iterdir()))}'
            path.write_text(FAKE_COMMAND % plant, encoding='utf-8')
            path.chmod(0o755)
            return path

        def report(before, after, keep=None):
            text = io.StringIO()
            with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
                code = compare(before, after, '', keep, root)
            return code, text.getvalue()

        before = fake('')
        for plant, expected in PLANTS:
            code, text = report(before, fake(plant))
            if (code == 1) != (expected is not None) or (expected or '') not in text:
                failures.append(f'planted "{plant}": exit code {code}, and the report is: {text}')
        kept = root / 'kept'
        if report(before, before, kept)[0] != 0 or report(kept, before)[0] != 0:
            failures.append('a folder of results is not the same as the binary that wrote it')
        if report(kept, fake("log = b'x'"))[0] != 1:
            failures.append('a difference from a folder of results is not reported')
        (kept / 'gone' / 'seed_own').mkdir(parents=True)
        (kept / 'gone' / 'seed_own' / 'result.json').write_text('{}', encoding='utf-8')
        if 'no longer has' not in report(kept, before)[1]:
            failures.append('a scenario that is gone is not reported')
        empty = root / 'empty'
        empty.mkdir()
        if report(empty, before)[0] != 1 or report(before, empty)[0] != 1:
            failures.append('an empty folder of results is not reported')
    for failure in failures:
        print(failure, file=sys.stderr)
    if not failures:
        print('Every planted difference is reported.')
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description='Compares the results of two builds of the command.')
    parser.add_argument('paths', nargs='*', type=pathlib.Path, metavar='PATH', help='BEFORE AFTER')
    parser.add_argument('--run', action='store_true', help='PATHs are a binary and a folder to write')
    parser.add_argument('--only', default='', help='scenarios, separated by commas; * matches any text')
    parser.add_argument('--keep', type=pathlib.Path, help='a new folder for the results of AFTER')
    parser.add_argument('--self-test', action='store_true')
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test()
    if len(arguments.paths) != 2:
        parser.error('two paths are needed')
    first, second = (path.resolve() for path in arguments.paths)
    for path in (first,) if arguments.run else (first, second):
        if not path.exists():
            fail(f'{path} does not exist.')
    if arguments.run:
        return run_all(first, second, arguments.only)
    return compare(first, second, arguments.only, arguments.keep and arguments.keep.resolve())


if __name__ == '__main__':
    sys.exit(main())
