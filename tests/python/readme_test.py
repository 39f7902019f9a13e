#!/usr/bin/env python3
"""Runs the README's Python lines in a fresh virtual environment that has only the wheel, which has its parts' licences.

  readme_test.py LIBRARY     the built libgpushare.so that the wheel carries

Exit code 0: they ran and printed what they must; 1: they did not; 77: the tools that make a wheel are missing.
"""

import email
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import venv
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
# Debian's packages of what is compiled into the library.
PARTS = {'libabsl-dev', 'libeigen3-dev', 'nlohmann-json3-dev', 'libatomic-queue-dev', 'libprotozero-dev',
         'libnanoflann-dev', 'liblemon-dev'}


def readme_lines():
    text = (ROOT / 'README.md').read_text(encoding='utf-8')
    return re.search(r'^## In Python\n.*?^```python\n(.*?)^```', text, re.MULTILINE | re.DOTALL)[1]


def licence_problems(wheel):
    """What is wrong with the licence texts of the parts (docs/licences.md): METADATA names each file (PEP 639)."""
    with zipfile.ZipFile(wheel) as archive:
        metadata, = (name for name in archive.namelist() if name.endswith('.dist-info/METADATA'))
        texts = f'{metadata.removesuffix("METADATA")}licenses/'
        named = set(email.message_from_bytes(archive.read(metadata)).get_all('License-File', []))
        held = {name.removeprefix(texts) for name in archive.namelist()
                if name.startswith(texts) and archive.getinfo(name).file_size > 0}
    problems = [f'METADATA names {name}, and the wheel has no such text.' for name in sorted(named - held)]
    # A system without Debian's copyright files has none to give.
    expected = {path.parent.name for path in pathlib.Path('/usr/share/doc').glob('*/copyright')} & PARTS
    if pathlib.Path('/usr/share/common-licenses/Apache-2.0').exists():
        expected.add('Apache-2.0')
    missing = expected - {name.rpartition('/')[2] for name in named}
    return problems + [f'The wheel lacks the licence of {part}.' for part in sorted(missing)]


def main():
    if not (ROOT / 'build/python-tools/bin/auditwheel').exists():
        print('Skipped: auditwheel is not installed (tools/setup.sh).')
        return SKIPPED
    # Neither the source tree's package nor its library may be found.
    environment = {name: value for name, value in os.environ.items()
                   if name not in ('PYTHONPATH', 'GPUSHARE_LIBRARY', 'LD_LIBRARY_PATH', 'GPUSHARE_DEVICE')}
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([str(ROOT / 'tools/python_wheel.sh'), scratch, sys.argv[1]], check=True)
        wheel, = pathlib.Path(scratch).glob('*.whl')
        if problems := licence_problems(wheel):
            print('\n'.join(problems))
            return 1
        fresh = pathlib.Path(scratch) / 'environment'
        venv.create(fresh, with_pip=False)
        python = str(fresh / 'bin/python')
        # pip of this interpreter installs into the fresh one: making a pip there takes longer than the test.
        site = subprocess.run([python, '-c', 'import sysconfig; print(sysconfig.get_path("purelib"))'], check=True,
                              capture_output=True, text=True, env=environment).stdout.strip()
        subprocess.run([str(ROOT / 'build/python-tools/bin/python'), '-m', 'pip', 'install', '--quiet', '--no-index',
                        '--disable-pip-version-check', '--no-deps', '--target', site, str(wheel)], check=True)
        lines = readme_lines()
        print(lines)
        done = subprocess.run([python, '-c', lines], capture_output=True, text=True, env=environment, cwd=scratch,
                              timeout=60, check=False)
        print(done.stdout, done.stderr, sep='')
        found = subprocess.run([python, '-c', 'import gpushare; print(gpushare.library_path())'], check=True,
                               capture_output=True, text=True, env=environment, cwd=scratch).stdout
    if not found.startswith(site):
        print(f'The library is {found.strip()}, and it must be the one in the wheel.')
        return 1
    expected = r'p99 alone \d+ us, beside training \d+ us: \d+\.\d{3}; the step was evicted \d+ times\n'
    return 0 if done.returncode == 0 and re.fullmatch(expected, done.stdout) else 1


if __name__ == '__main__':
    sys.exit(main())
