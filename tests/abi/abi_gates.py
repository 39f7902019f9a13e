#!/usr/bin/env python3
"""The gates of the C ABI. Each has a self-test that doctors what it checks and expects it to fail.

  abi_gates.py headers  --headers DIR --cpp DIR --cc CC --cxx CXX [--self-test]
      every public header compiles alone, as C99 to C23 and C++17 to C++23, without implicit padding
  abi_gates.py symbols  --shared-object LIB --symbols FILE --headers DIR [--self-test]
      exported symbols, bindings/c/symbols.txt and the declared functions are the same set, under
      the SONAME and the symbol version of GPUSHARE_ABI_VERSION
  abi_gates.py layout   --headers DIR --layout FILE --cc CC [--self-test | --update]
      sizes, offsets and enum values are as frozen in bindings/c/layout.txt. --update writes it again, and
      refuses what breaks callers of the same version
  abi_gates.py abidiff  --headers DIR --baseline FILE --cc CC [--self-test | --update]
      types and symbols are those of the last reviewed baseline; skips (77) without abidiff.
      --update writes the baseline again, and refuses what breaks callers of the same version
  abi_gates.py enums    --headers DIR --shared-object LIB --docs DIR [--self-test]
      every value has its name in the library, every name a value, and the docs list each

Exit code 0: passed; 1: failed, with the reason; 77: skipped.
"""

import argparse
import ctypes
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

import layout_table

# The first is included by the others.
C_HEADERS = ('gpushare.h', 'gpushare_policy.h', 'gpushare_cost_model.h')
CPP_HEADERS = ('gpushare.hpp', 'host_memory.hpp', 'group/group.hpp')
# The names that g++ 12 and clang 14 know for C23 and C++23.
C_STANDARDS = ('c99', 'c11', 'c17', 'c2x')
CPP_STANDARDS = ('c++17', 'c++20', 'c++2b')
WARNINGS = ('-Wall', '-Wextra', '-Wpedantic', '-Werror')
# A sanitizer exports symbols of its own runtime.
FOREIGN = re.compile(r'^(_init|_fini|_edata|_end|__bss_start|GPUSHARE_[0-9]+|__(asan|ubsan|tsan|odr)_.*)$')
SKIPPED = 77


class Failure(Exception):
    """A gate failed; the text says why."""


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def compile_alone(compiler, language, standard, folders, text, more=()):
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / f'alone.{language}'
        source.write_text(text)
        includes = [f'-I{folder}' for folder in folders]
        return run(compiler, f'-std={standard}', *WARNINGS, *more, *includes, '-fsyntax-only',
                   str(source))


def structs(headers, header):
    """The structs that <gpushare/header> defines, with those of what it includes."""
    names = C_HEADERS if header in CPP_HEADERS else dict.fromkeys((C_HEADERS[0], header))
    text = ''.join((pathlib.Path(headers) / 'gpushare' / name).read_text() for name in names)
    return re.findall(r'^} (gpushare_\w+);', text, re.MULTILINE)


def check_headers(arguments, headers=None):
    headers = headers or arguments.headers
    jobs = [(arguments.cc, 'c', standard, header, ('-Wpadded',))
            for standard in C_STANDARDS for header in C_HEADERS]
    jobs += [(arguments.cxx, 'cc', standard, header, ('-Wpadded',))
             for standard in CPP_STANDARDS for header in C_HEADERS]
    # Classes of the C++ API may be padded: they do not cross the ABI.
    jobs += [(arguments.cxx, 'cc', standard, header, ())
             for standard in CPP_STANDARDS for header in CPP_HEADERS]
    for compiler, language, standard, header, more in jobs:
        # Twice: the guard works. With a use of an _INIT macro: they must compile too.
        text = f'#include <gpushare/{header}>\n#include <gpushare/{header}>\n'
        text += 'int use(void);\nint use(void) {\n'
        text += '  gpushare_task_options options = GPUSHARE_TASK_OPTIONS_INIT;\n'
        text += '  return (int)options.struct_size;\n}\n'
        # clang lays a struct out, and so sees padding, only where something asks for its size.
        text += ''.join(f'extern char size_of_{name}[sizeof({name})];\n'
                        for name in structs(headers, header))
        result = compile_alone(compiler, language, standard, (headers, arguments.cpp), text, more)
        if result.returncode != 0:
            raise Failure(f'<gpushare/{header}> does not compile as {standard}:\n{result.stderr}')
    print(f'{len(jobs)} compilations of the public headers passed.')


