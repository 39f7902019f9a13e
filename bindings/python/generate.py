#!/usr/bin/env python3
"""Writes the declarations of the Python package from the C headers of bindings/c. The build runs it.

  generate.py                writes abi.py, enums.py, options.py and records.py into bindings/python/gpushare
  generate.py --layout CC    compares every size and offset in abi.py with those of the C compiler

  --headers DIR   the folder of the C headers (default: bindings/c)
  --package DIR   the package (default: bindings/python/gpushare)

The files are not committed. A field, value or function that is appended to a header appears in the package by the
next build. Exit code 0: done, or all is equal; 1: a difference, or an unknown declaration; 2: bad use.
"""

import argparse
import ctypes
import importlib.util
import os
import pathlib
import re
import sys
import types

from c_header import SCALARS, Field, Header, UnknownError, arguments_of, parse
from c_layout import Layout, c_layout

HERE = pathlib.Path(__file__).resolve().parent

# Fields that are no keyword arguments: the methods of the package set them from other parameters.
BY_HAND = {
    'gpushare_app_options': {'name', 'app_class'},
    'gpushare_kernel_options': {'name'},
    'gpushare_fused_kernel_options': {'name'},
    'gpushare_task_options': {'arguments_size_bytes', 'query', 'detached'},
    'gpushare_calibration_options': {'output_path'},
}

NOTE = '# Written by bindings/python/generate.py from the C headers. Do not edit.'


# --- abi.py --------------------------------------------------------------------------------------


def ctype(header: Header, type_name: str) -> str:
    """The ctypes expression of a C type."""
    if type_name in SCALARS:
        return SCALARS[type_name]
    if type_name in header.aliases:
        return ctype(header, header.aliases[type_name])
    if type_name == 'char*':
        return 'ctypes.c_char_p'
    if type_name.startswith('function('):
        inner = ', '.join(ctype(header, field.type) for field in arguments_of(type_name[9:-1]))
        return f'ctypes.CFUNCTYPE(None, {inner})'
    if type_name in header.structs or type_name in header.callbacks:
        return type_name
    if type_name.endswith('*'):
        base = type_name[:-1]
        if base in ('void', *header.opaque):
            return 'ctypes.c_void_p'
        return f'ctypes.POINTER({ctype(header, base)})'
    raise UnknownError(f'This type is unknown: {type_name!r}.')


def python_type(header: Header, field: Field) -> str:
    """The annotation of a field of a ctypes struct."""
    if field.count:
        return f'ctypes.Array[{ctype(header, field.type)}]'
    if field.type == 'char*':
        return 'bytes | None'
    resolved = header.aliases.get(field.type, field.type)
    if resolved in ('float', 'double'):
        return 'float'
    if resolved in SCALARS:
        return 'int'
    if resolved in header.structs:
        return resolved
    return 'Any'


ABI_TOP = '''"""The C ABI of gpushare as ctypes: constants, structs, callbacks and functions under their C names.

<gpushare/gpushare.h> documents each. The classes of the package are built on this module; use it for what
they do not offer. `gpushare.library()` gives the functions of the loaded library.
"""

''' + NOTE + '''

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeVar

Struct = TypeVar('Struct', bound=ctypes.Structure)


def init(kind: type[Struct], **fields: Any) -> Struct:
    """A struct with struct_size and the given fields set; every other field is zero, as with its _INIT macro."""
    struct = kind(**fields)
    if hasattr(kind, 'struct_size'):
        setattr(struct, 'struct_size', ctypes.sizeof(kind))
    return struct


'''

ABI_FUNCTIONS = '''

class Functions:
    """The functions of one loaded library. One that the library lacks raises AttributeError when used."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Callable[..., Any]:
        declared = FUNCTIONS.get(name)
        if declared is None:
            raise AttributeError(f"gpushare's C ABI has no function '{name}'.")
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise AttributeError(
                f"The loaded libgpushare is older than this package: it has no function '{name}'."
            ) from None
        function.restype, function.argtypes = declared
        setattr(self, name, function)
        return function  # type: ignore[no-any-return]
'''


def wrapped(prefix: str, text: str, width: int = 100) -> list[str]:
    """Comment lines of at most `width` characters."""
    lines, line = [], prefix
    for word in text.split():
        if len(line) + 1 + len(word) > width and line != prefix:
            lines.append(line)
            line = prefix
        line += ' ' + word
    return [*lines, line] if line != prefix else lines


