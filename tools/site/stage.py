#!/usr/bin/env python3
"""Puts the pages of the documentation site together, for mkdocs (docs/site.md).

The pages are written for a reader of the source tree: links lead to any file of it. On the site, a page of docs/ keeps
its place, README.md is the start, and whatever else a page links lies under tree/: Markdown as a page, other files as
text. The reference pages are written from the headers and from the names of the Python package.

  stage.py FOLDER [--root FOLDER]     FOLDER: is new or empty
"""

import argparse
import os
import pathlib
import re
import shutil
import sys

import c_reference
import python_reference

LINK_OR_CODE = re.compile(r'(\[(?:[^\]`]|`[^`]*`)*\]\()([^)\s]+)(\))|`[^`]*`')
ITEM = re.compile(r'\s*(?:[-*]|\d+\.) ')
MOVED = {'README.md': 'index.md', 'ARCHITECTURE.md': 'architecture.md', 'CONTRIBUTING.md': 'contributing.md',
         'docs/README.md': 'pages.md'}


def place_of(root, path):
    """Where a file or folder of the tree lies on the site, both relative."""
    if path in MOVED:
        return MOVED[path]
    if (root / path).is_dir():
        readme = f'{path}/README.md'
        return place_of(root, readme) if (root / readme).is_file() else place_of(root, f'{path}/index.md')
    if path.startswith('docs/'):
        return path.removeprefix('docs/')
    return f'tree/{path}' if path.endswith('.md') else f'tree/{path}.txt'


def for_python_markdown(lines):
    """GitHub's Markdown as Python-Markdown reads it: an empty line in front of lists and tables, bars in code."""
    done, fenced, listed = [], False, False
    for line in lines:
        before = done[-1] if done else ''
        if line.lstrip().startswith('```'):
            fenced = not fenced
        elif not fenced:
            if before.strip() and ((ITEM.match(line) and not listed)
                                   or (line.startswith('|') and not before.startswith('|'))):
                done.append('')
            listed = bool(ITEM.match(line) or (listed and line.strip()))
            if line.startswith('|'):
                line = re.sub(r'`[^`]*`', lambda code: code[0].replace('\\|', '|'), line)
        done.append(line)
    return done


class Site:
    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.staged, self.waiting, self.problems = set(), [], []

    def want(self, path):
        """Stages the file or folder of the tree later, and returns its place."""
        if path not in self.staged:
            self.staged.add(path)
            self.waiting.append(path)
        return place_of(self.root, path)

    def link(self, page, place, target):
        """A link of the page `page`, which lies at `place`, as it is on the site."""
        file, _, anchor = target.partition('#')
        if re.match(r'\w+:', target) or not file:
            return target
        path = os.path.normpath(f'{os.path.dirname(page)}/{file}' if '/' in page else file)
        if path.startswith('..') or not ((self.root / path).exists() or path.startswith('docs/reference/')):
            self.problems.append(f'{page}: the link {target} leads nowhere')
            return target
        there = place_of(self.root, path) if path.startswith('docs/reference/') else self.want(path)
        relative = os.path.relpath(there, os.path.dirname(place) or '.')
        return f'{relative}#{anchor}' if anchor else relative

    def markdown(self, page, place, text):
        def linked(match):
            return match[1] + self.link(page, place, match[2]) + match[3] if match[1] else match[0]
        lines, fenced = [], False
        for line in for_python_markdown(text.splitlines()):
            if line.lstrip().startswith('```'):
                fenced = not fenced
            lines.append(line if fenced or line.startswith('    ') else LINK_OR_CODE.sub(linked, line))
        self.write(place, '\n'.join(lines) + '\n')

    def write(self, place, text):
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding='utf-8')

    def listing(self, path):
        """A page for a folder without README.md."""
        files = sorted(one.name for one in (self.root / path).iterdir()
                       if one.is_file() and one.name != 'CMakeLists.txt')
        page = f'{path}/index.md'
        title = path.removeprefix('docs/').capitalize() if path.startswith('docs/') else path
        rows = [f'- [{self.title(path, name)}]({name})' for name in files]
        self.markdown(page, place_of(self.root, page), '\n'.join([f'# {title}', '', *rows]))

    def title(self, folder, name):
        if name.endswith('.md'):
            found = re.search(r'^# +(.+)', (self.root / folder / name).read_text(encoding='utf-8'), re.MULTILINE)
            return found[1] if found else name
        return name

    def stage(self, path):
        source, place = self.root / path, place_of(self.root, path)
        if source.is_dir():
            readme = f'{path}/README.md'
            if (self.root / readme).is_file():
                self.want(readme)
            else:
                self.listing(path)
        elif path.endswith('.md'):
            self.markdown(path, place, source.read_text(encoding='utf-8'))
        else:
            (self.folder / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, self.folder / place)

    def everything(self):
        for path in [*MOVED, 'docs/decisions']:
            if (self.root / path).exists():
                self.want(path)
        for path in sorted((self.root / 'docs').rglob('*.md')):
            self.want(path.relative_to(self.root).as_posix())
        while self.waiting:
            self.stage(self.waiting.pop())
        return self.problems


def stage(root, folder):
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        return [f'{folder} is no empty folder, and nothing in it is overwritten']
    site = Site(root, folder)
    for page, text in {**c_reference.pages(root), **python_reference.pages(root)}.items():
        site.markdown(f'docs/reference/{page}', f'reference/{page}', text)
    return site.everything()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('folder', type=pathlib.Path)
    parser.add_argument('--root', type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    arguments = parser.parse_args()
    problems = stage(arguments.root.resolve(), arguments.folder.resolve())
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