def doctored_headers(scratch, source, old, new):
    """A copy of the header folder in which gpushare.h has `new` in place of the first `old`."""
    folder = pathlib.Path(scratch) / 'include'
    shutil.copytree(source, folder)
    path = folder / 'gpushare' / 'gpushare.h'
    text = path.read_text()
    if old not in text:
        raise Failure(f'The self-test does not find {old!r} in gpushare.h.')
    path.write_text(text.replace(old, new, 1))
    return folder


def must_fail(what, check):
    try:
        check()
    except Failure:
        print(f'As it must, the gate fails on {what}.')
        return
    raise Failure(f'The gate passes on {what}.')


def self_test_headers(arguments):
    cases = (
        ('a C++ type in the C header', 'typedef int32_t gpushare_bool;', 'typedef bool gpushare_bool;'),
        ('implicit padding', '  gpushare_drive drive;\n', '  char drive;\n'),
        ('a C11 construct', 'typedef int32_t gpushare_bool;',
         'typedef int32_t gpushare_bool; _Static_assert(1, "");'),
    )
    for what, old, new in cases:
        with tempfile.TemporaryDirectory() as scratch:
            folder = doctored_headers(scratch, arguments.headers, old, new)
            must_fail(what, lambda folder=folder: check_headers(arguments, folder))


def abi_version(headers):
    text = (pathlib.Path(headers) / 'gpushare' / 'gpushare.h').read_text()
    return re.search(r'^#define GPUSHARE_ABI_VERSION (\d+)$', text, re.MULTILINE).group(1)


def soname(headers):
    return f'libgpushare.so.{abi_version(headers)}'


def declared(headers):
    text = ''.join((pathlib.Path(headers) / 'gpushare' / name).read_text() for name in C_HEADERS)
    return set(re.findall(r'GPUSHARE_API[^;{]*?\b(gpushare_\w+)\(', text))


def exported(library):
    result = run('nm', '-D', '--defined-only', str(library))
    if result.returncode != 0:
        raise Failure(f'nm cannot read {library}: {result.stderr}')
    names = {line.split()[-1].split('@')[0] for line in result.stdout.splitlines() if line.split()}
    return {name for name in names if not FOREIGN.match(name)}


def check_version(library, headers):
    """By these two names alone the loader refuses callers of another version."""
    result = run('objdump', '-p', str(library))
    wanted = (('SONAME', soname(headers)), ('symbol version', f'GPUSHARE_{abi_version(headers)}'))
    for what, name in wanted:
        if not re.search(rf'\s{re.escape(name)}$', result.stdout, re.MULTILINE):
            raise Failure(f'{library} has no {what} {name}:\n{result.stdout}{result.stderr}')


def same(left_name, left, right_name, right):
    if left == right:
        return
    raise Failure(f'Only in {left_name}: {sorted(left - right)}; only in {right_name}: '
                  f'{sorted(right - left)}.')


def check_symbols(arguments, symbols=None, headers=None):
    listed = pathlib.Path(symbols or arguments.symbols).read_text().split()
    if listed != sorted(set(listed)):
        raise Failure('symbols.txt is not sorted, or names a symbol twice.')
    same('the headers', declared(headers or arguments.headers), 'symbols.txt', set(listed))
    same('the library', exported(arguments.shared_object), 'symbols.txt', set(listed))
    check_version(arguments.shared_object, headers or arguments.headers)
    print(f'{len(listed)} symbols are declared, listed and exported.')


