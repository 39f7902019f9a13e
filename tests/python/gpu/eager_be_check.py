#!/usr/bin/env python3
"""Eager BE work on a GPU: an unmodified loop in gpushare.torch.eager_be, alone and beside a service.

  eager_be_check.py [--out FILE] [--seconds S]

Two loops: one whose kernels are long, and one that is bound by its launches. Losses are compared bit by bit with
those of the same loop outside. The figures are its rate over its rate outside, and the p99 of the service beside it
over the service alone; the goal is 0.85 of the rate alone. Needs torch; GPUSHARE_LIBRARY names the library. Takes
about 40 s.
Exit code 0: the losses are the same; 1: not so; 77: there is no GPU or no PyTorch.
"""

import argparse
import json
import pathlib
import sys
import threading
import time

from torch_check import PAUSE_S, model, quantile, torch  # exits with 77 where nothing can be checked

import gpushare
import gpushare.torch as gt

LOOPS = {'long kernels': (2048, 4096, 8), 'short kernels': (256, 64, 16)}  # width, rows, layers


class Loop:
    """An ordinary training loop: dropout, Adam, a loss that is kept on the GPU."""

    def __init__(self, width, rows, layers):
        torch.manual_seed(3)
        blocks = [torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.Dropout(0.1))
                  for _ in range(layers)]
        self.net = torch.nn.Sequential(*blocks, torch.nn.Linear(width, 16)).cuda()
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.x, self.y = torch.randn(rows, width, device='cuda'), torch.randn(rows, 16, device='cuda')
        self.losses = []
        torch.cuda.manual_seed(11)

    def step(self):
        self.optimizer.zero_grad()
        with torch.autocast('cuda', dtype=torch.bfloat16):
            loss = torch.nn.functional.mse_loss(self.net(self.x).float(), self.y)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.detach())

    def run(self, seconds):
        """Steps for some seconds, with a wait for each tenth, as a loop that prints has. Returns steps a second."""
        began, first = time.monotonic(), len(self.losses)
        while time.monotonic() < began + seconds:
            for _ in range(10):
                self.step()
            self.losses[-1].item()
        return (len(self.losses) - first) / (time.monotonic() - began)


def latencies(service, query, seconds):
    found, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        sent = time.monotonic_ns()
        service(query)
        found.append(time.monotonic_ns() - sent)
        time.sleep(PAUSE_S)
    return found


def beside(runtime, loop, service, query, seconds):
    """The latencies of the service, and the rate of the loop beside it; the service is closed then."""
    ended = threading.Event()

    def work():
        with gt.eager_be(runtime, name='beside'):
            while not ended.is_set():
                loop.step()

    thread = threading.Thread(target=work)
    thread.start()
    latencies(service, query, 0.3)
    before = len(loop.losses)
    found = latencies(service, query, seconds)
    steps = len(loop.losses) - before
    ended.set()
    service.close()  # a loop that got no turn beside it goes on
    thread.join()
    return found, steps / seconds


def check(name, shape, seconds, figures):
    outside, loop, net = Loop(*shape), Loop(*shape), model()
    outside.run(0.3)
    alone = outside.run(seconds)
    query = torch.randn(8, 1024, device='cuda').half()
    torch.cuda.manual_seed(11)
    with gpushare.Runtime(device='cuda') as runtime:
        with gt.eager_be(runtime, name='alone') as gate:
            loop.run(0.3)
            gated = loop.run(seconds)
        figures[f'{name}: steps a second, rate in eager_be over it'] = [round(alone, 1), round(gated / alone, 3)]
        figures[f'{name}: operations a step, a region; refusals'] = [
            round(gate.operations / len(loop.losses), 1), round(gate.operations / gate.regions, 1), gate.refusals]
        steps = min(len(loop.losses), len(outside.losses))
        same = torch.equal(torch.stack(loop.losses[:steps]), torch.stack(outside.losses[:steps]))
        figures[f'{name}: losses are the same'] = same
        with torch.no_grad():
            service = gt.Service(runtime, net, query, name='service')
        quiet = latencies(service, query, seconds)
        found, rate = beside(runtime, loop, service, query, seconds)
        over = [quantile(found, share) / quantile(quiet, share) for share in (0.99, 0.5)]
        figures[f'{name}: p99 beside over alone, p50; rate over alone'] = [
            round(value, 3) for value in (*over, rate / alone)]
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', default='')
    parser.add_argument('--seconds', type=float, default=3, help='of each measurement')
    arguments = parser.parse_args()
    figures, passed = {}, True
    for name, shape in LOOPS.items():
        passed = check(name, shape, arguments.seconds, figures) and passed
    figures.update(gpu=torch.cuda.get_device_name(), torch=torch.__version__, library=gpushare.version())
    for key, value in figures.items():
        print(f'  {key}: {value}')
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps(figures, indent=1) + '\n')
    print('passed' if passed else 'FAILED')
    return 0 if passed else 1


if __name__ == '__main__':
    sys.exit(main())
