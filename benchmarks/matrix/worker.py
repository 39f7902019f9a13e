"""The process of one service: makes it, then measures its rows in order until the deadline."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from typing import Any

import torch
import torchvision  # noqa: F401  imported while the GPU still belongs to another process
from catalogue import Catalogue
from finished import Finished
from matrix_plan import ALONE, PEAK, Row
from pairs import Pairs, Settings
from served import Served

import gpushare

NO_GPU = 77


def work(arguments: argparse.Namespace, rows: list[Row], finished: Finished, deadline: float) -> int:
    if not torch.cuda.is_available():
        print('skipped: PyTorch sees no GPU')
        return NO_GPU
    _deterministic()
    gpushare.library()  # first: the catalogue needs it, and finds it by its name once it is loaded
    catalogue = Catalogue(arguments.catalogue)
    if not catalogue.has_cuda():
        print('skipped: the catalogue was built without CUDA')
        return NO_GPU
    began = time.monotonic()
    try:
        served = Served(arguments.worker, catalogue, arguments.profile)
        pairs = Pairs(served, catalogue, Settings(arguments.queries, arguments.rounds, arguments.seed,
                                                  arguments.target_over_solo, arguments.alone_age))
    except Exception as error:
        return _failed(rows[0], finished, error)
    print(f'{arguments.worker}: query {pairs.solo_ns / 1e3:.0f} us, one after another {pairs.service_ns / 1e3:.0f} us, '
          f'peak load {pairs.peak:.3f} at a target of {pairs.target_ns / 1e3:.0f} us; registered in '
          f'{served.registered_s:.1f} s, ready in {time.monotonic() - began:.1f} s {served.confined}', flush=True)
    code = 0
    head = {'gpu': torch.cuda.get_device_name(), 'torch': torch.__version__, 'library': gpushare.version()}
    for row in rows:
        if not arguments.smoke and time.monotonic() + pairs.seconds(row) > deadline:
            continue  # a later row may be shorter
        try:
            result = pairs.measure(row)
        except Exception as error:
            code = _failed(row, finished, error)
            if _lost():
                break
            continue
        finished.add(row, {**head, **result})
        show(row, result)
    # Handles and memory go with the process: a close would wait for what a failed row left behind.
    return code


def _deterministic() -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # no kernels that the network does not have
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


def _failed(row: Row, finished: Finished, error: Exception) -> int:
    traceback.print_exc()
    sentence = f'{type(error).__name__}: {error}'.splitlines()[0][:300]
    print(f"{row.service} beside {row.be or 'nothing'}, {row.load}: FAILED: {sentence}", flush=True)
    finished.add(row, {'failed': sentence})
    return 1


def _lost() -> bool:
    """Whether the GPU is unusable in this process, as after a wrong memory access."""
    try:
        torch.cuda.synchronize()
    except Exception as error:
        print(f'The GPU is lost to this process: {error}', file=sys.stderr, flush=True)
        return True
    return False


def show(row: Row, result: dict[str, Any]) -> None:
    """One line a row: each policy with p99 over alone and BE's share of its rate alone."""
    parts = [f"{name} {found['p99_over_alone']:.3f}"
             + (f", late {found['late']:.3f}" if row.load == PEAK else '')
             + (f", BE {found['be']:.3f}" if row.be != ALONE else '')
             for name, found in result['conditions'].items()]
    parts += [f'{name} absent: {why}' for name, why in result.get('absent', {}).items()]
    differ = result.get('be_check', {}).get('differ', 0)
    print(f"{row.service} beside {row.be or 'nothing'}, {row.load} (load {result['offered']:.3f}): {'; '.join(parts)}"
          + (f'; {differ} first losses DIFFER' if differ else ''), flush=True)
