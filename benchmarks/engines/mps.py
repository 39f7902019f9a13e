"""NVIDIA's Multi-Process Service for as long as a with block lasts. Needs no PyTorch.

The control daemon runs in the foreground as a child, in folders of its own. So it is known by its process id, and no
other daemon of the machine is touched. It ends with the block, whatever happens in it.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator

CONTROL = 'nvidia-cuda-mps-control'
PIPE = 'control'  # the daemon's pipe in its folder: it is ready
READY_S, QUIT_S, END_S = 10.0, 10.0, 5.0


class NoMpsError(Exception):
    """There is no MPS on this machine, or its daemon does not start."""


@contextlib.contextmanager
def mps() -> Iterator[dict[str, str]]:
    """Yields the environment of the processes that are to run under it."""
    if shutil.which(CONTROL) is None:
        raise NoMpsError(f"'{CONTROL}' is not installed.")
    with tempfile.TemporaryDirectory(prefix='mps-') as folder:
        pipes, logs = pathlib.Path(folder, 'pipe'), pathlib.Path(folder, 'log')
        pipes.mkdir()
        logs.mkdir()
        added = {'CUDA_MPS_PIPE_DIRECTORY': str(pipes), 'CUDA_MPS_LOG_DIRECTORY': str(logs)}
        environment = {**os.environ, **added}
        daemon = subprocess.Popen([CONTROL, '-f'], env=environment, start_new_session=True, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _await_pipe(daemon, pipes / PIPE)
            yield added
        finally:
            _end(daemon, environment)


def _await_pipe(daemon: subprocess.Popen[bytes], pipe: pathlib.Path) -> None:
    until = time.monotonic() + READY_S
    while not pipe.exists():
        if daemon.poll() is not None:
            raise NoMpsError(f'The daemon of MPS ended at once, with exit code {daemon.returncode}.')
        if time.monotonic() > until:
            raise NoMpsError(f'The daemon of MPS made no pipe within {READY_S:.0f} s.')
        time.sleep(0.05)


def _end(daemon: subprocess.Popen[bytes], environment: dict[str, str]) -> None:
    """Asks the daemon to quit; ends its whole session where it does not."""
    with contextlib.suppress(subprocess.TimeoutExpired, OSError):
        if daemon.poll() is None:
            subprocess.run([CONTROL], input=b'quit\n', env=environment, timeout=QUIT_S, check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            daemon.wait(END_S)
    for how in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(daemon.pid, how)  # its servers are of its session
        with contextlib.suppress(subprocess.TimeoutExpired):
            daemon.wait(END_S)
            return