def self_test_symbols(arguments):
    listed = pathlib.Path(arguments.symbols).read_text().split()
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / 'symbols.txt'
        for what, names in (('a missing symbol', listed[1:]),
                            ('an extra symbol', sorted(listed + ['gpushare_zzz'])),
                            ('an unsorted list', listed[::-1])):
            path.write_text('\n'.join(names) + '\n')
            must_fail(what, lambda: check_symbols(arguments, symbols=path))
        folder = doctored_headers(scratch, arguments.headers, 'gpushare_abi_version(void)',
                                  'gpushare_abi_version2(void)')
        must_fail('a declaration without a symbol', lambda: check_symbols(arguments, headers=folder))
    with tempfile.TemporaryDirectory() as scratch:
        version = f'#define GPUSHARE_ABI_VERSION {abi_version(arguments.headers)}\n'
        folder = doctored_headers(scratch, arguments.headers, version,
                                  '#define GPUSHARE_ABI_VERSION 77\n')
        must_fail('a library under the SONAME of another version',
                  lambda: check_symbols(arguments, headers=folder))


def check_layout(arguments, headers=None):
    headers = pathlib.Path(headers or arguments.headers)
    now = layout_table.measured(headers / 'gpushare', arguments.cc)
    frozen = layout_table.read(arguments.layout)
    if arguments.update:
        same_version = str(frozen.numbers['constants']['GPUSHARE_ABI_VERSION']) == abi_version(headers)
        breaks = list(layout_table.changed(frozen, now, growing_structs(headers))) if same_version else []
        if breaks:
            raise Failure(f'Callers of ABI version {abi_version(headers)} break (docs/abi.md):\n' + '\n'.join(breaks))
        layout_table.write(arguments.layout, now)
        print(f'{arguments.layout} is the layout of the headers now.')
        return
    problems = list(layout_table.differences(frozen, now))
    if problems:
        raise Failure(f'The layout differs from the frozen one ({arguments.layout}):\n' + '\n'.join(problems))
    print(f'{len(list(layout_table.entries(now)))} sizes, offsets and values are as frozen.')


def self_test_layout(arguments):
    """Every change fails the gate; a breaking change is refused as a new table too."""
    breaks = (
        ('a field in the middle', '  int64_t submit_ns;\n', '  int64_t submit_ns;\n  int64_t other_ns;\n'),
        ('fields that change places', '  int32_t evictions;\n  int32_t launches;\n',
         '  int32_t launches;\n  int32_t evictions;\n'),
        ('another enum value', 'GPUSHARE_TASK_OPAQUE = 5', 'GPUSHARE_TASK_OPAQUE = 6'),
        ('another constant', '#define GPUSHARE_HOLD_REASONS 32', '#define GPUSHARE_HOLD_REASONS 40'),
        ('a field that went', RECORD_END, ''),
        ('a field more in a struct without a size', SUMMARY_END,
         '  int64_t max_ns;\n  int64_t p999_ns;\n} gpushare_latency_summary;'),
    )
    growths = (
        ('a field at the end', RECORD_END, f'{RECORD_END}  int64_t other_ns;\n'),
        ('a value more', 'GPUSHARE_TASK_OPAQUE = 5', 'GPUSHARE_TASK_OPAQUE = 5,\n  GPUSHARE_TASK_LATER = 77'),
        ('a struct more', 'typedef int32_t gpushare_bool;',
         'typedef int32_t gpushare_bool;\ntypedef struct gpushare_later {\n  int64_t value;\n} gpushare_later;'),
    )
    must_be_refused(arguments, 'layout', check_layout, breaks, growths)


def stub_source(headers):
    """A C file that defines every declared function. The library's own debug information would drag in
    what it is made of; its implementations are compiled against these same declarations, so that the
    types are these, and the symbols gate holds the names together."""
    text = ''.join((pathlib.Path(headers) / 'gpushare' / name).read_text() for name in C_HEADERS)
    text = re.sub(r'//[^\n]*', '', text)
    definitions = re.findall(r'GPUSHARE_API\s+([^;{]*?\))\s*GPUSHARE_NOEXCEPT;', text)
    includes = ''.join(f'#include <gpushare/{name}>\n' for name in C_HEADERS)
    return includes + ''.join(f'{one} {{ __builtin_trap(); }}\n' for one in definitions)


