#!/usr/bin/env python3
"""Checks what every file of the project must be: free of paths of one machine, and explained.

- No text file holds an absolute path of somebody's machine, such as a home folder's.
- No unfinished work is marked in the sources: it is an issue, or it is done.
- No file holds the marks of a merge that was not finished.
- Each folder under src/ has a README.md. Each source file opens with a comment that says what it is,
  except a .cc file with its header beside it and a unit test, which mirrors a source file.
- Text files are UTF-8, end with one newline, and have no trailing blanks and no tabs (Makefiles and
  data aside).

Exit code 0: all is well; 1: problems, printed with file and line; 2: bad use.

  check_text.py [--root FOLDER]
  check_text.py --self-test      breaks each rule in a scratch folder and expects a report
"""

import pathlib
import re
import subprocess
import sys

import gate

SOURCE_SUFFIXES = {'.h', '.hpp', '.c', '.cc', '.cu', '.cuh'}
TEXT_SUFFIXES = SOURCE_SUFFIXES | {'.md', '.py', '.sh', '.cmake', '.txt', '.json', '.in', '.map', '.abi', ''}
# Recorded data: checked for paths, not for layout.
DATA_FOLDERS = ('benchmarks/results/', 'tests/fuzz/corpus/', 'bindings/c/baseline/')
SKIPPED_FOLDERS = ('.git', 'build', 'out', '.cache', '__pycache__')

# Written in two pieces so that this file passes its own check.
MACHINE_PATH = re.compile(
    r'(?<![\w.:/$}])/(?:ho' + r'me/\w|ro' + r'ot/|wo' + r'rk/|Us' + r'ers/\w|mnt/\w|scratch/\w)'
    r'|[A-Z]:\\Us' + r'ers\\')
UNFINISHED = re.compile(r'\b(?:TO' + r'DO|FIX' + r'ME|XX' + r'X|HA' + r'CK)\b')


# The first and the last mark; the one between them also underlines titles.
MERGE_MARK = re.compile(r'(?:<{7}|>{7})(?: |$)')


def project_files(root):
    """Files that git tracks or would track; every file where there is no git."""
    try:
        listed = subprocess.run(['git', '-C', str(root), 'ls-files', '--cached', '--others',
                                 '--exclude-standard', '-z'],
                                capture_output=True, check=True).stdout.decode('utf-8')
        names = [name for name in listed.split('\0') if name]
    except (OSError, subprocess.CalledProcessError):
        names = [path.relative_to(root).as_posix() for path in root.rglob('*') if path.is_file()]
    for name in sorted(set(names)):
        path = root / name
        if path.is_file() and not any(part in SKIPPED_FOLDERS for part in pathlib.Path(name).parts[:-1]):
            yield name, path


def check_layout(name, text):
    problems = []
    if text and not text.endswith('\n'):
        problems.append(f'{name}:{text.count(chr(10)) + 1}: the file does not end with a newline')
    if text.endswith('\n\n'):
        problems.append(f'{name}:{text.count(chr(10))}: the file ends with an empty line')
    for number, line in enumerate(text.splitlines(), start=1):
        if line != line.rstrip():
            problems.append(f'{name}:{number}: the line ends with a blank')
        if '\t' in line:
            problems.append(f'{name}:{number}: the line holds a tab')
    return problems


def check_file(name, path):
    suffix = path.suffix
    if suffix not in TEXT_SUFFIXES:
        return []
    try:
        text = path.read_text(encoding='utf-8')
    except UnicodeDecodeError:
        return [f'{name}:1: the file is not UTF-8'] if suffix else []
    problems = []
    for number, line in enumerate(text.splitlines(), start=1):
        if MACHINE_PATH.search(line):
            problems.append(f'{name}:{number}: the line holds a path of one machine')
        if suffix != '.md' and UNFINISHED.search(line):
            problems.append(f'{name}:{number}: the line marks unfinished work')
        if MERGE_MARK.match(line):
            problems.append(f'{name}:{number}: the line is a mark of an unfinished merge')
    if not name.startswith(DATA_FOLDERS):
        problems += check_layout(name, text)
        explained = text.lstrip().startswith(('//', '/*')) or (
            suffix == '.cc' and (path.with_suffix('.h').is_file() or path.stem.endswith('_test')))
        if suffix in SOURCE_SUFFIXES and not explained:
            problems.append(f'{name}:1: the file does not open with a comment that says what it is')
    return problems


def check(root):
    problems = []
    for name, path in project_files(root):
        problems += check_file(name, path)
    folders = [path for path in (root / 'src').iterdir() if path.is_dir()] if (root / 'src').is_dir() else []
    for folder in sorted(folders):
        if not (folder / 'README.md').is_file():
            problems.append(f'{folder.relative_to(root)}:1: the folder has no README.md')
    return problems


def self_test():
    """Every broken rule is reported, a correct file is not."""
    bad = {
        'a.md': 'built in /ho' + 'me/somebody/gpushare\n',
        'b.sh': 'cd /wo' + 'rk/main\n',
        'src/core/c.cc': '// What it is.\n// TO' + 'DO: the rest\n',
        'src/core/d.cc': '#include <vector>\n',
        'e.py': 'a = 1 \n',
        'f.cmake': 'set(a\tb)\n',
        'g.json': '{}',
        'h.txt': 'line\n\n',
        'i.md': 'ours\n' + '<' * 7 + ' HEAD\n',
    }
    good = {
        'src/core/README.md': '# core\n',
        'src/core/a.cc': '// What it is, and https://example.org/ho' + 'me/page.\n#include <vector>\n',
        'b.sh': 'cd "$root/work" && ls /usr/local/cuda\n',
    }
    failures = []
    for tree, expected in ((bad, True), (good, False)):
        problems = gate.problems_in(check, tree)
        for name in tree:
            reported = any(problem.startswith(name + ':') for problem in problems)
            if reported != expected:
                failures.append(f'{name} is {"reported" if reported else "not reported"}: {problems}')
        if expected and not any(problem.startswith('src/core:') for problem in problems):
            failures.append('a folder without a README.md is not reported')
    return failures


def main():
    arguments = gate.parser('Checks the text of every file.').parse_args()
    return gate.report(arguments, check, self_test, 'Every file passes.')


if __name__ == '__main__':
    sys.exit(main())
