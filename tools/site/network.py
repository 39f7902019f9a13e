#!/usr/bin/env python3
"""Finds what pages of the documentation site would load from another machine: a site must work without a network.

  network.py FOLDER     FOLDER: the site. Exit code 0: nothing; 1: printed with the file; 2: bad use
"""

import pathlib
import re
import sys

TAG = re.compile(r'<(?:script|link|img|iframe|source|video|audio|embed|object|track)\b[^>]*>', re.IGNORECASE)
ADDRESS = re.compile(r'\s(?:src|href|srcset|data|poster)\s*=\s*["\']?\s*((?:https?:)?//[^\s"\'>]*)', re.IGNORECASE)
STYLE = re.compile(r'(?:url\(\s*["\']?|@import\s+["\'])\s*((?:https?:)?//[^\s"\')]*)', re.IGNORECASE)


def loaded_by_page(text):
    """Addresses of other machines that an HTML page loads. A link that a reader follows loads nothing."""
    return [address for tag in TAG.findall(text) for address in ADDRESS.findall(tag)]


def loaded_by_style(text):
    """The same of a style sheet."""
    return STYLE.findall(text)


def problems_of(folder):
    found = []
    for ending, loaded in (('html', loaded_by_page), ('css', loaded_by_style)):
        for path in sorted(folder.rglob(f'*.{ending}')):
            found += [f'{path} loads {address}' for address in loaded(path.read_text(encoding='utf-8'))]
    return found


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1], 'index.html').is_file():
        print(__doc__, file=sys.stderr)
        return 2
    problems = problems_of(pathlib.Path(sys.argv[1]))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
