#!/usr/bin/env python3
"""tools/counters.py with a profiler and a program that are made up.

  counters_test.py COUNTERS_PY
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile

HEAD = '{"samples_version":1,"gpu_model":"a","sm_count":1}\n'
# Knows three metrics, two of them of one counter's second alternative, and those of a launch, which its query does not
# list. Counts two launches.
NCU = r'''#!/usr/bin/env python3
import subprocess, sys
words = sys.argv[1:]
if words == ['--query-metrics']:
    print('gpu__time_duration   a duration')
    print('dram__bytes_read     bytes')
    print('dram__bytes_write    bytes')
    sys.exit(0)
log, metrics = words[words.index('--log-file') + 1], words[words.index('--metrics') + 1].split(',')
names = ['dram__bytes_read.sum', 'dram__bytes_write.sum', 'gpu__time_duration.sum', 'launch__block_size',
         'launch__registers_per_thread', 'launch__shared_mem_per_block']
assert metrics == names, metrics
rows = ROWS
with open(log, 'w') as out:
    out.write('==PROF== connected\n')
    out.write(','.join(f'"{name}"' for name in ['ID', *names]) + '\n')
    out.write('"","byte","byte","ns","","register/thread","byte/block"\n')
    for row in rows:
        out.write(','.join(f'"{value}"' for value in row) + '\n')
sys.exit(subprocess.run(words[words.index('--metrics') + 2:]).returncode)
'''
PROGRAM = r'''#!/bin/sh
echo '{"kernel": "a", "block_tasks": 7, "workers_per_sm": 4}'
echo '{"kernel": "b", "block_tasks": 9}'
'''


def run(counters: str, folder: pathlib.Path, rows: list) -> subprocess.CompletedProcess:
    ncu, program = folder / 'ncu', folder / 'program'
    ncu.write_text(NCU.replace('ROWS', repr(rows)))
    program.write_text(PROGRAM)
    for file in (ncu, program):
        file.chmod(0o755)
    return subprocess.run([sys.executable, counters, str(program), '--samples', str(folder / 'samples'), '--ncu',
                           str(ncu)], capture_output=True, text=True, check=False)


def main() -> int:
    counters = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        samples = folder / 'samples'
        missing = run(counters, folder, [])
        assert missing.returncode == 1 and 'does not exist' in missing.stderr, missing
        samples.write_text(HEAD)
        samples.write_text(HEAD + '{"what":"so')
        good = run(counters, folder, [['0', '1,000', '24', '5', '256', '32', '1,024'], ['1', 'nan', '3', '6', '64', '', '']])
        assert good.returncode == 0, good.stderr
        first, second = (json.loads(line) for line in samples.read_text().splitlines()[1:])
        assert first == {'what': 'counters', 'kernel': 'a', 'form': 'original', 'block_tasks': 7, 'counters': [
            {'name': 'duration_ns', 'value': 5.0}, {'name': 'dram_bytes', 'value': 1024.0},
            {'name': 'dram_read_bytes', 'value': 1000.0}, {'name': 'dram_write_bytes', 'value': 24.0},
            {'name': 'threads', 'value': 256.0}, {'name': 'registers', 'value': 32.0},
            {'name': 'shared_bytes', 'value': 1024.0}, {'name': 'workers_per_sm', 'value': 4}]}, first
        assert second['counters'] == [{'name': 'duration_ns', 'value': 6.0}, {'name': 'dram_write_bytes', 'value': 3.0},
                                      {'name': 'threads', 'value': 64.0}], second
        # Two kernels and one counted launch: nobody knows of which kernel it is.
        samples.write_text(HEAD)
        odd = run(counters, folder, [['0', '1', '2', '3', '4', '5', '6']])
        assert odd.returncode == 1 and 'counted 1 launches' in odd.stderr, odd
        assert samples.read_text() == HEAD
    print('counters: as expected')
    return 0


if __name__ == '__main__':
    sys.exit(main())