def write_abi(arguments, target, headers=None):
    headers = pathlib.Path(headers or arguments.headers).resolve()
    library = soname(headers)
    with tempfile.TemporaryDirectory() as scratch:
        (pathlib.Path(scratch) / 'abi.c').write_text(stub_source(headers))
        for command in (
                (arguments.cc, '-std=c11', '-g', '-O0', '-fPIC', '-shared', f'-I{headers}', 'abi.c',
                 '-o', library, f'-Wl,-soname,{library}'),
                ('abidw', '--no-corpus-path', '--no-comp-dir-path', '--no-show-locs',
                 '--no-elf-needed', '--no-write-default-sizes', '--type-id-style', 'hash',
                 '--out-file', str(target), library)):
            result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=scratch)
            if result.returncode != 0:
                raise Failure(f'{command[0]} fails: {result.stderr}')


def compare_abi(baseline, current):
    result = run('abidiff', '--no-show-locs', str(baseline), str(current))
    if result.returncode != 0:
        raise Failure(f'The ABI differs from the baseline (bindings/c/CHANGELOG.md, docs/abi.md):\n'
                      f'{result.stdout}{result.stderr}')


def growing_structs(headers):
    """The structs that callers give or get with a size: a struct_size, or a stride of the snapshot."""
    text = ''.join((pathlib.Path(headers) / 'gpushare' / name).read_text() for name in C_HEADERS)
    sized = re.findall(r'^typedef struct (gpushare_\w+) \{\n  uint32_t struct_size;', text, re.MULTILINE)
    strided = re.findall(r'^typedef struct (gpushare_\w+_view) \{', text, re.MULTILINE)
    inside = {'gpushare_part_view'}  # an array of fixed length in gpushare_running_view
    return sorted(set(sized + strided + ['gpushare_pair_option']) - inside)


def members(struct):
    return [(member.get('layout-offset-in-bits'), member.find('var-decl').get('name'),
             member.find('var-decl').get('type-id')) for member in struct.findall('data-member')]


def shape(element):
    """A type or function without the names of its parameters."""
    attributes = {key: value for key, value in element.attrib.items()
                  if key != 'name' or element.tag != 'parameter'}
    return element.tag, attributes, [shape(child) for child in element]


def breakage(old, new, may_grow):
    """What breaks a caller of `old`, or None. The ids of types are hashes of their names."""
    if new is None:
        return 'is gone'
    if shape(old) == shape(new):
        return None
    if not may_grow or old.tag != 'class-decl' or new.tag != 'class-decl':
        return 'is another'
    if members(new)[:len(members(old))] != members(old):
        return 'has other fields where its old ones were'
    size, end = int(new.get('size-in-bits')), int(old.get('size-in-bits'))
    if size < end or any(int(offset) < end for offset, _, _ in members(new)[len(members(old)):]):
        return 'grows inside its old size'
    return None


def check_compatible(baseline, current, headers):
    """Nothing that breaks a caller of the same version: functions may come, and structs that carry
    their size may grow at their end. abidiff cannot be told that: its suppressions hide too much."""
    def table(path):
        declared_things = xml.etree.ElementTree.parse(path).getroot().find('abi-instr')
        return {thing.get('elf-symbol-id') or thing.get('id'): thing for thing in declared_things}
    growing = set(growing_structs(headers))
    new = table(current)
    breaks = [(old.get('name') or key, breakage(old, new.get(key), old.get('name') in growing))
              for key, old in table(baseline).items()]
    reasons = [f'{name} {reason}.' for name, reason in breaks if reason is not None]
    if reasons:
        raise Failure(f'Callers of ABI version {abi_version(headers)} break (docs/abi.md):\n'
                      + '\n'.join(reasons))


def check_abidiff(arguments, headers=None):
    headers = headers or arguments.headers
    with tempfile.TemporaryDirectory() as scratch:
        current = pathlib.Path(scratch) / 'current.abi'
        write_abi(arguments, current, headers)
        if arguments.update:
            baseline = pathlib.Path(arguments.baseline)
            if f"soname='{soname(headers)}'" in baseline.read_text():
                check_compatible(baseline, current, headers)
            shutil.copyfile(current, baseline)
            print(f'{arguments.baseline} is the ABI of the headers now.')
            return
        compare_abi(arguments.baseline, current)
        check_compatible(arguments.baseline, current, headers)  # names of fields too
    print('The ABI is that of the baseline.')