def write_abi(header: Header) -> str:
    lines = []
    for name, value in header.constants.items():
        lines.append(f'{name} = {value}')
    for values in header.enums.values():
        lines += [''] + [f'{name} = {value}' for name, value, _ in values]
    for name in header.order:
        if name in header.callbacks:
            callback = header.callbacks[name]
            result = 'None' if callback.result == 'void' else ctype(header, callback.result)
            inner = ''.join(f', {ctype(header, field.type)}' for field in callback.arguments)
            lines += ['', '', f'{name} = ctypes.CFUNCTYPE({result}{inner})']
            continue
        fields = header.structs[name]
        lines += ['', '', f'class {name}(ctypes.Structure):']
        lines += [f'    {field.name}: {python_type(header, field)}' for field in fields]
        lines += ['', '    _fields_ = (']
        for field in fields:
            kind = ctype(header, field.type)
            if field.count:
                count = field.count if field.count.isdigit() else header.constants[field.count]
                kind += f' * {count}'
            lines.append(f"        ('{field.name}', {kind}),")
        lines.append('    )')
    lines += ['', '', '# name: (type of the result, types of the arguments)',
              'FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {']
    for function in header.functions.values():
        inner = ', '.join(ctype(header, field.type) for field in function.arguments)
        lines.append(f"    '{function.name}': ({ctype(header, function.result)}, [{inner}]),")
    lines.append('}')
    return ABI_TOP + '\n'.join(lines) + '\n' + ABI_FUNCTIONS


# --- enums.py ------------------------------------------------------------------------------------


def class_name(name: str) -> str:
    """gpushare_app_class_value -> AppClass."""
    return ''.join(word.capitalize() for word in
                   name.removeprefix('gpushare_').removesuffix('_value').split('_'))


def common_prefix(names: list[str]) -> str:
    """The longest run of whole words that all names begin with. At least one word of each name is left."""
    words = [name.split('_') for name in names]
    count = 0
    while all(len(word) > count + 1 and word[count] == words[0][count] for word in words):
        count += 1
    return '_'.join(words[0][:count]) + '_' if count else ''


ENUMS_TOP = '''"""The enums of the C ABI. A number that a newer library adds becomes a member named VALUE_<number>."""

''' + NOTE + '''

from __future__ import annotations

import enum


class _Open(enum.IntEnum):
    """An enum that grows: an unknown number is a member of its own and equals the number."""

    @classmethod
    def _missing_(cls, value: object) -> _Open | None:
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_ = f'VALUE_{value}'
        member._value_ = value
        return member
'''


def write_enums(header: Header) -> str:
    lines = []
    for name, values in header.enums.items():
        prefix = common_prefix([value[0] for value in values])
        if name == 'gpushare_status_value' or len(values) == 1:
            prefix = 'GPUSHARE_'
        base = 'enum.IntFlag' if name.endswith('_bit') else '_Open'
        lines += ['', '', f'class {class_name(name)}({base}):', f'    """enum {name}"""', '']
        for member, value, comment in values:
            short = member.removeprefix(prefix)
            lines += wrapped('    #', comment)
            lines.append(f'    {short} = {value}')
    return ENUMS_TOP + '\n'.join(lines) + '\n'


# --- options.py ----------------------------------------------------------------------------------


OPTIONS_TOP = '''"""The options structs of the C ABI as keyword arguments. A comment is that of the C header.

A keyword that is left out has the field's default. Durations are nanoseconds. A `void*` of the C header is an
address: an int. What a method takes as a parameter of its own is missing here.
"""

''' + NOTE + '''

from __future__ import annotations

from typing import TypedDict

from gpushare.enums import (
'''


def is_option(header: Header, name: str) -> bool:
    fields = header.structs[name]
    return fields[0].name == 'struct_size' and name != 'gpushare_completion_record' \
        and bool(re.search(r'_(options|record|call|counters)$|_place_(gpu|lc|be|pair)$', name))


