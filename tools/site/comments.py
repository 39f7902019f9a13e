"""For griffe, which mkdocstrings reads Python with: how this package documents its names.

- The comment above an attribute is its documentation, as bindings/python/generate.py writes the words of the C header.
- A docstring explains arguments in lines that begin with their names. On a page each is a paragraph.
"""

import ast
import re

import griffe

ARGUMENT = re.compile(r'^(\w+): ', re.MULTILINE)


def comment_above(lines, number):
    """The comment in the lines directly above line `number`, which counts from 1."""
    above = []
    for line in reversed(lines[:number - 1]):
        if not line.lstrip().startswith('# '):
            break
        above.insert(0, line.strip().removeprefix('# '))
    return '\n'.join(above)


class CommentExtension(griffe.Extension):
    """What the module's docstring says."""

    def on_attribute_instance(self, *, node, attr, **_):
        if not isinstance(node, ast.AST) or attr.docstring:
            return
        if comment := comment_above(attr.module.lines_collection[attr.filepath], node.lineno):
            attr.docstring = griffe.Docstring(comment, lineno=node.lineno, parent=attr)

    def on_class_instance(self, *, cls, **_):
        self._in_paragraphs(cls)

    def on_function_instance(self, *, func, **_):
        self._in_paragraphs(func)

    @staticmethod
    def _in_paragraphs(described):
        if described.docstring:
            described.docstring.value = ARGUMENT.sub(r'\n**\1**: ', described.docstring.value)