RECORD_END = ('  gpushare_verdict failed_dependency_verdict;  // how that task ended; PENDING: there is none\n'
              '  int32_t reserved;\n')
SUMMARY_END = '  int64_t max_ns;\n} gpushare_latency_summary;'
VERSION_FUNCTION = 'GPUSHARE_API uint32_t gpushare_abi_version(void) GPUSHARE_NOEXCEPT;'

BREAKS = (
    ('a function that went', VERSION_FUNCTION, ''),
    ('another parameter type', 'uint32_t gpushare_kernel_id(gpushare_kernel* kernel)',
     'uint32_t gpushare_kernel_id(int64_t kernel)'),
    ('a field in the middle', '  int64_t submit_ns;\n', '  int64_t submit_ns;\n  int64_t other_ns;\n'),
    ('a field of another type', '  int32_t evictions;\n  int32_t launches;\n',
     '  int64_t evictions;\n'),
    ('a field that went', RECORD_END, ''),
    ('a field that became another at the end', RECORD_END, '  int64_t other_ns;\n'),
    ('a field more in a struct without a size', SUMMARY_END,
     '  int64_t max_ns;\n  int64_t p999_ns;\n} gpushare_latency_summary;'),
    ('a field of another name', '  int32_t evictions;\n  int32_t launches;\n',
     '  int32_t evicted;\n  int32_t launches;\n'),
    ('another integer type', 'typedef int32_t gpushare_verdict;', 'typedef uint32_t gpushare_verdict;'),
    ('another parameter of a callback', 'typedef void (*gpushare_enqueue_callback)(void* stream,',
     'typedef void (*gpushare_enqueue_callback)(int64_t stream,'),
)
GROWTHS = (
    ('a function more', VERSION_FUNCTION,
     f'{VERSION_FUNCTION}\nGPUSHARE_API uint32_t gpushare_later(void) GPUSHARE_NOEXCEPT;'),
    ('a field at the end', RECORD_END, f'{RECORD_END}  int64_t other_ns;\n'),
)


def must_be_refused(arguments, committed, check, breaks, growths):
    """Every change fails a check, and a break is refused where the check updates its committed file."""
    for is_break, cases in ((True, breaks), (False, growths)):
        for what, old, new in cases:
            with tempfile.TemporaryDirectory() as scratch:
                folder = doctored_headers(scratch, arguments.headers, old, new)
                copy = pathlib.Path(scratch) / 'committed'
                shutil.copyfile(getattr(arguments, committed), copy)
                update = argparse.Namespace(**{**vars(arguments), 'update': True, committed: copy})
                must_fail(what, lambda folder=folder: check(arguments, folder))
                if is_break:
                    must_fail(f'{what}, taken over into the committed file',
                              lambda update=update, folder=folder: check(update, folder))
                else:
                    check(update, folder)
                    check(argparse.Namespace(**{**vars(update), 'update': False}), folder)


def self_test_abidiff(arguments):
    """Every change fails the gate; a breaking change is refused as a new baseline too."""
    must_be_refused(arguments, 'baseline', check_abidiff, BREAKS, GROWTHS)


# Enum, name function, prefix of its values, and the page that lists them (None: the header does).
NAMED_ENUMS = (
    ('gpushare_status_value', 'gpushare_status_name', 'GPUSHARE_', 'errors.md'),
    ('gpushare_app_class_value', 'gpushare_app_class_name', 'GPUSHARE_CLASS_', None),
    ('gpushare_task_kind_value', 'gpushare_task_kind_name', 'GPUSHARE_TASK_', None),
    ('gpushare_form_value', 'gpushare_form_name', 'GPUSHARE_FORM_', None),
    ('gpushare_verdict_value', 'gpushare_verdict_name', 'GPUSHARE_VERDICT_', 'errors.md'),
    ('gpushare_reason_value', 'gpushare_reason_name', 'GPUSHARE_REASON_', 'abi.md'),
    ('gpushare_event_type_value', 'gpushare_event_type_name', 'GPUSHARE_EVENT_', 'abi.md'),
)
# What a name function says for a number without a name.
NO_NAMES = ('unknown', 'UNKNOWN_STATUS')
ENUM_NUMBERS = range(256)


