#!/usr/bin/env python3
"""Checks what libraries of packages export and need: the C ABI alone, and nothing newer than glibc 2.28.

A library of any machine will do, and so will a wheel or a tarball: its libgpushare.so and libgpushare_ptx.so are looked at,
and the extension of a wheel.
Exit code 0: all is well; 1: problems, printed with the file; 2: bad use.

  check_symbols.py FILE...      FILE: one of these libraries, a wheel or a tarball of tools/package.sh
  check_symbols.py --exports FILE...   what it needs may be newer, as in a build for this machine
  check_symbols.py --self-test  plants each fault in the output of readelf and expects a report
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

BINDINGS = pathlib.Path(__file__).resolve().parent.parent / 'bindings'
# What manylinux_2_28 allows of versioned symbols. libstdc++ is inside, so that none of its versions is needed.
NEWEST = {'GLIBC': (2, 28), 'GCC': (7, 0, 0)}
# Of every glibc from 2.28 on; the loader's name says the machine.
NEEDED = re.compile(r'lib(c\.so\.6|m\.so\.6|pthread\.so\.0|dl\.so\.2|rt\.so\.1|gcc_s\.so\.1)$|ld-linux-(x86-64|aarch64)\.so\.[12]$')
LIBRARY = re.compile(r'(^|/)libgpushare(_ptx)?(\.so\.\d+\.\d+\.\d+\.\d+|-?[0-9a-f]*\.so\.\d+)$|(^|/)_steps\.abi3\.so$')

# A row of a defined symbol that others can link; its type does not matter.
# readelf writes sizes from 100,000 bytes on in hex.
DEFINED = re.compile(r'^ *\d+: [0-9a-f]+ +(?:0x[0-9a-f]+|\d+) +\S+ +(?:GLOBAL|WEAK|UNIQUE) +(?:DEFAULT|PROTECTED)'
                     r'(?: +\[[^\]]*\])? +\d+ (\S+)', re.MULTILINE)


# A function that must be found when the library is loaded, without the version that a symbol of glibc has: those of
# Python in its extension, or one that glibc 2.28 lacks. A linker lets it pass in an extension.
UNVERSIONED = re.compile(r'^ *\d+: 0+ +0 +\S+ +GLOBAL +\S+(?: +\[[^\]]*\])? +UND ([^@\s]+)$', re.MULTILINE)


def readelf(path):
    command = ['readelf', '--wide', '--dynamic', '--version-info', '--dyn-syms', str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True, encoding='utf-8').stdout


def exported(text):
    """Names of the defined dynamic symbols."""
    return {name.split('@')[0] for name in DEFINED.findall(text)}


def order(version):
    return tuple(int(part) for part in version.split('.')) if re.fullmatch(r'[0-9.]+', version) else (sys.maxsize,)


def newest_versions(text):
    """Of each family of versioned symbols that the library needs, its name and the newest version."""
    newest = {}
    for name, version in re.findall(r'Name: ([A-Z]+)_(\S+)  Flags', text):
        newest[name] = max(newest.get(name, '0'), version, key=order)
    return sorted(newest.items())


def symbols_of(path):
    """What a library must export, by its file's name."""
    if pathlib.Path(path).name.startswith('_steps'):
        return {'PyInit_steps'}
    folder = 'ptx' if 'libgpushare_ptx' in pathlib.Path(path).name else 'c'
    return set((BINDINGS / folder / 'symbols.txt').read_text(encoding='utf-8').split())


def problems_of(text, symbols, exports_alone=False):
    """Sentences about one library; text is readelf's output."""
    found = []
    names = exported(text)
    found += [f'exports {name}, which symbols.txt has not' for name in sorted(names - symbols)]
    found += [f'does not export {name}' for name in sorted(symbols - names)]
    if exports_alone:
        return found
    is_extension = any(name.startswith('PyInit_') for name in symbols)
    found += [f'needs {name}, which glibc {".".join(map(str, NEWEST["GLIBC"]))} lacks' for name in UNVERSIONED.findall(text)
              if not (is_extension and re.match('_?Py', name))]
    for library in re.findall(r'\(NEEDED\) +Shared library: \[(.*)\]', text):
        if not NEEDED.match(library):
            found.append(f'needs {library}')
    for name, version in newest_versions(text):
        newest = NEWEST.get(name)
        if newest is None:
            found.append(f'needs symbols of {name}_{version}, and only those of {", ".join(NEWEST)} are allowed')
        elif order(version) > newest:
            found.append(f'needs symbols of {name}_{version}, newer than {".".join(map(str, newest))}')
    return found


