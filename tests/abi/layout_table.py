"""bindings/c/layout.txt: the frozen sizes, offsets and values of the ABI, and what may be added to it.

A line is a struct with its size and the offset of each field, an enum with its values, or the constants. A line that
begins with spaces continues the one above.
"""

import dataclasses
import pathlib
import re
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'bindings/python'))
from c_header import parse  # noqa: E402
from c_layout import c_layout  # noqa: E402

TOP = '''# Frozen: the size of each struct and the offset of each field in bytes, the value of each enum and constant.
# The target abi_baseline adds what the headers add, and refuses every other change (docs/abi.md).
'''
# A release changes them.
NOT_FROZEN = ('GPUSHARE_VERSION_MAJOR', 'GPUSHARE_VERSION_MINOR', 'GPUSHARE_VERSION_PATCH')


@dataclasses.dataclass
class Table:
    """The numbers by name of each group: 'struct gpushare_ticket', 'enum gpushare_status_value', 'constants'."""
    sizes: dict = dataclasses.field(default_factory=dict)  # of the groups that are structs
    numbers: dict = dataclasses.field(default_factory=dict)


def measured(folder, compiler):
    """The table of the headers in a folder, as the C compiler lays them out."""
    header = parse(pathlib.Path(folder))
    layout = c_layout(header, pathlib.Path(folder), compiler)
    table = Table()
    for name, fields in layout.fields.items():
        table.sizes[f'struct {name}'] = layout.sizes[name]
        table.numbers[f'struct {name}'] = {field: offset for field, (offset, _) in fields.items()}
    for name, values in header.enums.items():
        table.numbers[f'enum {name}'] = {value: layout.values[value] for value, *_ in values}
    table.numbers['constants'] = {name: layout.values[name] for name in header.constants if name not in NOT_FROZEN}
    return table


def read(path):
    table = Table()
    text = re.sub(r'^#.*\n', '', pathlib.Path(path).read_text(encoding='utf-8'), flags=re.MULTILINE)
    for line in text.replace('\n    ', ' ').splitlines():
        group, size, numbers = re.fullmatch(r'((?:struct |enum )?\w+)(?: (\d+))?: (.*)', line).groups()
        if size is not None:
            table.sizes[group] = int(size)
        table.numbers[group] = {name: int(number) for name, number in
                                (re.split('[@=]', word) for word in numbers.split())}
    return table


def write(path, table):
    lines = []
    for group, numbers in table.numbers.items():
        size, mark = (f' {table.sizes[group]}', '@') if group in table.sizes else ('', '=')
        words = ' '.join(f'{name}{mark}{number}' for name, number in numbers.items())
        lines += textwrap.wrap(f'{group}{size}: {words}', 100, subsequent_indent='    ', break_long_words=False,
                               break_on_hyphens=False)
    pathlib.Path(path).write_text(TOP + '\n'.join(lines) + '\n', encoding='utf-8')


def entries(table):
    """(group, name, number) of everything in the table. The name '' has the size of a struct."""
    for group, numbers in table.numbers.items():
        yield group, '', table.sizes.get(group, 0)
        for name, number in numbers.items():
            yield group, name, number


def changed(frozen, now, growing):
    """What breaks callers that were built with the frozen table, as sentences. `growing`: structs that carry a size."""
    current = {(group, name): number for group, name, number in entries(now)}
    for group, name, number in entries(frozen):
        found, what = current.get((group, name)), f'{group} {name}'.strip()
        if found is None:
            yield f'{what} is frozen with {number}, and the headers lack it.'
        elif found != number and not (name == '' and found > number and group.removeprefix('struct ') in growing):
            yield f'{what} is frozen with {number}, and the headers have {found}.'


def differences(frozen, now):
    """Everything in which the tables differ, as sentences."""
    known = {(group, name) for group, name, _ in entries(frozen)}
    yield from changed(frozen, now, ())
    for group, name, _ in entries(now):
        if (group, name) not in known:
            yield f'{group} {name}'.strip() + ' is new.'
