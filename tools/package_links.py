#!/usr/bin/env python3
"""Rewrites the links of a package's pages: they are written for a reader of the source tree.

A link to a file that the package has leads to where it lies there. The text of any other link to a file becomes plain
text. Links to the web and within a page stay. Then every link is checked, as tools/check_docs.py does in the source
tree.

  package_links.py TREE             TREE: the folder with include/ and share/ that tools/package.sh packs
  package_links.py --check TREE     changes nothing

Exit code 0: each link leads to a file and a heading; 1: some do not, and they are printed.
"""

import argparse
import os
import pathlib
import re
import sys

import check_docs

LINK_OR_CODE = re.compile(r'(?<!!)\[((?:[^\]`]|`[^`]*`)*)\]\(([^)\s]+)\)|`[^`]*`')
# Where files of the source tree lie in a package: the first place that has the file.
PLACES = (
    ('examples/scenarios/', 'share/gpushare/scenarios/'),
    ('profiles/', 'share/gpushare/profiles/'),
    ('bindings/rust/', 'share/gpushare/rust/'),
    ('bindings/go/', 'share/gpushare/go/'),
    ('bindings/c/', 'include/gpushare/'),
    ('include/gpushare/', 'include/gpushare/'),
    ('', 'share/doc/gpushare/'),
)
SOURCES = tuple((there, here) for here, there in PLACES)


def moved(path, places):
    """Where a path lies by each pair of beginnings that fits it."""
    path = f'{path}/'
    return [f'{there}{path.removeprefix(here)}'.rstrip('/') for here, there in places if path.startswith(here)]


def link_of(tree, page, target):
    """A link of a page of the package as it must be there; None: the package does not have the file."""
    file, _, anchor = target.partition('#')
    if re.match(r'\w+:', target) or not file or (tree / page).parent.joinpath(file).exists():
        return target
    sources = moved(page, SOURCES)
    if not sources:
        return target  # no page of the source tree: the check reports its link
    path = os.path.normpath(os.path.join(os.path.dirname(sources[0]), file))
    found = [place for place in moved(path, PLACES) if (tree / place).exists()]
    if not found:
        return None
    relative = os.path.relpath(found[0], os.path.dirname(page))
    return f'{relative}#{anchor}' if anchor else relative


def rewritten(tree, page, text):
    def linked(match):
        if match[2] is None:
            return match[0]
        link = link_of(tree, page, match[2])
        return match[1] if link is None else f'[{match[1]}]({link})'

    prose = {number for number, _ in check_docs.prose_lines(text)}
    lines = [LINK_OR_CODE.sub(linked, line) if number in prose else line
             for number, line in enumerate(text.splitlines(), start=1)]
    return '\n'.join(lines) + '\n'


def pages_of(tree):
    return sorted((tree / 'share').rglob('*.md'))


def rewrite(tree):
    for path in pages_of(tree):
        text = rewritten(tree, path.relative_to(tree).as_posix(), path.read_text(encoding='utf-8'))
        path.write_text(text, encoding='utf-8')


def check(tree):
    """The links that lead nowhere."""
    return [problem for path in pages_of(tree) for problem in check_docs.check_links(tree, path)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--check', action='store_true')
    parser.add_argument('tree', type=pathlib.Path)
    arguments = parser.parse_args()
    tree = arguments.tree.resolve()
    if not pages_of(tree):
        print(f'{tree} is no tree of a package: it has no page under share.', file=sys.stderr)
        return 2
    if not arguments.check:
        rewrite(tree)
    problems = check(tree)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
