#!/usr/bin/env python3
"""Writes abi.json: the C ABI as data, for bindings of any language. The build runs it; docs/abi.md documents the file.

  abi_json.py OUT           writes OUT from the headers of bindings/c
  abi_json.py --check CC    computes the same and compares every number with those of the C compiler CC

  --headers DIR   the folder of the C headers (default: bindings/c)

Sizes and offsets are computed by the rules of 64-bit Linux, which x86_64 and aarch64 share. So a build for another
machine needs no program that runs. Exit code 0: done, or all is equal; 1: a difference, or an unknown declaration.
"""

import argparse
import json
import pathlib
import sys
from typing import Any

from c_header import Field, Function, Header, UnknownError, arguments_of, parse
from c_layout import Layout, c_layout

HERE = pathlib.Path(__file__).resolve().parent

# The number of the form of abi.json itself. A reader refuses another one.
FORMAT = 1

POINTER_BYTES = 8
SIZES = {'int': 4, 'int32_t': 4, 'uint32_t': 4, 'int64_t': 8, 'uint64_t': 8, 'size_t': 8, 'float': 4, 'double': 8}


class Sizes:
    """Sizes and alignments of the types that a header declares."""

    def __init__(self, header: Header) -> None:
        self._header = header
        self.structs: dict[str, tuple[int, int]] = {}  # size and alignment
        self.offsets: dict[str, list[int]] = {}
        for name, fields in header.structs.items():
            self._lay_out(name, fields)

    def of(self, field: Field) -> tuple[int, int]:
        """Size and alignment of a field. An array has the alignment of its elements."""
        size, alignment = self._of_type(field.type)
        return size * count_of(self._header, field), alignment

    def _of_type(self, name: str) -> tuple[int, int]:
        if name.endswith('*') or name.startswith('function(') or name in self._header.callbacks:
            return POINTER_BYTES, POINTER_BYTES
        name = self._header.aliases.get(name, name)
        if name in self.structs:
            return self.structs[name]
        if name not in SIZES:
            raise UnknownError(f'This type is unknown: {name!r}.')
        return SIZES[name], SIZES[name]

    def _lay_out(self, name: str, fields: list[Field]) -> None:
        end, strictest, offsets = 0, 1, []
        for field in fields:
            size, alignment = self.of(field)
            offsets.append(rounded_up(end, alignment))
            end = offsets[-1] + size
            strictest = max(strictest, alignment)
        self.structs[name] = rounded_up(end, strictest), strictest
        self.offsets[name] = offsets


def rounded_up(value: int, step: int) -> int:
    return -(-value // step) * step


def constant(text: str) -> int:
    """The value of a constant as c_header gives it: '63', '(-1)', '2**63 - 1'."""
    return 2**63 - 1 if text == '2**63 - 1' else int(text.strip('()'))


def count_of(header: Header, field: Field) -> int:
    """How many elements a field has: 1 unless it is an array."""
    if not field.count:
        return 1
    return int(field.count) if field.count.isdigit() else constant(header.constants[field.count])


def typed(header: Header, field: Field) -> dict[str, Any]:
    """What abi.json says of the type of a field or argument."""
    entry: dict[str, Any] = {'name': field.name, 'type': field.written}
    if field.type.startswith('function('):
        entry['arguments'] = [typed(header, argument) for argument in arguments_of(field.type[9:-1])]
    if field.count:
        entry['count'] = count_of(header, field)
    return entry


def struct_entry(header: Header, sizes: Sizes, name: str) -> dict[str, Any]:
    fields = []
    for field, offset in zip(header.structs[name], sizes.offsets[name], strict=True):
        entry = typed(header, field)
        fields.append({**entry, 'offset': offset, 'size': sizes.of(field)[0]})
    size, alignment = sizes.structs[name]
    return {'size': size, 'alignment': alignment, 'fields': fields}


def function_entry(header: Header, function: Function) -> dict[str, Any]:
    return {'result': function.written_result, 'arguments': [typed(header, each) for each in function.arguments]}


def description(header: Header) -> dict[str, Any]:
    """The whole of abi.json."""
    sizes = Sizes(header)
    values = {name: constant(text) for name, text in header.constants.items()}
    parts = (values[f'GPUSHARE_VERSION_{part}'] for part in ('MAJOR', 'MINOR', 'PATCH'))
    return {
        'format': FORMAT,
        'abi_version': values['GPUSHARE_ABI_VERSION'],
        'version': '.'.join(map(str, parts)),
        'soname': f'libgpushare.so.{values["GPUSHARE_ABI_VERSION"]}',
        'pointer_size': POINTER_BYTES,
        'aliases': header.aliases,
        'handles': header.opaque,
        'constants': values,
        'enums': {name: {value: number for value, number, _ in rows} for name, rows in header.enums.items()},
        'structs': {name: struct_entry(header, sizes, name) for name in header.structs},
        'callbacks': {name: function_entry(header, each) for name, each in header.callbacks.items()},
        'functions': {name: function_entry(header, each) for name, each in header.functions.items()},
    }


def differences(entry: dict[str, Any], layout: Layout) -> list[str]:
    """Where abi.json differs from the C compiler, as sentences."""
    problems = []
    for name, struct in entry['structs'].items():
        if struct['size'] != layout.sizes[name]:
            problems.append(f'{name} has {struct["size"]} bytes in abi.json, and {layout.sizes[name]} in C.')
        for field in struct['fields']:
            ours, theirs = (field['offset'], field['size']), layout.fields[name][field['name']]
            if ours != theirs:
                problems.append(f'{name}.{field["name"]} lies at {ours[0]} with {ours[1]} bytes in abi.json, '
                                f'and at {theirs[0]} with {theirs[1]} bytes in C.')
    numbers = {name: number for values in (entry['constants'], *entry['enums'].values())
               for name, number in values.items()}
    problems += [f'{name} is {number} in abi.json, and {layout.values[name]} in C.'
                 for name, number in numbers.items() if number != layout.values[name]]
    return problems


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('out', nargs='?', type=pathlib.Path)
    parser.add_argument('--check', metavar='CC', default='')
    parser.add_argument('--headers', type=pathlib.Path, default=HERE.parent / 'c')
    arguments = parser.parse_args(argv)
    if (arguments.out is None) == (not arguments.check):
        parser.error('give the file to write, or --check with a C compiler.')
    try:
        header = parse(arguments.headers)
        entry = description(header)
    except UnknownError as error:
        print(error, file=sys.stderr)
        return 1
    if arguments.out is not None:
        arguments.out.write_text(json.dumps(entry, indent=1) + '\n', encoding='utf-8')
        return 0
    problems = differences(entry, c_layout(header, arguments.headers, arguments.check))
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f'{len(entry["structs"])} structs and {len(entry["enums"])} enums compared with the C compiler.')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
