#!/usr/bin/env python3
"""Checks the Markdown pages: samples that compile, links that resolve, tables that fit.

- README.md has one fenced block of C, one of C++ and one of Python. Each is, indentation aside, the code
  between the lines 'README begins' and 'README ends' of examples/quickstart.c, .cc or .py, which the tests
  build and run.
- A relative link leads to a file of the project, and its anchor to a heading of that page.
- A table has at most seven columns, and each of its rows as many as its head.
- docs/README.md links every page of docs/.
- A page that a source, script or scenario names ("docs/hardware.md") exists.

Exit code 0: all is well; 1: problems, printed with file and line; 2: bad use.

  check_docs.py [--root FOLDER]
  check_docs.py --self-test      breaks each rule in a scratch folder and expects a report
"""

import os
import pathlib
import re
import sys
import textwrap

import gate

COLUMNS_MAX = 7
SKIPPED_FOLDERS = {'.git', 'build', 'out', '.cache', 'node_modules'}
SOURCE_SUFFIXES = {'.h', '.hpp', '.c', '.cc', '.cu', '.cuh', '.py', '.sh', '.cmake', '.txt', '.json', '.md'}
DATA_FOLDERS = ('benchmarks/results/', 'tests/fuzz/corpus/')
# Their self-tests plant pages.
PLANTED = ('tools/check_docs.py', 'tests/gates/site_test.py', 'tests/gates/package_links_test.py')
NAMED_PAGE = re.compile(r'\bdocs/[\w./-]*\.md\b')
SAMPLES = {'c': 'examples/quickstart.c', 'cpp': 'examples/quickstart.cc', 'python': 'examples/quickstart.py'}
LINK = re.compile(r'(?<!\!)\[[^\]]*\]\(([^)\s]+)\)')


