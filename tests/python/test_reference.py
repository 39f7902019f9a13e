"""The reference of the Python package has every public name, and each of them says what it is."""

import ast
import functools
import pathlib
import re
import sys

import pytest

import gpushare
import gpushare.triton

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / 'bindings/python/gpushare'
# Written from the C headers, whose struct and enumeration each class names; a field's name says what it is.
GENERATED = ('abi', 'enums', 'options', 'records')

sys.path.insert(0, str(ROOT / 'tools/site'))
import python_reference  # noqa: E402


def modules():
    """The public modules: no part of their names begins with an underscore."""
    for path in sorted(PACKAGE.rglob('*.py')):
        parts = path.relative_to(PACKAGE).with_suffix('').parts
        if not any(part.startswith('_') for part in parts if part != '__init__'):
            yield path


@functools.cache
def parsed(path):
    return ast.parse(path.read_text(encoding='utf-8')).body


def classes_of(path):
    return {node.name: node for node in parsed(path) if isinstance(node, ast.ClassDef)}


@functools.cache
def all_classes():
    return {name: (path, node) for path in PACKAGE.rglob('*.py') for name, node in classes_of(path).items()}


@functools.cache
def all_functions():
    return {node.name: node for path in PACKAGE.rglob('*.py') for node in parsed(path)
            if isinstance(node, ast.FunctionDef)}


def attributes(node):
    """The public attributes that a class assigns to itself, with the line of the first assignment."""
    found = {}
    for inner in ast.walk(node):
        targets = inner.targets if isinstance(inner, ast.Assign) else [getattr(inner, 'target', None)]
        for target in targets:
            if isinstance(target, ast.Attribute) and getattr(target.value, 'id', '') == 'self':
                found.setdefault(target.attr, inner.lineno)
    return {name: line for name, line in found.items() if not name.startswith('_')}


def undocumented(name, classes):
    """What a class and its bases in the package leave without words."""
    path, node = classes[name]
    words = ast.get_docstring(node) or ''
    missing = [] if words else [name]
    for base in node.bases:
        if (base_name := getattr(base, 'id', '')) in classes:
            missing += undocumented(base_name, classes)
            words += ast.get_docstring(classes[base_name][1]) or ''
    missing += [f'{name}.{method.name}' for method in node.body
                if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) and not method.name.startswith('_')
                and not ast.get_docstring(method) and not re.search(rf'\b{method.name}: |`{method.name}`', words)
                and not is_setter(method)]
    lines = path.read_text(encoding='utf-8').splitlines()
    missing += [f'{name}.{attribute}' for attribute, line in attributes(node).items()
                if not lines[line - 2].lstrip().startswith('# ')
                and not re.search(rf'\b{attribute}: |`{attribute}`', words)]
    return missing


def is_setter(method):
    return any(isinstance(one, ast.Attribute) and one.attr == 'setter' for one in method.decorator_list)


@pytest.mark.parametrize('page', [page for page, *_ in python_reference.MODULES])
def test_each_public_name_is_documented(page):
    module, = (module for one, _, module, _ in python_reference.MODULES if one == page)
    names = python_reference.public_names(ROOT, module)
    assert len(names) >= 2
    missing = [problem for name, origin in names.items()
               if name in all_classes() and origin.rpartition('.')[2] not in GENERATED
               for problem in undocumented(name, all_classes())]
    missing += [name for name in names if name in all_functions() and not ast.get_docstring(all_functions()[name])]
    assert sorted(set(missing)) == []


def test_the_pages_have_every_public_name():
    pages = python_reference.pages(ROOT)
    assert set(re.findall(r'^::: gpushare\.(\w+)$', pages['python.md'], re.MULTILINE)) == set(gpushare.__all__)
    assert '::: gpushare.triton.enable' in pages['python-triton.md']
    for struct in ('RuntimeOptions', 'AppOptions', 'TaskOptions', 'KernelOptions'):
        assert f'::: gpushare.options.{struct}' in pages['python-options.md']
    torch_names = set(re.findall(r"'(\w+)'", (PACKAGE / 'torch/__init__.py').read_text().partition('__all__')[2]))
    assert set(re.findall(r'^::: gpushare\.torch\.(\w+)$', pages['python-torch.md'], re.MULTILINE)) == torch_names


def test_a_public_class_is_in_a_reference_or_named_by_it():
    """A class of a public module that __all__ leaves out would be public and documented nowhere."""
    listed = {name for _, _, module, _ in (*python_reference.MODULES, python_reference.OPTIONS)
              for name in python_reference.public_names(ROOT, module)}
    hidden = [f'{path.stem}.{name}' for path in modules() if path.stem != 'abi' for name in classes_of(path)
              if not name.startswith('_') and name not in listed]
    assert [name for name in hidden if name.partition('.')[0] not in GENERATED] == []


def test_a_page_of_prose_names_each_object():
    prose = ''.join(path.read_text(encoding='utf-8') for path in (ROOT / 'docs').glob('*.md'))
    missing = [f'{name} of {module}' for _, _, module, _ in python_reference.MODULES
               for name, origin in python_reference.public_names(ROOT, module).items()
               if origin not in python_reference.GROUPS and not re.search(rf'\b{name}\b', prose)]
    assert missing == []
