#!/usr/bin/env python3
"""How much longer a service's query takes once other work has filled the L2 cache, with warm memory and without.

  cold.py [--services a,b] [--mb 64] [--queries 60] [--out FILE]

No BE work runs. Before each query the GPU reads so many MB of other memory, or nothing; both kinds come in random
order. Times are from submit to completion, medians. A service is registered twice in one process, with its weights
as warm memory and without, so their instances differ: compare what is added, not the times themselves.

Prints one line a service; writes JSON. Exit code 0: every answer is right; 77: there is no GPU or no PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import random
import statistics
import sys
import time
from typing import Any

# cuBLAS gives the same bits in every run only with a fixed workspace; read when its handle is made.
os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')

try:
    import torch
except ImportError:
    print('skipped: PyTorch is not installed')
    sys.exit(77)
if not torch.cuda.is_available():
    print('skipped: PyTorch sees no GPU')
    sys.exit(77)

from networks import SERVICES

import gpushare
import gpushare.torch
from gpushare.torch._warm_memory import warm_memory_of, weight_tensors

PAUSE_S = 0.002  # behind a query and behind what was read
ERROR_MAX = 0.02  # of the largest value


def query_us(service: Any, expected: Any) -> float:
    """One query on an idle GPU."""
    ticket = service.app.submit(service._kernel)
    ticket.wait()
    record = ticket.record()
    error = (service._outputs.float() - expected.float()).abs().max().item()
    if not error <= ERROR_MAX * expected.float().abs().max().item():
        raise RuntimeError(f'{service.name}: the answer is {error} off.')
    return (record.complete_ns - record.submit_ns) / 1e3


def measured(service: Any, expected: Any, other: Any, queries: int) -> dict[str, float]:
    """Medians in us: behind nothing, behind the reading of `other`."""
    times: dict[bool, list[float]] = {False: [], True: []}
    kinds = [False, True] * queries
    random.Random(1).shuffle(kinds)
    for _ in range(20):
        query_us(service, expected)
    for cold in kinds:
        query_us(service, expected)  # so that its weights are in the cache
        if cold:
            other.sum()
        torch.cuda.synchronize()
        time.sleep(PAUSE_S)
        times[cold].append(query_us(service, expected))
    quiet, cold_us = (statistics.median(times[kind]) for kind in (False, True))
    return {'quiet_us': round(quiet, 1), 'cold_us': round(cold_us, 1), 'added_us': round(cold_us - quiet, 1)}


def row_of(name: str, other: Any, queries: int) -> dict[str, Any]:
    torch.manual_seed(7)
    net, inputs = SERVICES[name]()
    with torch.no_grad():
        expected = net(inputs).clone()
    weights = weight_tensors(net)
    row: dict[str, Any] = {
        'service': name, 'weights_mb': round(sum(t.numel() * t.element_size() for t in weights) / 2**20, 1),
        'warmed_mb': round(sum(size for _, size in warm_memory_of(weights)) / 2**20, 1)}
    with gpushare.Runtime(device='cuda') as runtime:
        for key, given in (('without', ()), ('with', net)):
            with gpushare.torch.Service(runtime, net, inputs, name=f'{name}-{key}', weights=given) as service:
                row[key] = measured(service, expected, other, queries)
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--services', default=','.join(SERVICES))
    parser.add_argument('--mb', type=int, default=64, help='of other memory that is read before a query')
    parser.add_argument('--queries', type=int, default=60, help='of each kind')
    parser.add_argument('--out', type=pathlib.Path)
    options = parser.parse_args()
    other = torch.zeros(options.mb << 18, device='cuda')
    properties = torch.cuda.get_device_properties(0)
    result: dict[str, Any] = {
        'experiment': 'cold', 'gpu': properties.name, 'l2_mb': properties.L2_cache_size / 2**20, 'read_mb': options.mb,
        'queries': options.queries, 'rows': []}
    for name in options.services.split(','):
        row = row_of(name, other, options.queries)
        result['rows'].append(row)
        print(f"{name:16} {row['weights_mb']:7.1f} MB of weights, {row['warmed_mb']:5.1f} warmed; added without: "
              f"{row['without']['added_us']:7.1f} us, with: {row['with']['added_us']:7.1f}", flush=True)
        if options.out:
            options.out.write_text(json.dumps(result, indent=1) + '\n')
    return 0


if __name__ == '__main__':
    sys.exit(main())
