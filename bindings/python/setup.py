"""Packs the package: writes the declarations first, and gives a wheel with a library the tag of its platform.

A wheel with a library in gpushare/lib is for its platform, but for every Python: the extension gpushare._steps,
which it may carry, is of CPython's limited API, and without it the package uses ctypes.
"""

import pathlib
import subprocess
import sys

from setuptools import Distribution, setup

HERE = pathlib.Path(__file__).resolve().parent
CARRIES_LIBRARY = any(HERE.glob('gpushare/lib/*.so*'))
COMMANDS = {}
# tools/python_wheel.sh puts the texts here. The names of pyproject.toml for them differ between releases of setuptools.
LICENCES = {'license_files': ['licences/*']} if (HERE / 'licences').is_dir() else {}

if (HERE.parent / 'c/gpushare.h').is_file():  # not in a source distribution, which carries the declarations
    subprocess.run([sys.executable, '-B', str(HERE / 'generate.py')], check=True)
elif not (HERE / 'gpushare/abi.py').is_file():
    sys.exit('The declarations of gpushare are missing, and bindings/c, from which they are written, is not beside '
             f'{HERE}. Install from a complete source tree.')

if CARRIES_LIBRARY:
    try:
        from setuptools.command.bdist_wheel import bdist_wheel
    except ImportError:  # before setuptools 70.1 the package wheel has it
        from wheel.bdist_wheel import bdist_wheel

    class PlatformWheel(bdist_wheel):
        def get_tag(self):
            return 'py3', 'none', super().get_tag()[2]

    COMMANDS['bdist_wheel'] = PlatformWheel


class PlatformDistribution(Distribution):
    def has_ext_modules(self):
        return CARRIES_LIBRARY


setup(distclass=PlatformDistribution, cmdclass=COMMANDS, **LICENCES)
