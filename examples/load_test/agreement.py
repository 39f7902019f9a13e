#!/usr/bin/env python3
"""How far the load tests in real time are from the same arrivals in virtual time.

The C program runs in virtual time, driven by polls: the exact answer. Then each program runs in real time. A row is a
program alone or beside training, with its p50 and p99 over those of the virtual run and the cores that the program took
in both. One JSON object on stdout, a table on stderr.

  agreement.py --c PROGRAM [--cc PROGRAM] [--py SCRIPT] [--kernel NAME] [--queries N]
               [--p50 PERCENT] [--p99 PERCENT] [--p99-asyncio PERCENT]   fail where a row is further off

Exit code 0: measured; 1: a row is too far off, or a program failed; 2: bad use.
"""

import argparse
import json
import re
import resource
import subprocess
import sys
import time

LINE = re.compile(r'^(alone|beside training): p50 ([\d.]+) us, p99 ([\d.]+) us', re.MULTILINE)


def run(command):
    """{'alone': (p50, p99), 'beside training': (p50, p99)} in us, and how many cores the program took."""
    begin, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {name: (float(p50), float(p99)) for name, p50, p99 in LINE.findall(text)}, used / (time.monotonic() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--c', required=True)
    parser.add_argument('--cc')
    parser.add_argument('--py')
    parser.add_argument('--kernel', default='5000')
    parser.add_argument('--queries', type=int, default=400)
    for limit in ('--p50', '--p99', '--p99-asyncio'):
        parser.add_argument(limit, type=float)
    given = parser.parse_args()
    load = [given.kernel, str(given.queries)]
    programs = {'C, callbacks': [given.c]}
    if given.cc:
        programs['C++, threads'] = [given.cc]
    if given.py:
        programs['Python, asyncio'] = [sys.executable, '-B', given.py]
    rows, missed = [], False
    try:
        exact, _ = run([given.c, *load, 'virtual'])
        for program, command in programs.items():
            cases, cores = run(command + load)
            for case, measured in cases.items():
                p50, p99 = (round(real / virtual, 4) for real, virtual in zip(measured, exact[case], strict=True))
                limit = given.p99_asyncio if given.p99_asyncio and 'asyncio' in program else given.p99
                far = any(allowed is not None and abs(over - 1) * 100 > allowed
                          for over, allowed in ((p50, given.p50), (p99, limit)))
                missed = missed or far
                rows.append({'program': program, 'case': case, 'p50_over_virtual': p50, 'p99_over_virtual': p99,
                             'p99_us': measured[1], 'program_cores': round(cores, 3), 'within_limits': not far})
                print(f'{program:16} {case:16} p50 {p50:.3f}, p99 {p99:.3f} of virtual time; {cores:.2f} of a core'
                      f'{", too far off" if far else ""}', file=sys.stderr)
    except subprocess.CalledProcessError as error:
        print(f'{error.cmd[0]} failed: {error.stderr}', file=sys.stderr)
        return 1
    print(json.dumps({'kernel': given.kernel, 'queries': given.queries,
                      'virtual_us': {case: {'p50': p50, 'p99': p99} for case, (p50, p99) in exact.items()},
                      'rows': rows}, indent=1))
    return 1 if missed else 0


if __name__ == '__main__':
    sys.exit(main())
