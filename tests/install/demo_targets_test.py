#!/usr/bin/env python3
"""`cmake --install` works after tools/demo.sh and in tools/package.sh: it asks for no file that ninja makes for other
targets alone.

  demo_targets_test.py BUILD    a build tree of ninja, in which nothing needs to be built

Exit code 0: every installed file comes with the script's targets; 1: a file that does not, named.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What CMake writes for install(): where to, what kind, whether the file may be missing, and the files.
INSTALL = re.compile(r'file\(INSTALL DESTINATION "[^"]*" TYPE \w+ ([A-Z_ ]*?)FILES((?:\s+"[^"]*")+)')


def demo_targets():
    """What tools/demo.sh builds."""
    return re.search(r'^compile release (.*)$', (ROOT / 'tools/demo.sh').read_text(encoding='utf-8'), re.MULTILINE)[1].split()


def package_targets(build):
    """What tools/package.sh builds, and the wheel's extension, which no installation has."""
    script = f'source "{ROOT}/tools/common.sh"; packed_targets "{build}"'
    return subprocess.run(['bash', '-c', script], check=True, capture_output=True, text=True).stdout.split()


def ninja(build, *arguments):
    """The lines of one of ninja's tools."""
    return subprocess.run(['ninja', '-C', str(build), '-t', *arguments], check=True, capture_output=True, text=True).stdout.splitlines()


def installed_files(build, with_components):
    """Files that must be there, as paths below the build tree; with_components: those of kernels and ptx too."""
    below = re.search(r'^CMAKE_HOME_DIRECTORY:INTERNAL=|^# For build in directory: (.*)$',
                      (build / 'CMakeCache.txt').read_text(encoding='utf-8'), re.MULTILINE)[1]
    for script in build.rglob('cmake_install.cmake'):
        text = script.read_text(encoding='utf-8')
        if not with_components and 'is left out, because' in text:
            continue  # kernels/CMakeLists.txt: it looks by itself
        for flags, files in INSTALL.findall(text):
            if 'OPTIONAL' not in flags:
                yield from (name[len(below) + 1:] for name in re.findall(r'"([^"]*)"', files) if name.startswith(below + '/'))


def missing_files(build, script, targets, with_components):
    """Says what the targets of a script do not build of what is installed, and how much that is."""
    made = {line.split(': ')[0] for line in ninja(build, 'targets', 'all')}
    commands = set(ninja(build, 'commands', *targets))
    files = sorted(name for name in set(installed_files(build, with_components)) if name in made)
    # The last command is the one that makes the file.
    missing = [name for name in files if ninja(build, 'commands', name)[-1] not in commands]
    for name in missing:
        print(f'{name} is installed, and the targets of {script} do not build it.')
    print(f'Ninja makes {len(files)} installed files for {script}.')
    return bool(missing) or not files


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    found = [missing_files(build, 'tools/demo.sh', demo_targets(), False),
             missing_files(build, 'tools/package.sh', package_targets(build), True)]
    return 1 if any(found) else 0


if __name__ == '__main__':
    sys.exit(main())
