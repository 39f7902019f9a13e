"""Asks a C compiler for the sizes, offsets and values of what the headers of bindings/c declare."""

import dataclasses
import pathlib
import shutil
import subprocess
import tempfile

from c_header import HEADERS, Header


@dataclasses.dataclass
class Layout:
    sizes: dict[str, int] = dataclasses.field(default_factory=dict)  # by struct
    fields: dict[str, dict[str, tuple[int, int]]] = dataclasses.field(default_factory=dict)  # offset and size
    values: dict[str, int] = dataclasses.field(default_factory=dict)  # of enums and numeric constants


def c_layout(header: Header, folder: pathlib.Path, compiler: str) -> Layout:
    """Compiles a program that prints the layout, and runs it. `header` is what parse(folder) gave."""
    lines = [f'S {name} %zu", sizeof({name})' for name in header.structs]
    lines += [f'F {name} {field.name} %zu %zu", offsetof({name}, {field.name}), sizeof((({name}*)0)->{field.name})'
              for name, fields in header.structs.items() for field in fields]
    lines += [f'V {name} %lld", (long long){name}'
              for name in (*(value[0] for values in header.enums.values() for value in values), *header.constants)]
    layout = Layout()
    for line in _printed(folder, compiler, ''.join(f'  printf("\\n{line});\n' for line in lines)).split('\n')[1:]:
        kind, owner, *rest = line.split()
        if kind == 'S':
            layout.sizes[owner] = int(rest[0])
            layout.fields[owner] = {}
        elif kind == 'F':
            layout.fields[owner][rest[0]] = (int(rest[1]), int(rest[2]))
        else:
            layout.values[owner] = int(rest[0])
    return layout


def _printed(folder: pathlib.Path, compiler: str, body: str) -> str:
    """What a main function with this body prints."""
    with tempfile.TemporaryDirectory() as scratch:
        include = pathlib.Path(scratch) / 'gpushare'
        include.mkdir()
        for name in HEADERS:
            shutil.copy(folder / name, include)
        source, program = pathlib.Path(scratch) / 'layout.c', pathlib.Path(scratch) / 'layout'
        source.write_text(''.join(f'#include <gpushare/{name}>\n' for name in HEADERS)
                          + f'#include <stdio.h>\nint main(void) {{\n{body}  return 0;\n}}\n', encoding='utf-8')
        subprocess.run([compiler, '-std=c99', f'-I{scratch}', str(source), '-o', str(program)], check=True)
        return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
