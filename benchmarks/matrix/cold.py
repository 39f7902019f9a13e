"""How much longer a service's query takes once other work has filled the L2 cache, with warm memory and without.

`unprepared.py --cold MB` runs it, without BE work. Before each query the GPU reads so many MB of other memory, or
nothing; both kinds come in random order. Times are from submit to completion, medians. A service is registered twice
in one process, with its weights as warm memory and without, so their instances differ: compare what is added, not the
times themselves.
"""

from __future__ import annotations

import json
import pathlib
import random
import statistics
import time
from typing import Any

import torch
from served import Answered

import gpushare
import gpushare.torch
from gpushare.torch._warm_memory import warm_memory_of, weight_tensors

PAUSE_S = 0.002  # behind a query and behind what was read
QUERIES = 60  # of each kind


def query_us(service: Any, answered: Answered) -> float:
    """One query on an idle GPU."""
    ticket = service.submit()
    ticket.wait()
    record = ticket.record()
    answered.check('cold', service.outputs)
    return (record.complete_ns - record.submit_ns) / 1e3


def measured(service: Any, answered: Answered, other: Any) -> dict[str, float]:
    """Medians in us: behind nothing, behind the reading of `other`."""
    times: dict[bool, list[float]] = {False: [], True: []}
    kinds = [False, True] * QUERIES
    random.Random(1).shuffle(kinds)
    for _ in range(20):
        query_us(service, answered)
    for cold in kinds:
        query_us(service, answered)  # so that its weights are in the cache
        if cold:
            other.sum()
        torch.cuda.synchronize()
        time.sleep(PAUSE_S)
        times[cold].append(query_us(service, answered))
    quiet, cold_us = (statistics.median(times[kind]) for kind in (False, True))
    return {'quiet_us': round(quiet, 1), 'cold_us': round(cold_us, 1), 'added_us': round(cold_us - quiet, 1)}


def row_of(name: str, other: Any) -> dict[str, Any]:
    answered = Answered(name)
    weights = weight_tensors(answered.net)
    row: dict[str, Any] = {
        'service': name, 'weights_mb': round(sum(t.numel() * t.element_size() for t in weights) / 2**20, 1),
        'warmed_mb': round(sum(size for _, size in warm_memory_of(weights)) / 2**20, 1)}
    with gpushare.Runtime(device='cuda') as runtime:
        for key, given in (('without', ()), ('with', answered.net)):
            with gpushare.torch.Service(runtime, answered.net, answered.inputs, name=f'{name}-{key}',
                                        weights=given) as service:
                row[key] = measured(service, answered, other)
    return row


def run(services: list[str], read_mb: int, out: str) -> int:
    """Prints one line a service; writes JSON."""
    other = torch.zeros(read_mb << 18, device='cuda')
    properties = torch.cuda.get_device_properties(0)
    result: dict[str, Any] = {
        'experiment': 'cold', 'gpu': properties.name, 'l2_mb': properties.L2_cache_size / 2**20, 'read_mb': read_mb,
        'queries': QUERIES, 'rows': []}
    for name in services:
        row = row_of(name, other)
        result['rows'].append(row)
        print(f"{name:16} {row['weights_mb']:7.1f} MB of weights, {row['warmed_mb']:5.1f} warmed; added without: "
              f"{row['without']['added_us']:7.1f} us, with: {row['with']['added_us']:7.1f}", flush=True)
        if out:
            pathlib.Path(out).write_text(json.dumps(result, indent=1) + '\n')
    return 0