def keyword_type(header: Header, struct: str, field: Field) -> str:
    """The annotation of a keyword, or '' for a field that is no keyword."""
    if field.name == 'struct_size' or field.name.startswith('reserved') or field.count:
        return ''
    if field.name in BY_HAND.get(struct, ()) or field.name.endswith('_user'):
        return ''
    if field.name.endswith('_count') and any(
            other.type.endswith('*') and other.name.rstrip('s') == field.name.removesuffix('_count').rstrip('s')
            for other in header.structs[struct]):
        return ''
    if field.type == 'gpushare_bool':
        return 'bool'
    if header.enum_of(field.type):
        return class_name(field.type)
    if field.type == 'char*':
        return 'str'
    if field.type == 'void*' and field.name not in ('arguments', 'wait_events'):
        return 'int'
    resolved = header.aliases.get(field.type, field.type)
    if resolved in ('float', 'double'):
        return 'float'
    return 'int' if resolved in SCALARS else ''


def write_options(header: Header) -> str:
    lines, used = [], set()
    for name in header.structs:
        if not is_option(header, name):
            continue
        lines += ['', '', f'class {class_name(name)}(TypedDict, total=False):', f'    """{name}"""', '']
        for field in header.structs[name]:
            kind = keyword_type(header, name, field)
            if kind:
                if kind not in ('bool', 'str', 'int', 'float'):
                    used.add(kind)
                lines += wrapped('    #', field.comment)
                lines.append(f'    {field.name}: {kind}')
    imports = ''.join(f'    {name},\n' for name in sorted(used))
    return OPTIONS_TOP + imports + ')\n' + '\n'.join(lines) + '\n'


# --- records.py ----------------------------------------------------------------------------------


# The record of each step: a caller that reads none of its fields, or few, does not pay for the others.
LAZY = 'gpushare_completion_record'

LAZY_METHODS = '''
    @classmethod
    def from_bytes(cls, data: bytes) -> {record}:
        """A record that decodes a field of the C struct when it is read first. The struct has no pointers."""
        record = cls.__new__(cls)
        record.__dict__['_data'] = data
        return record

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            data = self.__dict__.get('_data')
            decode = {table}.get(name)
            if data is None or decode is None:
                raise AttributeError(f"'{{type(self).__name__}}' object has no attribute '{{name}}'")
            value = self.__dict__[name] = decode(abi.{struct}.from_buffer_copy(data))
            return value
'''

RECORDS_TOP = '''"""The result structs of the C ABI as frozen dataclasses. A comment is that of the C header."""

''' + NOTE + '''

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from gpushare import abi
from gpushare.enums import (
'''


RECORDS_BY_REASON = ''')


def _by_reason(held_ns: Iterable[int]) -> dict[Reason, int]:
    """Times by the reason of a hold. A reason without any is left out."""
    return {Reason(abi.GPUSHARE_REASON_HOLD_HEADROOM + index): held for index, held in enumerate(held_ns) if held}
'''


def result_structs(header: Header) -> list[str]:
    """The structs that functions fill, and the structs inside them, in the header's order."""
    found = {field.type[:-1] for function in header.functions.values() for field in function.arguments
             if field.name.startswith('out_') and field.type[:-1] in header.structs}
    found |= {'gpushare_kernel_calibration', 'gpushare_calibration_progress'}
    found -= {'gpushare_ticket', 'gpushare_query', 'gpushare_token_stream'}
    inner = {field.type for name in found for field in header.structs[name]
             if field.type in header.structs and field.type not in ('gpushare_ticket', 'gpushare_query')}
    return [name for name in header.structs if name in found | inner]


def record_field(header: Header, field: Field) -> tuple[str, str]:
    """Annotation and expression of a record's field; ('', '') for one that is left out."""
    value = f'struct.{field.name}'
    if field.name == 'struct_size' or field.name.startswith('reserved'):
        return '', ''
    if field.count == 'GPUSHARE_HOLD_REASONS':
        return 'dict[Reason, int]', f'_by_reason({value})'
    if field.count:
        kind = python_type(header, Field(field.type, field.name, '', ''))
        return (f'tuple[{kind}, ...]', f'tuple({value})') if kind in ('int', 'float') else ('', '')
    if field.type == 'gpushare_bool':
        return 'bool', f'bool({value})'
    if header.enum_of(field.type):
        return class_name(field.type), f'{class_name(field.type)}({value})'
    if field.type in ('gpushare_ticket', 'gpushare_query'):
        return 'int', f'int({value}.value)'
    if field.type == 'char*':
        return 'str', f"({value} or b'').decode('utf-8', 'replace')"
    if field.type in header.structs:
        return class_name(field.type), f'{class_name(field.type)}.from_c({value})'
    kind = python_type(header, field)
    return (kind, value) if kind in ('int', 'float') else ('', '')


