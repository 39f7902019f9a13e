#!/usr/bin/env python3
"""Writes launches of compiled kernels as files: the PTX, the grid, the arguments and the memory that they point to.

  record_launches.py --out FOLDER [--part 0/12] [--limit-s 150] [--cases all|pairs|network:gpt2]

Compiles the functions of compiled_functions.py by torch.compile, a product and a convolution also with all of
Inductor's Triton templates, and writes the first launch of each kernel that Triton loads: NAME.json, NAME.ptx and a
file for each tensor's storage. cuda_ptx_launches_gpu_test runs them again. --part I/N takes every Nth function, so
that several processes share the work. Prints how many launches were written, and why others were left out.

--cases pairs and network:NAME take the functions of fused_functions.py instead, of which ptx_fused_benchmark makes
fused twins: one call of each is recorded behind its compilation. Its launches in their order are in order.I.tsv, and
'products of cuBLAS' is how many products of these calls have no template and are not recorded.
Exit code 0: some were; 1: none; 77: there is no GPU, no PyTorch or no Triton.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import pathlib
import re
import struct
import sys
import time
import traceback
from typing import Any

os.environ['TORCHINDUCTOR_USE_STATIC_CUDA_LAUNCHER'] = '0'  # every launch by Triton's own launcher
os.environ.setdefault('TORCHINDUCTOR_COMPILE_THREADS', '1')
os.environ.setdefault('TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS', 'TRITON')
os.environ.setdefault('TORCHINDUCTOR_MAX_AUTOTUNE_CONV_BACKENDS', 'TRITON')

try:
    import torch
    from triton import knobs
    from triton.backends.nvidia import driver
except ImportError:
    print('skipped: PyTorch or Triton is not installed')
    sys.exit(77)
if not torch.cuda.is_available():
    print('skipped: PyTorch sees no GPU')
    sys.exit(77)

import compiled_functions
import fused_functions

BYTES_MAX = 48 << 20  # of a launch's memory
FUSED_BYTES_MAX = 1 << 30  # the same, of functions that fill a GPU
WARP = 32
FLOATS = {'fp16': '<e', 'fp32': '<f', 'fp64': '<d'}


class LeftOutError(Exception):
    """Why a launch is not written."""


class Recorder:
    """Sees each launch before it runs."""

    def __init__(self, folder: pathlib.Path, bytes_max: int) -> None:
        self.folder, self.bytes_max, self.source = folder, bytes_max, ''
        self.active = True
        self.order: list[tuple[str, str]] = []  # function and name of each launch
        self.texts: dict[int, tuple[str, str]] = {}  # entry and PTX of a loaded function
        self.written: set[str] = set()
        self.left_out: collections.Counter[str] = collections.Counter()
        self.library_products = 0  # of the calls that were recorded
        knobs.runtime.kernel_load_end_hook.add(self._loaded)
        self._watch(driver.CudaLauncher)

    def _loaded(self, _module: Any, function: int, name: str, group: dict[str, str], _hash: str) -> None:
        for file, path in group.items():
            if file.endswith('.ptx'):
                self.texts[int(function)] = (name, pathlib.Path(path).read_text(encoding='utf-8'))

    def _watch(self, launcher: Any) -> None:
        make, call, recorder = launcher.__init__, launcher.__call__, self

        def make_and_keep(self: Any, src: Any, metadata: Any) -> None:
            self.recorded = (list(src.signature.values()), metadata)
            make(self, src, metadata)

        def record_and_call(self: Any, x: int, y: int, z: int, stream: int, function: int, *args: Any) -> Any:
            try:
                if recorder.active:
                    recorder.record((x, y, z), function, *self.recorded, args)
            except LeftOutError as error:
                recorder.left_out[str(error)] += 1
            return call(self, x, y, z, stream, function, *args)

        launcher.__init__, launcher.__call__ = make_and_keep, record_and_call

    def record(self, grid: tuple[int, int, int], function: int, types: list[str], metadata: Any,
               args: tuple[Any, ...]) -> None:
        if int(function) not in self.texts:
            raise LeftOutError('its PTX is not known')
        entry, text = self.texts[int(function)]
        name = hashlib.sha256((entry + text).encode()).hexdigest()[:20]
        self.order.append((self.source, name))
        if name in self.written or (self.folder / f'{name}.json').exists():
            return
        if min(grid) < 1 or torch.cuda.is_current_stream_capturing():
            raise LeftOutError('an empty grid, or a capture')
        if getattr(metadata, 'num_ctas', 1) > 1:
            raise LeftOutError('clusters')
        torch.cuda.synchronize()
        memory = Memory(self.bytes_max)
        arguments = [memory.value(kind, value) for kind, value in self._taken(types, args)]
        blocks = grid[0] * grid[1] * grid[2]
        arguments += [memory.scratch(blocks * metadata.global_scratch_size),
                      memory.scratch(blocks * metadata.profile_scratch_size)]
        taken = re.search(rf'\.entry\s+{re.escape(entry)}\((.*?)\)', text, re.DOTALL)
        if taken is None or len(arguments) != taken[1].count('.param'):
            raise LeftOutError('the text has another number of parameters')
        self._write(name, memory, {
            'entry': entry, 'ptx': f'{name}.ptx', 'source': self.source, 'grid': grid,
            'threads': metadata.num_warps * WARP, 'shared': metadata.shared, 'arguments': arguments}, text)

    @staticmethod
    def _taken(types: list[str], args: tuple[Any, ...]) -> list[tuple[str, Any]]:
        """The arguments that the code takes. Launchers pass the constants too, or not."""
        if not all(isinstance(kind, str) for kind in types):
            raise LeftOutError('an argument that is a tuple')
        taken = [kind for kind in types if kind != 'constexpr']
        launch = 4  # the packed metadata, the launch's metadata and two hooks
        if len(args) == launch + len(types):
            return [pair for pair in zip(types, args[launch:], strict=True) if pair[0] != 'constexpr']
        if len(args) == launch + len(taken):
            return list(zip(taken, args[launch:], strict=True))
        raise LeftOutError(f'{len(args)} arguments of a launch for {len(types)} of the kernel')

    def _write(self, name: str, memory: Memory, record: dict[str, Any], text: str) -> None:
        record['buffers'] = []
        for i, storage in enumerate(memory.contents()):
            record['buffers'].append(f'{name}.{i}.bin')
            (self.folder / record['buffers'][-1]).write_bytes(storage)
        (self.folder / record['ptx']).write_text(text, encoding='utf-8')
        (self.folder / f'{name}.json').write_text(json.dumps(record), encoding='utf-8')
        self.written.add(name)


class Memory:
    """The storages that the arguments of a launch point to."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.storages: dict[int, Any] = {}  # by address, in the order of their numbers
        self.numbers: dict[int, int] = {}
        self.zeros: dict[int, int] = {}  # scratch: bytes by number
        self.bytes = 0

    def value(self, kind: str, value: Any) -> dict[str, Any]:
        if kind.startswith('*'):
            return self._pointer(value)
        if kind in FLOATS:
            return {'bytes': struct.pack(FLOATS[kind], value).hex()}
        integer = re.fullmatch(r'[iu](1|8|16|32|64)', kind)
        if integer is None:
            raise LeftOutError(f'an argument of type {kind.partition("<")[0]}')
        size = max(int(integer[1]) // 8, 1)
        return {'bytes': (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, 'little').hex()}

    def scratch(self, count: int) -> dict[str, Any]:
        if count == 0:
            return {'bytes': bytes(8).hex()}
        number = self._next(count)
        self.zeros[number] = count
        return {'buffer': number, 'offset': 0}

    def contents(self) -> list[bytes]:
        by_number = {number: bytes(count) for number, count in self.zeros.items()}
        for address, number in self.numbers.items():
            whole = torch.empty(0, dtype=torch.uint8, device='cuda').set_(self.storages[address])
            by_number[number] = whole.cpu().numpy().tobytes()
        return [by_number[number] for number in range(len(by_number))]

    def _pointer(self, tensor: Any) -> dict[str, Any]:
        if tensor is None:
            return {'bytes': bytes(8).hex()}
        tensor = getattr(tensor, 'base', tensor)  # of a reinterpretation
        if not isinstance(tensor, torch.Tensor) or not tensor.is_cuda:
            raise LeftOutError('a pointer that is no tensor of the GPU')
        storage = tensor.untyped_storage()
        address = storage.data_ptr()
        if address not in self.numbers:
            self.numbers[address] = self._next(storage.nbytes())
            self.storages[address] = storage
        return {'buffer': self.numbers[address], 'offset': tensor.data_ptr() - address}

    def _next(self, count: int) -> int:
        self.bytes += count
        if self.bytes > self.bytes_max:
            raise LeftOutError('more memory than is recorded')
        return len(self.numbers) + len(self.zeros)


def record_compilations(recorder: Recorder, part: int, parts: int, until: float) -> int:
    """Every launch, those of autotuning too. Returns how many functions failed."""
    failed = 0
    for case in compiled_functions.cases()[part::parts]:
        if time.monotonic() > until:
            break
        recorder.source = case.name
        try:
            case.run()
        except Exception:
            failed += 1
            print(f'{case.name}: {traceback.format_exc(limit=-2)}', file=sys.stderr)
        torch._dynamo.reset()
    return failed


def record_calls(recorder: Recorder, cases: list[fused_functions.FusedCase], until: float) -> int:
    """One call of each function behind its compilation. Returns how many functions failed."""
    failed = 0
    for case in cases:
        if time.monotonic() > until:
            break
        recorder.source, recorder.active = case.name, False
        try:
            call = case.prepare()
            call()
            torch.cuda.synchronize()
            recorder.library_products += fused_functions.library_products(call)
            torch.cuda.synchronize()
            recorder.active = True
            call()
            torch.cuda.synchronize()
        except Exception:
            failed += 1
            print(f'{case.name}: {traceback.format_exc(limit=-2)}', file=sys.stderr)
        torch._dynamo.reset()
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', type=pathlib.Path, required=True)
    parser.add_argument('--part', default='0/1')
    parser.add_argument('--limit-s', type=float, default=150.0, help='no function begins later')
    parser.add_argument('--cases', default='all', choices=[
        'all', 'pairs', *(f'network:{name}' for name in fused_functions.NETWORKS)])
    given = parser.parse_args()
    part, parts = (int(number) for number in given.part.split('/'))
    given.out.mkdir(parents=True, exist_ok=True)
    recorder = Recorder(given.out, BYTES_MAX if given.cases == 'all' else FUSED_BYTES_MAX)
    until = time.monotonic() + given.limit_s
    if given.cases == 'all':
        failed = record_compilations(recorder, part, parts, until)
    else:
        _, _, network = given.cases.partition(':')
        cases = [fused_functions.network_case(network)] if network else fused_functions.pair_cases()
        failed = record_calls(recorder, cases[part::parts], until)
        order = ''.join(f'{source}\t{name}\n' for source, name in recorder.order)
        (given.out / f'order.{part}.tsv').write_text(order, encoding='utf-8')
    print(json.dumps({'part': given.part, 'written': len(recorder.written), 'functions failed': failed,
                      'products of cuBLAS': recorder.library_products, 'left out': dict(recorder.left_out)}))
    return 0 if recorder.written else 1


if __name__ == '__main__':
    sys.exit(main())
