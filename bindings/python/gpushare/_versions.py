"""What a report of a fault should say of the installation and of the machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path

from gpushare._library import library, library_path
from gpushare.enums import Drive, LogLevel
from gpushare.errors import Error
from gpushare.profiles import version
from gpushare.runtime import Runtime

_NEIGHBOURS = ('torch', 'triton', 'numpy')  # whose versions matter beside this package


def _device_lines() -> list[str]:
    lines: list[str] = []

    def log(level: LogLevel, message: str) -> None:
        if level <= LogLevel.WARNING:
            lines.append(f'warning: {message}')

    # The trace of a runtime that does nothing would replace one that the user keeps.
    trace = os.environ.pop('GPUSHARE_TRACE', None)
    try:
        # Nothing runs, so no thread can outrun virtual time.
        with Runtime(log=log, drive=Drive.POLL) as runtime:
            info = runtime.device()
            kind = ', SIMULATED' if info.simulated else ''
            kind += ', in virtual time' if info.virtual_time else ''
            return [f'device: {info.name}, {info.sm_count} SMs{kind}', *lines,
                    f'profile: {info.profile}', f'policy: {info.policy}']
    except Error as error:
        return [*lines, f'device: none opens: {error}']
    finally:
        if trace is not None:
            os.environ['GPUSHARE_TRACE'] = trace


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return 'not installed'


def versions() -> str:
    """Versions, device, profile, policy and the GPUSHARE_ variables that are set, a line each.

    Opens a runtime with default options for a moment, so that it shows what the environment sets.
    """
    lines = [
        f'gpushare: {version()} (C ABI {library().gpushare_abi_version()})',
        f'package: {Path(__file__).parent}',
        f'library: {library_path()}',
        f'python: {platform.python_version()} ({sys.executable})',
        f'system: {platform.platform()}',
        *(f'{name}: {_installed(name)}' for name in _NEIGHBOURS),
        *_device_lines(),
    ]
    variables = sorted(f'{name}={value}' for name, value in os.environ.items() if name.startswith('GPUSHARE_'))
    lines += [f'environment: {text}' for text in variables] or ['environment: no GPUSHARE_ variable is set']
    return '\n'.join(lines)


def show_versions() -> None:
    """Prints versions()."""
    print(versions())