def libraries_of(path, folder):
    """The libraries that a package holds, unpacked into folder; a library is its own."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return [pathlib.Path(archive.extract(name, folder)) for name in archive.namelist() if LIBRARY.search(name)]
    if tarfile.is_tarfile(path):
        found = []
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and LIBRARY.search(member.name):
                    found.append(pathlib.Path(folder) / pathlib.PurePosixPath(member.name).name)
                    found[-1].write_bytes(archive.extractfile(member).read())
        return found
    return [path]


def wanted_of(path):
    """The libraries that a package must hold: a wheel has no use for libgpushare_ptx.so."""
    if zipfile.is_zipfile(path):
        return ('libgpushare.so',)
    return ('libgpushare.so', 'libgpushare_ptx.so') if tarfile.is_tarfile(path) else ()


def missing_of(names, wanted):
    """Those wanted libraries that no file's name is one of."""
    has_twins = ['libgpushare_ptx' in name for name in names if not name.startswith('_steps')]
    return [each for each in wanted if ('_ptx' in each) not in has_twins]


def check(path, exports_alone):
    with tempfile.TemporaryDirectory() as folder:
        libraries = libraries_of(path, folder)
        missing = missing_of([library.name for library in libraries], wanted_of(path))
        return [f'{path}: there is no {name} in it' for name in missing] + [f'{path}: {library.name} {problem}' for library in libraries
                for problem in problems_of(readelf(library), symbols_of(library), exports_alone)]


GOOD = '''
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [ld-linux-aarch64.so.1]
     7: 0000000000012340    52 FUNC    GLOBAL DEFAULT   12 gpushare_a@@GPUSHARE_1
     8: 0000000000000000     0 OBJECT  GLOBAL DEFAULT  ABS GPUSHARE_1
     9: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND malloc@GLIBC_2.17 (2)
  0x0010:   Name: GLIBC_2.17  Flags: none  Version: 2
  0x0020:   Name: GCC_3.0  Flags: none  Version: 3
'''
ROW = '    52 FUNC    GLOBAL DEFAULT   12 gpushare_a@@GPUSHARE_1'
LEAKED = f'{ROW}\n    10: 0000000000023450'
FAULTS = (
    ('gpushare_a@@GPUSHARE_1', 'gpushare_b@@GPUSHARE_1', ('exports gpushare_b', 'does not export gpushare_a')),
    (ROW, f'{LEAKED}     8 OBJECT  UNIQUE DEFAULT   20 leaked', ('exports leaked',)),
    (ROW, f'{LEAKED}     8 TLS     GLOBAL DEFAULT   20 leaked', ('exports leaked',)),
    (ROW, f'{LEAKED}    52 IFUNC   GLOBAL DEFAULT   12 leaked', ('exports leaked',)),
    (ROW, f'{LEAKED}    52 FUNC    WEAK   PROTECTED   12 leaked', ('exports leaked',)),
    (ROW, f'{LEAKED} 0x1b000 FUNC    GLOBAL DEFAULT   12 leaked', ('exports leaked',)),
    (ROW, f'{LEAKED}    52 FUNC    GLOBAL DEFAULT [VARIANT_PCS]   12 leaked', ('exports leaked',)),
    ('malloc@GLIBC_2.17 (2)', 'arc4random', ('needs arc4random, which glibc 2.28 lacks',)),
    ('malloc@GLIBC_2.17 (2)', 'PyLong_FromLong', ('needs PyLong_FromLong, which',)),
    ('libc.so.6', 'libstdc++.so.6', ('needs libstdc++.so.6',)),
    ('GLIBC_2.17  Flags', 'GLIBC_2.34  Flags', ('newer than 2.28',)),
    ('GLIBC_2.17  Flags', 'GLIBC_ABI_DT_RELR  Flags', ('newer than 2.28',)),
    ('GCC_3.0  Flags', 'GCC_12.0.0  Flags', ('newer than 7.0.0',)),
    ('GCC_3.0  Flags', 'GLIBCXX_3.4.30  Flags', ('GLIBCXX_3.4.30',)),
)

