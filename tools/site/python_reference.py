"""Writes the reference pages of the Python package: the public names, for mkdocstrings to fill in.

The names are those of __all__, grouped by the file that they come from, and the classes of gpushare.options.
"""

import ast
import pathlib

PACKAGE = pathlib.PurePath('bindings/python')
OBJECTS = 'Objects and functions'
GROUPS = {'gpushare.errors': 'Errors', 'gpushare.records': 'Records', 'gpushare.enums': 'Enumerations'}

# Page, title, module, and what a reader can do with it.
MODULES = (
    ('python.md', 'Python: gpushare', 'gpushare', '[Python](../python.md) explains how they fit together.'),
    ('python-torch.md', 'Python: gpushare.torch', 'gpushare.torch',
     'Explained for [services](../python-server.md) and for [BE jobs](../python-training.md).'),
    ('python-triton.md', 'Python: gpushare.triton', 'gpushare.triton',
     'Explained in [compiled kernels](../compiled-kernels.md).'),
    ('python-ray.md', 'Python: gpushare.ray', 'gpushare.ray', 'Explained in [Ray Serve](../ray.md).'),
    ('python-ptx.md', 'Python: gpushare.ptx', 'gpushare.ptx', 'Explained in [kernels from PTX](../ptx-kernels.md).'),
)
OPTIONS = ('python-options.md', 'Python: options', 'gpushare.options',
           'The keyword arguments of calls that take `**options`, by the struct of the [C ABI](c.md) that they fill.')


def file_of(root, module):
    path = root / PACKAGE / module.replace('.', '/')
    return path / '__init__.py' if path.is_dir() else path.with_suffix('.py')


def public_names(root, module):
    """The public names of a module, with the module that each is imported from."""
    tree = ast.parse(file_of(root, module).read_text(encoding='utf-8'))
    origin, listed, defined = {}, None, []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            origin |= {alias.asname or alias.name: node.module for alias in node.names}
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith('_'):
            defined.append(node.name)
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], 'id', '') == '__all__':
            listed = ast.literal_eval(node.value)
    return {name: origin.get(name, module) for name in (defined if listed is None else listed)}


def page_of(root, title, module, intro):
    groups = {}
    for name, origin in public_names(root, module).items():
        groups.setdefault(GROUPS.get(origin, OBJECTS), []).append(name)
    lines = [f'# {title}', '', intro]
    for group in (OBJECTS, *GROUPS.values()):
        if names := groups.get(group):
            lines += ['', f'## {group}']
            for name in names:
                lines += ['', f'::: {module}.{name}']
    return '\n'.join(lines) + '\n'


def pages(root):
    """Each reference page of the package: its name and its text."""
    return {page: page_of(root, title, module, intro) for page, title, module, intro in (*MODULES, OPTIONS)}
