#!/usr/bin/env python3
"""Writes the declarations of gpushare-sys, and the test of their layout, from abi.json (docs/abi.md).

  generate.py ABI_JSON            writes gpushare-sys/src/abi.rs and gpushare-sys/tests/layout.rs
  generate.py ABI_JSON --check    exit code 1 if the committed files are not what it would write

The files are committed, so that the crate builds without Python. Rust has no say in the numbers of the test: they
are those of abi.json, which the C compiler confirms.
"""

import argparse
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
NOTE = '// Written by bindings/rust/generate.py from abi.json. Do not edit.\n'
SCALARS = {
    'int': 'c_int', 'int32_t': 'i32', 'uint32_t': 'u32', 'int64_t': 'i64', 'uint64_t': 'u64', 'size_t': 'usize',
    'float': 'f32', 'double': 'f64', 'char': 'c_char', 'void': 'c_void',
}
# Constants that are no i64: what the library returns, and lengths of arrays.
CONSTANTS = {'GPUSHARE_ABI_VERSION': 'u32', 'GPUSHARE_HOLD_REASONS': 'usize', 'GPUSHARE_PARTS_MAX': 'usize',
             'GPUSHARE_CO_SCHEDULE_RATIOS': 'usize'}
KEYWORDS = {'type', 'move', 'ref', 'in', 'fn', 'use', 'where', 'as', 'match', 'box'}

TOP = '''//! The C ABI of gpushare under its C names. `gpushare.h` documents each function, struct and value.

''' + NOTE + '''
use core::ffi::c_void;
use std::os::raw::{c_char, c_int};

'''


def rust_type(entry: dict) -> str:
    """The Rust type of a field, argument or result that abi.json describes."""
    if 'arguments' in entry:
        return function_pointer(entry['arguments'], 'void')
    text = entry['type']
    pointers = ''
    while match := re.fullmatch(r'(.*?)( ?const ?)?\*', text):
        text, constant = match[1], bool(match[2])
        # `const T*` has its word in front of the type, `T* const*` before its star.
        if not text.endswith('*') and text.startswith('const '):
            constant = True
        pointers += '*const ' if constant else '*mut '
    base = re.sub(r'\b(const|volatile)\b', '', text).strip()
    result = pointers + SCALARS.get(base, base)
    return f'[{result}; {entry["count"]}]' if 'count' in entry else result


def identifier(name: str) -> str:
    return f'r#{name}' if name in KEYWORDS else name


def parameters(arguments: list) -> str:
    return ', '.join(f'{identifier(each["name"])}: {rust_type(each)}' for each in arguments)


def returned(result: str) -> str:
    return '' if result == 'void' else f' -> {rust_type({"type": result})}'


def function_pointer(arguments: list, result: str) -> str:
    return f'Option<unsafe extern "C" fn({parameters(arguments)}){returned(result)}>'


def values(abi: dict) -> list:
    lines = [f'pub const {name}: {CONSTANTS.get(name, "i64")} = {number};' for name, number in abi['constants'].items()]
    for enum, rows in abi['enums'].items():
        alias = enum.removesuffix('_value')
        kind = alias if alias in abi['aliases'] else 'u32'  # bits of a uint32_t have no alias
        lines += ['', *(f'pub const {name}: {kind} = {number};' for name, number in rows.items())]
    return lines


def struct(name: str, entry: dict) -> list:
    fields = [f'    pub {identifier(each["name"])}: {rust_type(each)},' for each in entry['fields']]
    lines = ['', '#[repr(C)]', '#[derive(Clone, Copy, Debug)]', f'pub struct {name} {{', *fields, '}']
    sized = entry['fields'][0]['name'] == 'struct_size'
    size = f'value.struct_size = core::mem::size_of::<{name}>() as u32;'
    body = [f'        let mut value: {name} = unsafe {{ core::mem::zeroed() }};', f'        {size}', '        value'] \
        if sized else ['        unsafe { core::mem::zeroed() }']
    note = ['    /// Zero, which means default, with `struct_size` set.'] if sized else ['    /// All zero.']
    return [*lines, '', f'impl Default for {name} {{', *note, '    fn default() -> Self {', *body, '    }', '}']


def declarations(abi: dict) -> str:
    lines = [f'pub type {name} = {SCALARS[base]};' for name, base in abi['aliases'].items()]
    for name in abi['handles']:
        lines += ['', '#[repr(C)]', f'pub struct {name} {{', '    _opaque: [u8; 0],', '}']
    lines += ['', *values(abi)]
    for name, entry in abi['callbacks'].items():
        lines += ['', f'pub type {name} = {function_pointer(entry["arguments"], entry["result"])};']
    for name, entry in abi['structs'].items():
        lines += struct(name, entry)
    lines += ['', 'extern "C" {']
    lines += [f'    pub fn {name}({parameters(entry["arguments"])}){returned(entry["result"])};'
              for name, entry in abi['functions'].items()]
    return TOP + '\n'.join([*lines, '}']) + '\n'


LAYOUT_TOP = '''//! Sizes, alignments and offsets as rustc lays the structs out, against abi.json.

''' + NOTE + '''
use core::mem::{align_of, size_of, MaybeUninit};
use gpushare_sys::*;

macro_rules! offset {
    ($owner:ty, $field:ident) => {{
        let value = MaybeUninit::<$owner>::uninit();
        let base = value.as_ptr();
        unsafe { core::ptr::addr_of!((*base).$field) as usize - base as usize }
    }};
}

#[test]
fn structs_have_the_layout_of_abi_json() {
'''


def layout(abi: dict) -> str:
    lines = []
    for name, entry in abi['structs'].items():
        lines += [f'    assert_eq!(size_of::<{name}>(), {entry["size"]});',
                  f'    assert_eq!(align_of::<{name}>(), {entry["alignment"]});']
        lines += [f'    assert_eq!(offset!({name}, {identifier(each["name"])}), {each["offset"]});'
                  for each in entry['fields']]
    return LAYOUT_TOP + '\n'.join(lines) + '\n}\n'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('abi_json', type=pathlib.Path)
    parser.add_argument('--check', action='store_true')
    arguments = parser.parse_args()
    abi = json.loads(arguments.abi_json.read_text(encoding='utf-8'))
    if abi['format'] != 1:
        sys.exit(f'{arguments.abi_json} has format {abi["format"]}, and this generator knows format 1.')
    stale = 0
    for name, text in (('src/abi.rs', declarations(abi)), ('tests/layout.rs', layout(abi))):
        path = HERE / 'gpushare-sys' / name
        if not arguments.check:
            path.write_text(text, encoding='utf-8')
        elif not path.is_file() or path.read_text(encoding='utf-8') != text:
            print(f'bindings/rust/gpushare-sys/{name} is not what the header says; run '
                  'bindings/rust/generate.py BUILD/bindings/c/abi.json.', file=sys.stderr)
            stale = 1
    return stale


if __name__ == '__main__':
    sys.exit(main())
