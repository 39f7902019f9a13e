#!/usr/bin/env python3
"""The gate of <gpushare/kernels.h>: it compiles alone and beside <gpushare/gpushare.h>, as C99 to C23 and as C++17 to
C++23, without implicit padding; what it declares is what the library exports, and a C99 program takes every address.

  interface_gate.py --library LIB --include DIR --include DIR --cc CC --cxx CXX [--self-test]

Exit code 0: passed; 1: failed, with the reason.
"""

import argparse
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / 'abi'))
sys.dont_write_bytecode = True
import abi_gates  # noqa: E402: the folder is on the path only now

HEADER = pathlib.Path('gpushare') / 'kernels.h'
VERSION_NODE = re.compile(r'^GPUSHARE_KERNELS_[0-9]+$')


def folder_of_header(arguments):
    for folder in arguments.include:
        if (pathlib.Path(folder) / HEADER).is_file():
            return pathlib.Path(folder)
    raise abi_gates.Failure(f'No folder of {arguments.include} has {HEADER}.')


def declared(folder):
    text = (folder / HEADER).read_text()
    return set(re.findall(r'GPUSHARE_KERNELS_API[^;{]*?\b(gpushare_\w+)\(', text))


def check_compiles(arguments, folders):
    text = (pathlib.Path(folders[0]) / HEADER).read_text()
    names = re.findall(r'^typedef struct (gpushare_\w+) \{', text, re.MULTILINE)
    source = ('#include <gpushare/kernels.h>\n#include <gpushare/gpushare.h>\n#include <gpushare/kernels.h>\n'
              'int use(void);\nint use(void) {\n'
              '  gpushare_gemm_params params = GPUSHARE_GEMM_PARAMS_INIT;\n'
              '  return (int)params.struct_size;\n}\n')
    source += ''.join(f'extern char size_of_{name}[sizeof({name})];\n' for name in names)
    jobs = [(arguments.cc, 'c', standard) for standard in abi_gates.C_STANDARDS]
    jobs += [(arguments.cxx, 'cc', standard) for standard in abi_gates.CPP_STANDARDS]
    for compiler, language, standard in jobs:
        for code in ('#include <gpushare/kernels.h>\n', source):
            result = abi_gates.compile_alone(compiler, language, standard, folders, code, ('-Wpadded',))
            if result.returncode != 0:
                raise abi_gates.Failure(f'{HEADER} does not compile as {standard}:\n{result.stderr}')


def check_symbols(arguments, folder):
    exported = {name for name in abi_gates.exported(arguments.library) if not VERSION_NODE.match(name)}
    abi_gates.same('the header', declared(folder), 'the library', exported)


def check_addresses(arguments, folders):
    names = sorted(declared(pathlib.Path(folders[0])))
    entries = ''.join(f'    (function){name},\n' for name in names)
    library = pathlib.Path(arguments.library).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / 'addresses.c'
        source.write_text('#include <gpushare/kernels.h>\n#include <stddef.h>\ntypedef void (*function)(void);\n'
                          f'static const function addresses[] = {{\n{entries}}};\n'
                          'int main(void) {\n  size_t i;\n'
                          '  for (i = 0; i < sizeof(addresses) / sizeof(addresses[0]); ++i) {\n'
                          '    if (addresses[i] == NULL) return 1;\n  }\n  return 0;\n}\n')
        program = str(pathlib.Path(scratch) / 'addresses')
        built = abi_gates.run(arguments.cc, '-std=c99', *[f'-I{folder}' for folder in folders], str(source),
                              str(library), f'-Wl,-rpath,{library.parent}', '-o', program)
        if built.returncode != 0:
            raise abi_gates.Failure(f'A program with every address does not link:\n{built.stderr}')
        if abi_gates.run(program).returncode != 0:
            raise abi_gates.Failure('A symbol has no address.')


def check(arguments, folder=None):
    folders = [str(folder or folder_of_header(arguments)), *arguments.include]
    check_compiles(arguments, folders)
    check_symbols(arguments, pathlib.Path(folders[0]))
    check_addresses(arguments, folders)
    print(f'{len(declared(pathlib.Path(folders[0])))} functions are declared and exported.')


def self_test(arguments):
    cases = (
        ('a C++ type in the C header', 'typedef int32_t gpushare_kernels_bound;',
         'typedef bool gpushare_kernels_bound;'),
        ('implicit padding', '  uint32_t reserved;  // must be 0\n  const void* a;',
         '  char reserved;\n  const void* a;'),
        ('a declaration without a symbol', 'gpushare_kernels_count(void)', 'gpushare_kernels_count2(void)'),
    )
    source = folder_of_header(arguments)
    for what, old, new in cases:
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch) / 'include'
            shutil.copytree(source, folder)
            text = (folder / HEADER).read_text()
            if old not in text:
                raise abi_gates.Failure(f'The self-test does not find {old!r} in {HEADER}.')
            (folder / HEADER).write_text(text.replace(old, new, 1))
            abi_gates.must_fail(what, lambda folder=folder: check(arguments, folder))


def main():
    parser = argparse.ArgumentParser(description='Checks <gpushare/kernels.h> and its library.')
    parser.add_argument('--library', required=True)
    parser.add_argument('--include', action='append', required=True)
    parser.add_argument('--cc', required=True)
    parser.add_argument('--cxx', required=True)
    parser.add_argument('--self-test', action='store_true')
    arguments = parser.parse_args()
    try:
        (self_test if arguments.self_test else check)(arguments)
    except abi_gates.Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
