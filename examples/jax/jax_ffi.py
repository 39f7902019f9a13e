#!/usr/bin/env python3
"""A jitted function of JAX whose middle is a latency-critical (LC) query of gpushare, by JAX's FFI.

  jax_ffi.py [--device auto] [--calls 100] [--bound 1.05]

It builds handler.cc, registers its handler, and calls it between two operations of JAX. --device sim needs no GPU: JAX
runs on the CPU then. Checks the results and counts the queries. It needs jax, a C++ compiler or nvcc, and
GPUSHARE_LIBRARY: the path of libgpushare.so.1.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy

HERE = pathlib.Path(__file__).resolve().parent
HEADER = HERE.parents[1] / 'bindings/c/gpushare.h'  # of the source tree; an installed one is <gpushare/gpushare.h>
TARGETS = {'cpu': 'example_scale_cpu', 'cuda': 'example_scale_cuda'}
COUNTED_S = 10.0  # for the last query to be counted


def built(platform: str, folder: pathlib.Path, library: str) -> pathlib.Path:
    """Compiles the handler against JAX's headers and the library. Returns the shared object."""
    (folder / 'gpushare').mkdir()
    shutil.copy(HEADER, folder / 'gpushare')
    out = folder / 'handler.so'
    compiler = ['nvcc', '-x', 'cu', '-Xcompiler', '-fPIC'] if platform == 'cuda' else ['g++', '-fPIC']
    linked = ['-Xlinker', library] if platform == 'cuda' else [library]
    rpath = f'-rpath={pathlib.Path(library).resolve().parent}'
    linked += ['-Xlinker', rpath] if platform == 'cuda' else [f'-Wl,{rpath}']
    subprocess.run([*compiler, '-std=c++17', '-O2', '-shared', f'-I{folder}', '-isystem', jax.ffi.include_dir(),
                    str(HERE / 'handler.cc'), '-o', str(out), *linked], check=True)
    return out


class Handler:
    """The shared object, with a runtime and an LC app of its own, within a with block."""

    def __init__(self, path: pathlib.Path, platform: str, device: str, bound: float) -> None:
        self._functions = ctypes.CDLL(str(path))
        self._functions.example_completed.restype = ctypes.c_int64
        self._functions.example_open.argtypes = [ctypes.c_char_p, ctypes.c_double]
        self._target = TARGETS[platform]
        jax.ffi.register_ffi_target(self._target, jax.ffi.pycapsule(getattr(self._functions, self._target)),
                                    platform={'cpu': 'cpu', 'cuda': 'CUDA'}[platform])
        if self._functions.example_open(device.encode(), bound) != 0:
            self._functions.gpushare_last_error_message.restype = ctypes.c_char_p
            raise RuntimeError(self._functions.gpushare_last_error_message().decode())

    def __enter__(self) -> Handler:
        return self

    def __exit__(self, *_: object) -> None:
        self._functions.example_close()

    def scale(self, x: jax.Array, factor: float) -> jax.Array:
        """factor * x. In a jitted function too; it has a side effect, so that no call of it is left out."""
        call = jax.ffi.ffi_call(self._target, jax.ShapeDtypeStruct(x.shape, x.dtype), has_side_effect=True)
        return call(x, factor=numpy.float32(factor))

    def completed(self, count: int) -> int:
        """Queries that are complete; waits some time for `count`."""
        until = time.monotonic() + COUNTED_S
        while (found := self._functions.example_completed()) < count and time.monotonic() < until:
            time.sleep(0.001)
        return int(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--device', choices=('auto', 'cuda', 'sim'), default='auto')
    parser.add_argument('--calls', type=int, default=100)
    parser.add_argument('--bound', type=float, default=1.05, help='p99 of a query over its p99 alone')
    given = parser.parse_args()
    on_gpu = given.device != 'sim' and jax.default_backend() == 'gpu'
    if given.device == 'cuda' and not on_gpu:
        print('JAX sees no GPU.', file=sys.stderr)
        return 1
    platform, device = ('cuda', 'cuda') if on_gpu else ('cpu', 'sim')
    with tempfile.TemporaryDirectory() as folder:
        path = built(platform, pathlib.Path(folder), os.environ['GPUSHARE_LIBRARY'])
        with Handler(path, platform, device, given.bound) as handler:
            return checked(handler, given.calls, platform)


def checked(handler: Handler, calls: int, platform: str) -> int:
    """Calls the handler between two operations of JAX; the results must be those of JAX alone."""
    service = jax.jit(lambda x: handler.scale(x + 1, 3.0) - 2)
    differ, began = 0, time.perf_counter()
    for number in range(calls):
        x = jnp.arange(10_000, dtype=jnp.float32) + number
        differ += not jnp.array_equal(service(x), (x + 1) * 3.0 - 2)
    took, completed = time.perf_counter() - began, handler.completed(calls)
    print(f'JAX on {platform}: {completed} of {calls} calls are complete queries, {differ} results differ, '
          f'{1e6 * took / max(1, calls):.0f} us a call')
    return 0 if completed == calls and not differ else 1


if __name__ == '__main__':
    sys.exit(main())
