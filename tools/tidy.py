#!/usr/bin/env python3
"""Runs clang-tidy over the project's own sources, in parallel, and remembers what was clean.

  tidy.py BUILD_FOLDER [--seconds N] [--jobs N] [FILE...]

BUILD_FOLDER holds compile_commands.json. A file is skipped when neither it, nor any header, nor the
configuration has changed since it was clean. With --seconds it starts no more files when the time is
up, and says how many it did not reach.

The files that changed last come first: in the working tree, then in the latest commits. The rest follows,
from the file that waited longest. Where nothing is remembered, as on a machine that is used once, the rest
begins at another file with every commit and every day, so that each file has its turn.

Exit code 0: nothing was found; 1: findings, which are printed; 2: bad use.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time

# The files of the newest COMMITS commits come first. The list of the rest begins STEP files further with each commit
# and each day: fewer than a run checks in the time that tools/test.sh gives it in continuous integration.
COMMITS = 5
STEP = 15
CHECKED = ('src/', 'bindings/', 'tools/', 'examples/')
ROOT = pathlib.Path(__file__).resolve().parent.parent


def sources(build):
    """The compiled files of the project, relative to the root."""
    commands = json.loads((build / 'compile_commands.json').read_text(encoding='utf-8'))
    names = set()
    for command in commands:
        path = pathlib.Path(command['directory'], command['file']).resolve()
        if path.suffix in ('.cc', '.c') and path.is_relative_to(ROOT):
            name = path.relative_to(ROOT).as_posix()
            if name.startswith(CHECKED):
                names.add(name)
    return sorted(names)


def headers_digest():
    digest = hashlib.sha256()
    paths = [ROOT / '.clang-tidy']
    for folder in ('src', 'bindings', 'include', 'tools'):
        paths += sorted(path for path in (ROOT / folder).rglob('*') if path.suffix in ('.h', '.hpp'))
    for path in paths:
        digest.update(path.as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def git(*arguments):
    """The lines that git prints; none where there is no git or no repository."""
    try:
        result = subprocess.run(['git', '-C', str(ROOT), *arguments], capture_output=True, text=True,
                                check=False)
    except OSError:
        return []
    return result.stdout.splitlines() if result.returncode == 0 else []


def order(names, memory):
    """The names in the order in which they are looked at."""
    changed = git('diff', '--name-only', '--no-renames', 'HEAD')
    changed += git('ls-files', '--others', '--exclude-standard')
    changed += git('log', f'-{COMMITS}', '--name-only', '--no-renames', '--format=')
    recent = {}
    for name in changed:
        recent.setdefault(name, len(recent))
    commits = int((git('rev-list', '--count', 'HEAD') or ['0'])[0])
    begin = (commits + int(time.time() // 86400)) * STEP
    place = {name: (index - begin) % len(names) for index, name in enumerate(sorted(names))}

    def key(name):
        return (recent.get(name, len(recent)), memory.get(name, {}).get('time', 0), place[name])

    return sorted(names, key=key)


def run_tidy(build, name):
    result = subprocess.run(['clang-tidy', '--quiet', '-p', str(build), str(ROOT / name)],
                            capture_output=True, text=True, check=False)
    return name, result.returncode, result.stdout


def main():
    parser = argparse.ArgumentParser(description='Runs clang-tidy over the sources.')
    parser.add_argument('build', type=pathlib.Path)
    parser.add_argument('files', nargs='*')
    parser.add_argument('--seconds', type=float, default=0, help='time budget, 0: none')
    parser.add_argument('--jobs', type=int, default=os.cpu_count())
    arguments = parser.parse_intermixed_args()
    build = arguments.build.resolve()
    if not (build / 'compile_commands.json').is_file():
        print(f'{build} has no compile_commands.json.', file=sys.stderr)
        return 2

    memory_path = build / 'tidy.json'
    try:
        memory = json.loads(memory_path.read_text(encoding='utf-8'))
    except (OSError, ValueError):
        memory = {}
    common = headers_digest()
    digests, waiting = {}, []
    for name in arguments.files or sources(build):
        digests[name] = hashlib.sha256(common.encode() + (ROOT / name).read_bytes()).hexdigest()
        entry = memory.get(name, {})
        if entry.get('clean') != digests[name]:
            waiting.append(name)
    waiting = order(waiting, memory)

    end = time.monotonic() + arguments.seconds if arguments.seconds > 0 else float('inf')
    failed, reached = [], 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=arguments.jobs) as pool:
        queue = list(waiting)
        running = set()
        while queue or running:
            while queue and len(running) < arguments.jobs and time.monotonic() < end:
                running.add(pool.submit(run_tidy, build, queue.pop(0)))
            if not running:
                break
            done, running = concurrent.futures.wait(running,
                                                    return_when=concurrent.futures.FIRST_COMPLETED)
            for future in done:
                name, code, output = future.result()
                reached += 1
                memory[name] = {'time': time.time(), 'clean': digests[name] if code == 0 else ''}
                if code != 0:
                    failed.append(name)
                    print(output, end='')
    memory_path.write_text(json.dumps(memory), encoding='utf-8')
    left = len(waiting) - reached
    print(f'gpushare: clang-tidy: {reached} files looked at, {len(failed)} with findings, '
          f'{len(digests) - len(waiting)} unchanged since they were clean'
          + (f', {left} not reached in {arguments.seconds:g} s' if left else ''))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
