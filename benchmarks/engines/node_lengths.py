#!/usr/bin/env python3
"""How long the kernels of the jobs are: the share of a job's time in kernels that a short budget has room for.

  node_lengths.py [--jobs lora,gpt2c,vit] [--runs 5] [--out FILE]

Runs each job by itself under PyTorch's profiler and prints, for some lengths, the share of its kernels' time in kernels
no longer than that, and the longest kernel. A segment holds at least one kernel, so a service whose slack is shorter
than a kernel cannot have that kernel beside it. Exit code 0; 77: there is no GPU or no PyTorch.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Callable
from typing import Any

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / 'matrix'))

try:
    import torch
except ImportError:
    print('skipped: PyTorch is not installed')
    sys.exit(77)
if not torch.cuda.is_available():
    print('skipped: PyTorch sees no GPU')
    sys.exit(77)

import jobs

LENGTHS_US = (5, 10, 20, 50, 100, 200, 400)
WARM_UP = 3


def kernels_us(job: Callable[[], Any], runs: int) -> list[float]:
    for _ in range(WARM_UP):
        job()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        for _ in range(runs):
            job()
        torch.cuda.synchronize()
    return [event.device_time for event in profile.events()
            if event.device_type == torch.autograd.DeviceType.CUDA and event.device_time > 0]


def row_of(name: str, lengths: list[float], runs: int) -> dict[str, Any]:
    total = sum(lengths)
    shares = {f'to {limit} us': round(sum(us for us in lengths if us <= limit) / total, 3) for limit in LENGTHS_US}
    return {'job': name, 'kernels': len(lengths) // runs, 'ms': round(total / runs / 1e3, 2), **shares,
            'longest us': round(max(lengths), 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--jobs', default=','.join(jobs.CAPTURED))
    parser.add_argument('--runs', type=int, default=5)
    parser.add_argument('--out', type=pathlib.Path)
    given = parser.parse_args()
    rows = [row_of(name, kernels_us(jobs.made(name), given.runs), given.runs) for name in given.jobs.split(',')]
    for row in rows:
        print(json.dumps(row))
    if given.out:
        given.out.write_text(json.dumps({'gpu': torch.cuda.get_device_name(), 'runs': given.runs, 'rows': rows},
                                        indent=1) + '\n', encoding='utf-8')
    return 0


if __name__ == '__main__':
    sys.exit(main())