def files(root, suffixes):
    """Files with one of the suffixes. Folders to skip are not entered: a build may hold whole systems."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
        found += [pathlib.Path(folder) / name for name in names if pathlib.Path(name).suffix in suffixes]
    return sorted(found)


def pages(root):
    return files(root, {'.md'})


def prose_lines(text):
    """(number, line) of every line outside fenced blocks."""
    fenced = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith('```'):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors(path):
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for _, line in prose_lines(path.read_text(encoding='utf-8')):
        if match := re.match(r'#+ +(.*)', line):
            text = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', match[1]).lower()
            anchor = re.sub(r'[^\w\- ]', '', text).replace(' ', '-')
            while anchor in found:
                anchor += '-1'
            found.add(anchor)
    return found


def check_links(root, path):
    problems = []
    name = path.relative_to(root).as_posix()
    for number, line in prose_lines(path.read_text(encoding='utf-8')):
        for target in LINK.findall(line):
            if re.match(r'\w+:', target):
                continue
            file, _, anchor = target.partition('#')
            there = (path.parent / file).resolve() if file else path
            if not there.exists():
                problems.append(f'{name}:{number}: the link {target} leads nowhere')
            elif anchor and there.suffix == '.md' and anchor not in anchors(there):
                problems.append(f'{name}:{number}: the link {target} names no heading of its page')
    return problems


def cells(line):
    return len(re.split(r'(?<!\\)\|', line.strip().strip('|')))


def check_tables(root, path):
    problems = []
    name = path.relative_to(root).as_posix()
    columns = 0
    for number, line in prose_lines(path.read_text(encoding='utf-8')):
        if not line.startswith('|'):
            columns = 0
        elif columns == 0:
            columns = cells(line)
            if columns > COLUMNS_MAX:
                problems.append(f'{name}:{number}: the table has {columns} columns, and the limit is '
                                f'{COLUMNS_MAX}')
        elif cells(line) != columns:
            problems.append(f'{name}:{number}: the row has {cells(line)} columns, and its head has '
                            f'{columns}')
    return problems


def sample_of(path):
    """The lines between the marks of an example, without their common indentation."""
    match = re.search(r'^[^\n]*README begins[^\n]*\n(.*?)^[^\n]*README ends', path.read_text(encoding='utf-8'),
                      re.MULTILINE | re.DOTALL)
    return textwrap.dedent(match[1]).strip() if match else None


def check_samples(root):
    readme = root / 'README.md'
    text = readme.read_text(encoding='utf-8') if readme.is_file() else ''
    problems = []
    for language, example in SAMPLES.items():
        blocks = re.findall(rf'^```{language}\n(.*?)^```', text, re.MULTILINE | re.DOTALL)
        if len(blocks) != 1:
            problems.append(f'README.md:1: {len(blocks)} blocks of {language}, and there must be one')
            continue
        sample = sample_of(root / example)
        if sample is None:
            problems.append(f'{example}:1: the marks README begins and README ends are missing')
        elif textwrap.dedent(blocks[0]).strip() != sample:
            line = text[:text.index(blocks[0])].count('\n') + 1
            problems.append(f'README.md:{line}: the block of {language} is not what {example} has')
    return problems


def check_index(root):
    index = root / 'docs/README.md'
    text = index.read_text(encoding='utf-8') if index.is_file() else ''
    linked = set(LINK.findall(text))
    return [f'docs/README.md:1: the page {path.name} is not in the index'
            for path in sorted((root / 'docs').glob('*.md'))
            if path.name != 'README.md' and path.name not in linked]


def check_named_pages(root):
    """Pages that any file names by their path from the root."""
    problems = []
    for path in files(root, SOURCE_SUFFIXES):
        name = path.relative_to(root).as_posix()
        if not path.is_file() or name.startswith(DATA_FOLDERS) or name in PLANTED:
            continue
        text = path.read_text(encoding='utf-8', errors='replace')
        for match in NAMED_PAGE.finditer(text):
            if not (root / match[0]).is_file():
                problems.append(f'{name}:{text[:match.start()].count(chr(10)) + 1}: there is no page {match[0]}')
    return problems


def check(root):
    problems = check_samples(root) + check_index(root) + check_named_pages(root)
    for path in pages(root):
        problems += check_links(root, path) + check_tables(root, path)
    return problems


def self_test():
    good = {
        'README.md': '# P\n\n[a](docs/a.md#two-words)\n\n```c\nint a;\nif (a) {\n  b();\n}\n```\n\n'
                     '```cpp\nint c;\n```\n\n```python\ne()\n```\n',
        'docs/README.md': '# Docs\n\n[a](a.md)\n',
        'docs/a.md': '# A\n\n## Two words\n\n| a | b |\n| --- | --- |\n| 1 | `x\\|y` |\n\n[back](../README.md)\n',
        'examples/quickstart.c': '/* README begins */\n  int a;\n  if (a) {\n    b();\n  }\n/* README ends */\n',
        'examples/quickstart.cc': '// README begins\nint c;\n// README ends\n',
        'examples/quickstart.py': '# README begins\ne()\n# README ends\n',
    }
    wide = '|' + ' a |' * 8 + '\n'
    bad = {
        'a sample that differs': ('examples/quickstart.c', good['examples/quickstart.c'].replace('b()', 'd()'),
                                  'is not what'),
        'a sample without marks': ('examples/quickstart.cc', 'int c;\n', 'marks'),
        'a sample of Python that differs': ('examples/quickstart.py', '# README begins\nf()\n# README ends\n',
                                            'the block of python is not what'),
        'a README without a sample': ('README.md', '# P\n\n```c\nint a;\n```\n', 'there must be one'),
        'a link to no file': ('docs/a.md', '# A\n\n## Two words\n\n[b](b.md)\n', 'leads nowhere'),
        'a link to no heading': ('README.md', good['README.md'].replace('#two-words', '#three'), 'no heading'),
        'a wide table': ('docs/a.md', good['docs/a.md'] + '\n' + wide + wide.replace(' a ', ' --- '), '8 columns'),
        'a short row': ('docs/a.md', good['docs/a.md'].replace('| 1 | `x\\|y` |', '| 1 |'), '1 columns'),
        'a comment that names no page': ('src/a.h', '// docs/none.md\n', 'no page docs/none.md'),
        'a page that is not in the index': ('docs/b.md', '# B\n', 'not in the index'),
    }
    failures = []

    if problems := gate.problems_in(check, good):
        failures.append(f'a good tree is reported: {problems}')
    for what, (name, text, expected) in bad.items():
        problems = gate.problems_in(check, {**good, name: text})
        if not any(expected in problem for problem in problems):
            failures.append(f'{what} is not reported: {problems}')
    return failures


def main():
    arguments = gate.parser(__doc__).parse_args()
    return gate.report(arguments, check, self_test, 'Every page passes.')


if __name__ == '__main__':
    sys.exit(main())
