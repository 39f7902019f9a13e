"""A wheel with a library in gpushare/lib is for its platform, but for every Python: the package has no extension."""

import pathlib

from setuptools import Distribution, setup

CARRIES_LIBRARY = any(pathlib.Path(__file__).parent.glob('gpushare/lib/*.so*'))
COMMANDS = {}

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


setup(distclass=PlatformDistribution, cmdclass=COMMANDS)
