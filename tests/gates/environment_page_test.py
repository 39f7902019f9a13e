#!/usr/bin/env python3
"""docs/environment.md names every environment variable of the project, and no other.

What reads a variable is found by its form in C++, Python and shell.

  environment_page_test.py ROOT
"""

import pathlib
import re
import sys

READS = {
    '.cc': r'(?:getenv|Environment|EnvironmentText)\("(GPUSHARE_[A-Z_]+)"|Variable\[\] = "(GPUSHARE_[A-Z_]+)"',
    '.h': r'(?:getenv|EnvironmentNumber)\("(GPUSHARE_[A-Z_]+)"',
    '.py': r"environ(?:\.get\(|\.setdefault\(|\[)'(GPUSHARE_[A-Z_]+)'",
    '.sh': r'\$\{(GPUSHARE_[A-Z_]+):-',
}
FOLDERS = ('src', 'bindings', 'tools', 'tests', 'benchmarks', 'examples')


def variables_read(root):
    """Each variable with one file that reads it."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob('*')):
            if path.suffix in READS and path.is_file():
                for groups in re.finditer(READS[path.suffix], path.read_text(encoding='utf-8')):
                    found.setdefault(next(filter(None, groups.groups())), path.relative_to(root))
    return found


def main():
    root = pathlib.Path(sys.argv[1])
    found = variables_read(root)
    page = set(re.findall(r'`(GPUSHARE_[A-Z_]+)`', (root / 'docs/environment.md').read_text(encoding='utf-8')))
    problems = [f'{found[name]} reads {name}, and docs/environment.md does not have it' for name in sorted(found.keys() - page)]
    problems += [f'docs/environment.md has {name}, and nothing reads it' for name in sorted(page - found.keys())]
    if len(found) < 30:
        problems.append(f'only {len(found)} variables are found: the forms of reading them have changed')
    print('\n'.join(problems) or f'docs/environment.md has all {len(found)} variables.')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