BOTH = ('libgpushare.so', 'libgpushare_ptx.so')
# What a package has, what it must have, and what is missing.
PACKAGES = (
    (['libgpushare.so.1.0.1.0', 'libgpushare_ptx.so.0.0.1.0'], BOTH, []),
    (['libgpushare.so.1.0.1.0'], BOTH, ['libgpushare_ptx.so']),
    (['libgpushare_ptx.so.0.0.1.0'], BOTH, ['libgpushare.so']),
    ([], BOTH, list(BOTH)),
    (['libgpushare.so.1'], BOTH[:1], []),
    (['libgpushare_ptx.so.0'], BOTH[:1], ['libgpushare.so']),
    (['_steps.abi3.so'], BOTH[:1], ['libgpushare.so']),
)


def wanted_of_packages():
    """A wheel, a tarball and a library: what it is, what it must hold, and what is right."""
    with tempfile.TemporaryDirectory() as folder:
        wheel, tarball, library = (pathlib.Path(folder) / name for name in ('a.whl', 'a.tar.gz', 'libgpushare.so.1'))
        zipfile.ZipFile(wheel, 'w').close()
        tarfile.open(tarball, 'w:gz').close()
        library.write_bytes(b'\x7fELF')
        return [(path.name, wanted_of(path), right)
                for path, right in ((wheel, BOTH[:1]), (tarball, BOTH), (library, ()))]


def self_test():
    failures = [f'nothing is wrong, reported: {problem}' for problem in problems_of(GOOD, {'gpushare_a'})]
    for old, new, wanted in FAULTS:
        found = problems_of(GOOD.replace(old, new), {'gpushare_a'})
        if len(found) != len(wanted) or not all(part in problem for part, problem in zip(wanted, found)):
            failures.append(f'{new} in place of {old}, reported: {found}')
    needs_new = GOOD.replace('libc.so.6', 'libstdc++.so.6')
    failures += [f'of exports alone, reported: {problem}' for problem in problems_of(needs_new, {'gpushare_a'}, True)]
    if len(problems_of(GOOD, {'gpushare_b'}, True)) != 2:
        failures.append('other exports are not reported where exports alone are asked for')
    extension = GOOD.replace('gpushare_a@@GPUSHARE_1', 'PyInit_steps').replace('malloc@GLIBC_2.17 (2)', '_PyObject_New')
    failures += [f'of an extension, reported: {problem}' for problem in problems_of(extension, {'PyInit_steps'})]
    failures += [f'of {names} is missing, reported: {missing_of(names, wanted)}' for names, wanted, missing in PACKAGES
                 if missing_of(names, wanted) != missing]
    failures += [f'of {kind} is wanted, reported: {wanted}' for kind, wanted, right in wanted_of_packages() if wanted != right]
    if symbols_of('lib/libgpushare_ptx.so.0.0.1.0') & symbols_of('lib/libgpushare.so.1'):
        failures.append('two libraries export one name')
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('files', nargs='*', type=pathlib.Path)
    parser.add_argument('--exports', action='store_true')
    parser.add_argument('--self-test', action='store_true')
    arguments = parser.parse_args()
    if arguments.self_test == bool(arguments.files):
        parser.error('give files, or --self-test')
    problems = self_test() if arguments.self_test else [
        each for path in arguments.files for each in check(path, arguments.exports)]
    for problem in problems:
        print(problem)
    if not problems:
        print('The self-test passes.' if arguments.self_test else f'{len(arguments.files)} of {len(arguments.files)} files are as they must be.')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
