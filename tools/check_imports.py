#!/usr/bin/env python3
"""Checks that the imports of the project's Python files form no circle.

Every import counts, also one inside a function or under `if TYPE_CHECKING:`. Two files that need each other's
types are a circle as two that need each other's functions are. Circles among folders count too.
Exit code 0: all is well; 1: a circle, each is printed with the file and line of its first import; 2: bad use.

  check_imports.py [--root FOLDER] [--depfile FILE]    FILE: gets the names of the checked files, for the build
  check_imports.py --self-test     plants circles in a scratch folder and expects a report of each
"""

import ast
import pathlib
import sys

import gate
from check_layers import circle_lines

FOLDERS = ('bindings', 'tools', 'benchmarks', 'examples', 'tests', 'cmake')
# Where an import finds a module, after the folder of the file that imports it.
SEARCHED = ('bindings/python', 'benchmarks/engines', 'benchmarks/matrix', 'benchmarks/papers', 'examples/llm',
            'examples/pytorch', 'tests/abi', 'tools')


def python_files(root):
    for folder in FOLDERS:
        yield from sorted((root / folder).rglob('*.py'))


def module_file(folder, name):
    """The file of the module `name` below a folder, or None."""
    place = folder.joinpath(*name.split('.'))
    for file in (place.with_suffix('.py'), place / '__init__.py'):
        if file.is_file():
            return file
    return None


def bound_names(tree):
    """The names that a module defines or imports at its top level."""
    names = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(target.id for target in targets if isinstance(target, ast.Name))
    return names


def wanted_modules(tree, package):
    """(name of a module, names taken from it, line) of each import. `package` is that of relative imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, (), node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split('.')[:len(package.split('.')) - node.level + 1] if node.level else []
            name = '.'.join(part for part in (*above, node.module or '') if part)
            yield name, tuple(alias.name for alias in node.names), node.lineno


def package_of(path):
    """The package of a file, such as 'gpushare.torch'; '' for a script."""
    parts = []
    for folder in path.parents:
        if not (folder / '__init__.py').is_file():
            break
        parts.insert(0, folder.name)
    return '.'.join(parts)


def import_edges(root):
    """(importer, imported, line) for the project's own files, as paths relative to the root."""
    trees = {path: ast.parse(path.read_text(encoding='utf-8'), str(path)) for path in python_files(root)}
    for path, tree in trees.items():
        for name, taken, line in wanted_modules(tree, package_of(path)):
            for folder in (path.parent, *(root / searched for searched in SEARCHED)):
                # `from package import module` needs the module; of the package itself only what it defines.
                modules = [module_file(folder, f'{name}.{item}') for item in taken]
                own = module_file(folder, name)
                rest = {item for item, module in zip(taken, modules) if module is None}
                if own in trees and (not taken or own.name != '__init__.py' or rest & bound_names(trees[own])):
                    modules.append(own)
                for module in modules:
                    if module in trees:
                        yield path.relative_to(root), module.relative_to(root), line
                if own is not None:
                    break


def check(root):
    """All circles as printable lines."""
    return circle_lines(list(import_edges(root)))


SELF_TEST_BAD = (
    ('a circle among files: tools/a -> tools/b, tools/b.py:1 -> tools/a', {
        'tools/a.py': ['import sys', 'import b'],
        'tools/b.py': ['from a import name'],
    }),
    # Of three files, one import is for annotations alone and one is inside a function.
    ('a circle among files', {
        'bindings/python/gpushare/__init__.py': ['from gpushare.runtime import Runtime'],
        'bindings/python/gpushare/runtime.py': ['from gpushare.app import App'],
        'bindings/python/gpushare/app.py': ['from gpushare import ticket'],
        'bindings/python/gpushare/ticket.py': [
            'from typing import TYPE_CHECKING', 'if TYPE_CHECKING:', '    from gpushare.runtime import Runtime'],
    }),
    ('a circle among files', {
        'benchmarks/matrix/a.py': ['def run():', '    import b', '    return b'],
        'benchmarks/matrix/b.py': ['import a'],
    }),
    # Through a name that the package itself defines, and through a relative import.
    ('a circle among files', {
        'bindings/python/gpushare/__init__.py': ['from gpushare.app import App'],
        'bindings/python/gpushare/app.py': ['from gpushare import App'],
    }),
    ('a circle among files', {
        'bindings/python/gpushare/__init__.py': [],
        'bindings/python/gpushare/a.py': ['from .b import name'],
        'bindings/python/gpushare/b.py': ['from . import a'],
    }),
    ('a circle among folders: bindings/python/gpushare -> bindings/python/gpushare/torch', {
        'bindings/python/gpushare/__init__.py': [],
        'bindings/python/gpushare/app.py': ['import gpushare.torch.service'],
        'bindings/python/gpushare/torch/__init__.py': [],
        'bindings/python/gpushare/torch/service.py': ['from gpushare.errors import Error'],
        'bindings/python/gpushare/errors.py': [],
    }),
)
SELF_TEST_GOOD = {
    'bindings/python/gpushare/__init__.py': ['from gpushare.abi import NEVER', 'from gpushare.app import App'],
    # A module that the build has not written yet is no name of the package.
    'bindings/python/gpushare/app.py': ['from gpushare import abi, errors', 'import ctypes'],
    'bindings/python/gpushare/errors.py': ['import errors', '# import gpushare.app'],
    'tests/python/test_app.py': ['import gpushare', 'import generate'],
    'bindings/python/generate.py': ['import c_header'],
    'bindings/python/c_header.py': ['TEXT = "import generate"'],
}


def self_test():
    """Every planted circle is reported, nothing else is."""
    failures = []
    for expected, tree in (*SELF_TEST_BAD, ('', SELF_TEST_GOOD)):
        problems = gate.problems_in(check, tree)
        if len(problems) != bool(expected) or expected not in ''.join(problems):
            failures.append(f'expected "{expected}" for {next(iter(tree))}, reported: {problems}')
    return failures


def main():
    parser = gate.parser('Checks that Python imports form no circle.')
    parser.add_argument('--depfile', type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.depfile:
        files = ' '.join(str(path).replace(' ', '\\ ') for path in python_files(arguments.root.resolve()))
        arguments.depfile.write_text(f'{arguments.depfile.with_suffix(".stamp")}: {files}\n', encoding='utf-8')
    return gate.report(arguments, check, self_test, 'No imports form a circle.')


if __name__ == '__main__':
    sys.exit(main())
