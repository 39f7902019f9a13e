#!/usr/bin/env python3
"""Compiles, for their warnings alone, the tests that a build leaves out because the sanitized build runs them.

  check_warnings.py BUILD [--jobs N]
  check_warnings.py --self-test COMPILER

BUILD was configured with GPUSHARE_TESTS=NOT_SANITIZED: its sanitized_tests.txt names the targets. Their sources are compiled with the
flags of the build, its precompiled header and -fsyntax-only, in groups as of cmake/unity_groups.py. Where a group fails, its sources are
compiled one by one, so that a clash of names inside a group is no failure. A compiler that reads only does no analysis of flow
(-Wmaybe-uninitialized, -Wstringop-overflow): for these tests that is clang's alone.

Exit code 0: no warning; 1: a warning or an error, which is printed; 2: bad use.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'cmake'))
import unity_groups  # noqa: E402

GROUP_SIZE = 8
TARGET = re.compile(r'CMakeFiles/([^/]+)\.dir/')


def sources_of(build):
    """The C++ sources of the targets that were left out, by the flags that compile them."""
    names = set((build / 'sanitized_tests.txt').read_text(encoding='utf-8').split())
    if not names:
        raise SystemExit(f'{build}/sanitized_tests.txt names no test.')
    by_flags, seen = {}, set()
    for entry in json.loads((build / 'compile_commands.json').read_text(encoding='utf-8')):
        words = shlex.split(entry['command'])
        target = TARGET.search(words[words.index('-o') + 1])
        if target is None or target[1] not in names or not entry['file'].endswith('.cc') or 'cmake_pch' in entry['file']:
            continue
        flags = flags_of(words)
        if (flags, entry['file']) in seen:  # a source that several tests share
            continue
        seen.add((flags, entry['file']))
        names_left = by_flags.setdefault(flags, [])
        names_left.append(pathlib.Path(entry['file']))
    return by_flags


def flags_of(words):
    """The command without its input and its outputs, and without a compiler cache, which keeps no such result."""
    flags, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in ('-o', '-c', '-MF', '-MT'):
            skip = True
        elif word != '-MD' and pathlib.Path(word).name != 'ccache':
            flags.append(word)
    return tuple(flags)


def compile_all(build, flags, paths):
    """What the compiler says of the sources read as one; empty when all is well."""
    with tempfile.NamedTemporaryFile('w', suffix='.cc', encoding='utf-8') as group:
        group.writelines(f'#include "{path}"\n' for path in paths)
        group.flush()
        # gcc warns of a class with members of unnamed namespaces unless its file is the one that is compiled.
        more = ['-Wno-subobject-linkage'] if len(paths) > 1 else []
        source = group.name if len(paths) > 1 else str(paths[0])
        done = subprocess.run([*flags, *more, '-fsyntax-only', source], cwd=build, capture_output=True, text=True, check=False)
    return '' if done.returncode == 0 and not done.stderr else done.stderr or f'exit code {done.returncode}'


def check_group(build, flags, paths):
    """The complaints of a group's sources."""
    if not compile_all(build, flags, paths):
        return []
    if len(paths) == 1:
        return [compile_all(build, flags, paths)]
    return [text for text in (compile_all(build, flags, [path]) for path in paths) if text]


def check(build, jobs):
    """Prints what the compiler says; whether it said anything."""
    started, work, sources = time.monotonic(), [], 0
    for flags, paths in sources_of(build).items():
        groups = {}
        for path, number in zip(paths, unity_groups.groups_of(paths, GROUP_SIZE)):
            groups.setdefault(number, []).append(path)
        sources += len(paths)
        work += [(flags, group) for group in groups.values()]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        results = pool.map(lambda one: check_group(build, *one), work)
        complaints = [text for texts in results for text in texts]
    for text in complaints:
        print(text, file=sys.stderr)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f'{sources} sources in {len(work)} groups: {len(complaints)} with warnings, '
          f'{used.ru_utime + used.ru_stime:.0f} s of CPU time, {time.monotonic() - started:.0f} s')
    return bool(complaints)


def self_test(compiler):
    """Good tests pass also where their names clash; a planted warning and a planted error do not."""
    test = '#include <vector>\nnamespace {\nint Make() { return %s; }\n}  // namespace\nint %s() {\n%s  return Make();\n}\n'
    good = {'a.cc': test % ('1', 'A', ''), 'b.cc': test % ('2', 'B', ''), 'c.cc': 'int kMake;\nint C() { return kMake; }\n'}
    cases = (
        ('good tests', good, False),
        ('a planted warning', {**good, 'b.cc': test % ('2', 'B', '  int unused = 3;\n')}, True),
        ('a planted error', {**good, 'c.cc': 'int C() { return D(); }\n'}, True),
        # Read as one with a.cc, these are an error, and each alone is none.
        ('names that only a macro shows', {**good, 'd.cc': '#define MAKE(name) int name = 0\nMAKE(A_value);\nMAKE(B);\n'}, False),
    )
    failures = []
    for name, sources, expected in cases:
        with tempfile.TemporaryDirectory() as scratch:
            build = pathlib.Path(scratch)
            entries = []
            for file, text in sources.items():
                (build / file).write_text(text, encoding='utf-8')
                output = f'CMakeFiles/left_out_test.dir/{file}.o'
                entries.append({'file': str(build / file), 'command': f'{compiler} -Wall -Wextra -Werror -o {output} -c {build / file}'})
            # A test that is built elsewhere is not compiled again.
            entries.append({'file': str(build / 'none.cc'), 'command': f'{compiler} -o CMakeFiles/built_test.dir/none.cc.o -c none.cc'})
            (build / 'compile_commands.json').write_text(json.dumps(entries), encoding='utf-8')
            (build / 'sanitized_tests.txt').write_text('left_out_test\n', encoding='utf-8')
            if check(build, 2) != expected:
                failures.append(f'{name}: {"nothing" if expected else "something"} is reported')
    for failure in failures:
        print(f'self-test: {failure}', file=sys.stderr)
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('build', type=pathlib.Path, nargs='?')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    parser.add_argument('--self-test', metavar='COMPILER')
    arguments = parser.parse_args()
    if arguments.self_test:
        return self_test(arguments.self_test)
    if arguments.build is None:
        parser.error('BUILD is missing.')
    return 1 if check(arguments.build.resolve(), arguments.jobs) else 0


if __name__ == '__main__':
    sys.exit(main())