def enum_values(headers, enum):
    """The values of an enum of gpushare.h, by name."""
    text = (pathlib.Path(headers) / 'gpushare' / 'gpushare.h').read_text()
    body = re.search(rf'^enum {enum} {{(.*?)^}};', text, re.MULTILINE | re.DOTALL)
    if body is None:
        raise Failure(f'gpushare.h has no enum {enum}.')
    return {name: int(value) for name, value in
            re.findall(r'^  (GPUSHARE_\w+) = (\d+)', body.group(1), re.MULTILINE)}


def documented(docs, page, word):
    text = (pathlib.Path(docs) / page).read_text()
    return re.search(rf'(?<![A-Za-z0-9_]){word}(?![A-Za-z0-9_])', text) is not None


def check_enums(arguments, headers=None, docs=None):
    headers, docs = headers or arguments.headers, docs or arguments.docs
    library = ctypes.CDLL(str(arguments.shared_object))
    count = 0
    for enum, function, prefix, page in NAMED_ENUMS:
        name_of = getattr(library, function)
        name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.c_int32]
        values = enum_values(headers, enum)
        for constant, value in values.items():
            word = constant.removeprefix(prefix)
            name = name_of(value).decode()
            if name.upper() != word:
                raise Failure(f'{function}({value}) is "{name}", and {constant} is that value.')
            if page and value != 0 and not documented(docs, page, word) \
                    and not documented(docs, page, name):
                raise Failure(f'docs/{page} does not list {constant}.')
            count += 1
        for number in ENUM_NUMBERS:
            name = name_of(number).decode()
            if name not in NO_NAMES and number not in values.values():
                raise Failure(f'{function}({number}) is "{name}", and {enum} has no such value.')
    print(f'{count} values of {len(NAMED_ENUMS)} enums have their names, and the docs list them.')


def self_test_enums(arguments):
    last = '  GPUSHARE_EVENT_NEXT_STATED = 23  // next_within_ns of a submission; serves replay\n'
    cases = (
        ('a value without a name', last, f'  GPUSHARE_EVENT_NEXT_STATED = 23,\n  GPUSHARE_EVENT_LATER = 24\n'),
        ('a name without a value', last, ''),
        ('another name than the value has', 'GPUSHARE_EVENT_HELD = 10', 'GPUSHARE_EVENT_KEPT = 10'),
    )
    for what, old, new in cases:
        with tempfile.TemporaryDirectory() as scratch:
            folder = doctored_headers(scratch, arguments.headers, old, new)
            must_fail(what, lambda folder=folder: check_enums(arguments, folder))
    for word in ('QUERY_BEGIN_CALLED', 'hold_counters', 'TIMED_OUT'):
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            for page in {page for *_, page in NAMED_ENUMS if page}:
                text = (pathlib.Path(arguments.docs) / page).read_text()
                (folder / page).write_text(text.replace(word, 'gone'))
            must_fail(f'docs without {word}',
                      lambda folder=folder: check_enums(arguments, docs=folder))


GATES = {
    'enums': (check_enums, self_test_enums),
    'headers': (check_headers, self_test_headers),
    'symbols': (check_symbols, self_test_symbols),
    'layout': (check_layout, self_test_layout),
    'abidiff': (check_abidiff, self_test_abidiff),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('gate', choices=GATES)
    for name in ('headers', 'cpp', 'cc', 'cxx', 'shared-object', 'symbols', 'layout', 'baseline',
                 'docs'):
        parser.add_argument(f'--{name}')
    parser.add_argument('--self-test', action='store_true')
    parser.add_argument('--update', action='store_true')
    arguments = parser.parse_args()
    if arguments.gate == 'abidiff' and not (shutil.which('abidw') and shutil.which('abidiff')):
        print('Skipped: abidw and abidiff (package abigail-tools) are not installed.')
        return SKIPPED
    check, self_test = GATES[arguments.gate]
    try:
        (self_test if arguments.self_test else check)(arguments)
    except Failure as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main())