def lazy_lines(name: str, fields: list[tuple[str, str]]) -> list[str]:
    """The rest of a record that can decode a field when it is read first, and the table of how to."""
    table = f'_{name.upper()}'
    return [LAZY_METHODS.format(record=class_name(name), struct=name, table=table).rstrip(), '', '',
            f'{table}: dict[str, Callable[[abi.{name}], Any]] = {{',
            *(f"    '{field}': lambda struct: {value}," for field, value in fields), '}']


def write_records(header: Header) -> str:
    lines, used = [], set()
    for name in result_structs(header):
        rows = [(field, *record_field(header, field)) for field in header.structs[name]]
        lines += ['', '', '@dataclasses.dataclass(frozen=True)', f'class {class_name(name)}:',
                  f'    """{name}"""', '']
        for field, kind, _ in rows:
            if kind:
                if header.enum_of(field.type):
                    used.add(kind)
                if 'Reason' in kind:
                    used.add('Reason')
                lines += wrapped('    #', field.comment)
                lines.append(f'    {field.name}: {kind}')
        lines += ['', '    @classmethod', f'    def from_c(cls, struct: abi.{name}) -> {class_name(name)}:',
                  '        """Copies the C struct and the strings that it points to."""', '        return cls(']
        lines += [f'            {field.name}={value},' for field, kind, value in rows if kind]
        lines.append('        )')
        if name == LAZY:
            lines += lazy_lines(name, [(field.name, value) for field, kind, value in rows if kind])
    imports = ''.join(f'    {name},\n' for name in sorted(used))
    return RECORDS_TOP + imports + RECORDS_BY_REASON + '\n'.join(lines) + '\n'


# --- writing, comparing --------------------------------------------------------------------------


def outputs(header: Header) -> dict[str, str]:
    """The text of each file. abi.py is the last one: where it exists, all do."""
    return {'enums.py': write_enums(header), 'options.py': write_options(header),
            'records.py': write_records(header), 'abi.py': write_abi(header)}


def write(package: pathlib.Path, texts: dict[str, str]) -> None:
    """Writes the files. Each is replaced in one step: another build or a test may be reading it."""
    for name, text in texts.items():
        partial = package / f'{name}.{os.getpid()}'
        partial.write_text(text, encoding='utf-8')
        partial.replace(package / name)


def load_abi(package: pathlib.Path) -> types.ModuleType:
    specification = importlib.util.spec_from_file_location('gpushare_abi', package / 'abi.py')
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def layout_differences(module: types.ModuleType, layout: Layout) -> list[str]:
    """Where the ctypes structs of abi.py differ from the C compiler's, as sentences."""
    problems = []
    for owner, fields in layout.fields.items():
        struct = getattr(module, owner, None)
        rows = [(owner, (0, layout.sizes[owner]), struct and (0, ctypes.sizeof(struct)))]
        for name, expected in fields.items():
            field = getattr(struct, name, None)
            rows.append((f'{owner}.{name}', expected, field and (field.offset, field.size)))
        for name, expected, ours in rows:
            if ours is None:
                problems.append(f'{name} is missing in abi.py.')
            elif ours != expected:
                problems.append(f'{name} lies at {ours[0]} with {ours[1]} bytes in abi.py, and at {expected[0]} '
                                f'with {expected[1]} bytes in C.')
    return problems


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--layout', metavar='CC', default='')
    parser.add_argument('--headers', type=pathlib.Path, default=HERE.parent / 'c')
    parser.add_argument('--package', type=pathlib.Path, default=HERE / 'gpushare')
    arguments = parser.parse_args(argv)
    try:
        header = parse(arguments.headers)
        texts = outputs(header)
    except UnknownError as error:
        print(error, file=sys.stderr)
        return 1
    if not arguments.layout:
        write(arguments.package, texts)
        print(f'{len(header.functions)} functions, {len(header.structs)} structs, {len(header.enums)} enums.')
        return 0
    if not (arguments.package / 'abi.py').is_file():
        print(f'{arguments.package} has no abi.py; run generate.py without --layout, or build.', file=sys.stderr)
        return 1
    layout = c_layout(header, arguments.headers, arguments.layout)
    problems = layout_differences(load_abi(arguments.package), layout)
    print(f'{sum(map(len, layout.fields.values()))} fields compared with the C compiler.')
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
