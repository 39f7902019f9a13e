#!/usr/bin/env python3
"""Checks that every file that states the release states the same one: that of project() in CMakeLists.txt.

Exit code 0: all is well; 1: problems, printed with the file; 2: bad use.

  check_versions.py [--root FOLDER]
  check_versions.py --self-test     plants another version in each file and expects a report
"""

import re
import sys

import gate

SOURCE = ('CMakeLists.txt', r'^project\(gpushare VERSION (\S+)')
# A file, and what stands around each version in it.
STATED = (
    ('bindings/python/pyproject.toml', r'^version = "(.*)"'),
    ('bindings/python/gpushare/__init__.py', r"^__version__ = '(.*)'"),
    ('bindings/rust/gpushare-sys/Cargo.toml', r'^version = "(.*)"'),
    ('bindings/rust/gpushare/Cargo.toml', r'^version = "(.*)"'),
    ('bindings/rust/gpushare/Cargo.toml', r'^gpushare-sys = .*version = "(.*)"'),
    ('packaging/conda/recipe.yaml', r'^  version: "(.*)"'),
    ('docs/changelog.md', r'^## (\S+)'),  # the first heading is the newest release
)
HEADER = 'bindings/c/gpushare.h'
PARTS = ('MAJOR', 'MINOR', 'PATCH')


def stated(root, name, pattern):
    """The version that a file states, or a sentence that says why there is none."""
    path = root / name
    if not path.is_file():
        return f'{name} is missing'
    match = re.search(pattern, path.read_text(encoding='utf-8'), re.MULTILINE)
    return match[1] if match else f'{name} states no version like {pattern}'


def header_version(root):
    parts = [stated(root, HEADER, rf'^#define GPUSHARE_VERSION_{part} (\d+)$') for part in PARTS]
    return '.'.join(parts)


def check(root):
    wanted = stated(root, *SOURCE)
    found = [(HEADER, header_version(root)), *((name, stated(root, name, pattern)) for name, pattern in STATED)]
    return [f'{name}: the version is {version}, and CMakeLists.txt says {wanted}' for name, version in found
            if version != wanted]


GOOD = {
    'CMakeLists.txt': 'project(gpushare VERSION 1.2.3 DESCRIPTION "x")\n',
    HEADER: '#define GPUSHARE_VERSION_MAJOR 1\n#define GPUSHARE_VERSION_MINOR 2\n#define GPUSHARE_VERSION_PATCH 3\n',
    'bindings/python/pyproject.toml': 'version = "1.2.3"\n',
    'bindings/python/gpushare/__init__.py': "__version__ = '1.2.3'\n",
    'bindings/rust/gpushare-sys/Cargo.toml': 'version = "1.2.3"\n',
    'bindings/rust/gpushare/Cargo.toml': 'version = "1.2.3"\ngpushare-sys = { path = "x", version = "1.2.3" }\n',
    'packaging/conda/recipe.yaml': 'context:\n  version: "1.2.3"\n',
    'docs/changelog.md': '# Changes\n\n## 1.2.3\n\n## 1.2.2\n',
}


def self_test():
    """Another version in each file alone, and a file that is missing, are reported."""
    failures = [f'nothing is wrong, reported: {problem}' for problem in gate.problems_in(check, GOOD)]
    for name, text in GOOD.items():
        if name == SOURCE[0]:
            continue
        other = re.sub(r'1\.2\.3|PATCH 3', lambda found: found[0][:-1] + '4', text, count=1)
        for tree in ({**GOOD, name: other}, {key: value for key, value in GOOD.items() if key != name}):
            problems = gate.problems_in(check, tree)
            if not problems or any(not problem.startswith(name) for problem in problems):
                failures.append(f'another version in {name}, reported: {problems}')
    return failures


def main():
    return gate.report(gate.parser(__doc__).parse_args(), check, self_test, 'Every file states one version.')


if __name__ == '__main__':
    sys.exit(main())
