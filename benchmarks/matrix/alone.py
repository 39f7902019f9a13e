#!/usr/bin/env python3
"""How fast a BE step runs through the library while no LC app needs short segments, over its own graph's replay.

Two steps: 'adapter', whose nodes are short (frozen layers with low-rank adapters and Adam), and 'batch', whose nodes
are long (a forward of a large batch). Each runs in turns with torch's replay of the same graph: without an LC app,
beside an LC app with a bound of 1.05 that sends nothing, and once that app is closed. Beside the LC app it runs in
segments of segment_ns. The state after as many steps as torch ran must have torch's bits.

It needs a GPU, PyTorch 2.8 or later, and the package (PYTHONPATH=bindings/python, GPUSHARE_LIBRARY). It takes about
60 s.

  alone.py [--out FILE] [--seconds S] [--segment-us N,N]

Exit code 0: measured, and each step keeps --least of its graph's rate while no LC app is there; 1: not, or a result
is wrong; 2: bad use.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

import gpushare

ROUNDS = 3  # of each way, in turns


class Adapter:
    """A training step of low-rank adapters on frozen layers: some 2,000 short kernels."""

    name = 'adapter'

    def __init__(self) -> None:
        torch.manual_seed(1)
        layers, width, rank = 48, 1024, 8
        self.input = torch.randn(512, width, device='cuda', dtype=torch.bfloat16)
        self.frozen = [torch.randn(width, width, device='cuda', dtype=torch.bfloat16) / width ** 0.5
                       for _ in range(layers)]
        self.adapters = [(torch.randn(width, rank, device='cuda') / width ** 0.5).requires_grad_()
                         for _ in range(layers)]
        self.adapters += [torch.zeros(rank, width, device='cuda').requires_grad_() for _ in range(layers)]
        self.optimizer = torch.optim.Adam(self.adapters, lr=1e-4, capturable=True, foreach=False)

    def step(self) -> None:
        self.optimizer.zero_grad()
        hidden = self.input
        count = len(self.frozen)
        for layer, weight in enumerate(self.frozen):
            down, up = self.adapters[layer].bfloat16(), self.adapters[count + layer].bfloat16()
            hidden = hidden + torch.nn.functional.layer_norm(hidden @ weight + (hidden @ down) @ up, (hidden.shape[1],))
        hidden.float().square().mean().backward()
        self.optimizer.step()

    def state(self) -> list[torch.Tensor]:
        moments = [value for state in self.optimizer.state.values() for value in state.values()]
        return [*(adapter.detach() for adapter in self.adapters), *moments]


class Batch:
    """The forward of a large batch: some hundred long kernels. Each run adds its result."""

    name = 'batch'

    def __init__(self) -> None:
        torch.manual_seed(2)
        width = 4096
        self.input = torch.randn(4096, width, device='cuda', dtype=torch.bfloat16)
        self.weights = [torch.randn(width, width, device='cuda', dtype=torch.bfloat16) / width ** 0.5
                        for _ in range(40)]
        self.sum = torch.zeros(4096, width, device='cuda')

    def step(self) -> None:
        hidden = self.input
        for weight in self.weights:
            hidden = torch.nn.functional.gelu(hidden @ weight)
        self.sum += hidden

    def state(self) -> list[torch.Tensor]:
        return [self.sum]


class Captured:
    """A step as a graph, and its state as it was at the capture."""

    def __init__(self, work: Adapter | Batch) -> None:
        self.work = work
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                work.step()
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.graph(self.graph, stream=stream):
            work.step()
        self.raw = int(self.graph.raw_cuda_graph())
        self.graph.instantiate()
        self.graph.replay()
        torch.cuda.synchronize()
        self.begin = [value.clone() for value in work.state()]

    def rewind(self) -> None:
        with torch.no_grad():
            for value, begin in zip(self.work.state(), self.begin, strict=True):
                value.copy_(begin)
        torch.cuda.synchronize()

    def bits(self) -> list[torch.Tensor]:
        torch.cuda.synchronize()
        return [value.clone() for value in self.work.state()]


def timed(run: Callable[[int], None], steps: int) -> float:
    """Seconds for each step."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    run(steps)
    return (time.perf_counter() - begin) / steps


def replays(captured: Captured, steps: int) -> None:
    for _ in range(steps):
        captured.graph.replay()
    torch.cuda.synchronize()


def submits(app: gpushare.App, kernel: gpushare.Kernel, steps: int) -> None:
    tickets = [app.submit(kernel) for _ in range(steps)]
    tickets[-1].wait()


def same(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def measure(captured: Captured, segment_us: int, seconds: float) -> dict[str, Any]:
    steps = max(3, int(seconds / 3 / ROUNDS / timed(lambda n: replays(captured, n), 3)))
    captured.rewind()
    replays(captured, steps)
    expected = captured.bits()
    captured.rewind()
    replays(captured, steps)
    repeats = same(captured.bits(), expected)
    row: dict[str, Any] = {'step': captured.work.name, 'segment_us': segment_us, 'steps': steps,
                           'torch_repeats_its_bits': repeats, 'right': True}
    with gpushare.Runtime(device='cuda') as runtime:
        app = runtime.create_app('train', gpushare.BEST_EFFORT)
        begin = time.perf_counter()
        kernel = runtime.register_kernel(captured.work.name, kind=gpushare.TaskKind.GRAPH, graph=captured.raw,
                                         segment_ns=segment_us * 1000, measure_nodes=True,
                                         confinable=gpushare.Choice.NO)
        row['registered_s'] = round(time.perf_counter() - begin, 3)

        def rate(when: str) -> None:
            bare, ours = [], []
            for _ in range(ROUNDS):
                captured.rewind()
                bare.append(timed(lambda n: replays(captured, n), steps))
                captured.rewind()
                ours.append(timed(lambda n: submits(app, kernel, n), steps))
                row['right'] = row['right'] and (not repeats or same(captured.bits(), expected))
            row[when] = round(statistics.median(bare) / statistics.median(ours), 4)
            row['step_ms'] = round(statistics.median(bare) * 1e3, 3)

        rate('alone')
        service = runtime.create_app('service', gpushare.LATENCY_CRITICAL, p99_bound=1.05)
        rate('beside_an_lc_app')
        service.close()
        rate('alone_again')
        app.close()
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--out', type=pathlib.Path, help='a file for the JSON; it is printed in any case')
    parser.add_argument('--seconds', type=float, default=3, help='that torch takes in each phase')
    parser.add_argument('--segment-us', default='100,20', help='lengths of segments beside an LC app')
    parser.add_argument('--least', type=float, default=0.99, help='of the graph\'s rate')
    given = parser.parse_args()
    result: dict[str, Any] = {'experiment': 'alone', 'gpu': torch.cuda.get_device_name(), 'torch': torch.__version__,
                              'command': 'benchmarks/matrix/alone.py', 'rows': []}
    for work in (Adapter, Batch):
        captured = Captured(work())
        for segment_us in (int(length) for length in given.segment_us.split(',')):
            row = measure(captured, segment_us, given.seconds)
            result['rows'].append(row)
            print(json.dumps(row), file=sys.stderr)
    text = json.dumps(result, indent=1)
    print(text)
    if given.out is not None:
        given.out.write_text(text + '\n', encoding='utf-8')
    kept = all(row['right'] and min(row['alone'], row['alone_again']) >= given.least for row in result['rows'])
    return 0 if kept else 1


if __name__ == '__main__':
    sys.exit(main())
