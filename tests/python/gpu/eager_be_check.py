#!/usr/bin/env python3
"""Eager BE work on a GPU: unmodified loops in gpushare.torch.eager_be, alone and beside services.

  eager_be_check.py [--out FILE] [--seconds S] [--variants launches,operations]

Two loops of a GPT-2 of 12 layers of 768 (dropout, AdamW, bf16): batch 1 x 128 tokens, which its launches bound, and
batch 8 x 512, which its kernels bound. Alone: the rate over that of the plain loop, interleaved, the cost of the gate
for each operation, operations in a region, and whether the losses are the same bits. Beside a service of 2 ms and one
of 0.2 ms at a load of 0.5 with a bound of 1.05, open loop: p99 over the service alone, and the loop's rate over its
plain rate alone over the idle share, 1 - the time with an active query alone.

Each variant of the gate runs in processes of its own, so that one that fails leaves the rest; figures are printed as
they come. Needs torch; GPUSHARE_LIBRARY names the library, GPUSHARE_PYTHON_STEPS the extension. With the default
seconds it takes at most 100 s.
Exit code 0: every case ran and the losses are the same; 1: not so; 77: there is no GPU or no PyTorch.
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import threading
import time
import traceback

os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')
LOOPS = {'launch-bound': (1, 128), 'kernel-bound': (8, 512)}  # batch, tokens
SERVICES = {'2 ms': (2e6, 4096, 1024), '0.2 ms': (2e5, 1024, 64)}  # ns, width, rows
LOAD, BOUND = 0.5, 1.05
# Seconds after which the parts of a variant are given up: alone, beside.
LIMITS_S = {'launches': (31, 42), 'operations': (24, 0)}


def figure(key, value):
    print(f'FIGURE {json.dumps([key, value])}', flush=True)


# --- in a process of its own ---

def gpt2(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(768), nn.LayerNorm(768)
            self.attend, self.project = nn.Linear(768, 3 * 768), nn.Linear(768, 768)
            self.mlp = nn.Sequential(nn.Linear(768, 3072), nn.GELU(), nn.Linear(3072, 768), nn.Dropout(0.1))

        def forward(self, x):
            rows, tokens, _ = x.shape
            q, k, v = (part.view(rows, tokens, 12, 64).transpose(1, 2) for part in
                       self.attend(self.first(x)).chunk(3, -1))
            seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.project(seen.transpose(1, 2).reshape(rows, tokens, 768))
            return x + self.mlp(self.second(x))

    with torch.device('cuda'):  # the CPU takes seconds for the random weights
        return nn.Sequential(nn.Embedding(50304, 768), *(Block() for _ in range(12)), nn.LayerNorm(768),
                             nn.Linear(768, 50304, bias=False))


class Loop:
    """An ordinary training loop, with losses that stay on the GPU."""

    def __init__(self, torch, shape):
        torch.manual_seed(3)
        self.torch, self.net = torch, gpt2(torch)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-4)
        self.x, self.y = (torch.randint(50304, shape, device='cuda') for _ in range(2))
        self.losses = []

    def step(self):
        self.optimizer.zero_grad()
        with self.torch.autocast('cuda', dtype=self.torch.bfloat16):
            logits = self.net(self.x)
        loss = self.torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), self.y.flatten())
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.detach())

    def steps(self, count):
        """Those losses, from the same seed on."""
        self.torch.cuda.manual_seed(11)
        for _ in range(count):
            self.step()
        return self.torch.stack(self.losses[-count:]).tolist()

    def rate(self, seconds):
        """Steps a second, with a wait for each tenth, as a loop that prints has."""
        self.torch.cuda.synchronize()
        began, count = time.monotonic(), 0
        while time.monotonic() < began + seconds:
            for _ in range(10):
                self.step()
            self.losses[-1].item()
            count += 10
        return count / (time.monotonic() - began)


def rates_of(gt, runtime, loop, variant, seconds, name):
    """Rates of the plain loop and of the gated one, in turn; then what the gate counted."""
    plain, gated = [], []
    for number in range(2):
        plain.append(loop.rate(seconds))
        with gt.eager_be(runtime, name=f'{name} {number}', gates=variant) as gate:
            loop.rate(0.3)
            before = gate.operations, gate.regions, len(loop.losses), gate.held_s
            gated.append(loop.rate(seconds))
            operations, regions, steps, held_s = (
                now - then for now, then in
                zip((gate.operations, gate.regions, len(loop.losses), gate.held_s), before, strict=True))
        figure(f'{variant}, {name}, round {number}: plain and gated steps a second; rate',
               [round(plain[-1], 2), round(gated[-1], 2), round(gated[-1] / plain[-1], 3)])
    per_step = max(1, operations) / max(1, steps)
    slower_us = (1 / statistics.mean(gated) - 1 / statistics.mean(plain)) * 1e6
    figure(f'{variant}, {name}: rate over plain', round(statistics.mean(gated) / statistics.mean(plain), 3))
    figure(f'{variant}, {name}: operations a step, a region; measured alone; share of the time held; cost us each', [
        round(per_step, 1), round(operations / max(1, regions), 1), gate.measured,
        round(held_s / seconds, 3), round(slower_us / per_step, 3)])
    return statistics.mean(plain)


def cost_of(torch, gt, runtime, variant):
    """Host time of a launch with nothing else to do, plain and gated."""
    tensor = torch.zeros(64, device='cuda')

    def us_each():
        best = 1e9
        for _ in range(10):
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(500):
                tensor.add_(1)
            best = min(best, (time.perf_counter() - began) / 500 * 1e6)
        return best

    us_each()
    plain = us_each()
    with gt.eager_be(runtime, name='cost', gates=variant):
        us_each()
        gated = us_each()
    figure(f'{variant}: us of a small operation, plain, gated, difference',
           [round(plain, 2), round(gated, 2), round(gated - plain, 2)])


def attempt(what, run):
    try:
        return run()
    except Exception:
        traceback.print_exc()
        figure(f'FAILED: {what}', traceback.format_exc(limit=1).splitlines()[-1])
        return None


def same_losses(torch, gt, runtime, variant, shape, name):
    """Compares with a second plain run: PyTorch itself does not always repeat its bits."""
    runs = [Loop(torch, shape).steps(5) for _ in range(2)]
    with gt.eager_be(runtime, name=f'{name} losses', gates=variant):
        gated = Loop(torch, shape).steps(5)
    repeats = runs[0] == runs[1]
    figure(f'{variant}, {name}: losses are the same; two plain runs have the same', [gated == runs[0], repeats])


def alone(torch, gt, gpushare, variant, seconds):
    with gpushare.Runtime(device='cuda') as runtime:
        attempt('cost', lambda: cost_of(torch, gt, runtime, variant))
        for name, shape in LOOPS.items():
            attempt(f'{variant}, {name}: rates',
                    lambda name=name, shape=shape: rates_of(gt, runtime, Loop(torch, shape), variant, seconds, name))
        for name, shape in LOOPS.items():
            attempt(f'{variant}, {name}: losses',
                    lambda name=name, shape=shape: same_losses(torch, gt, runtime, variant, shape, name))


def service_net(torch, wanted_ns, width, rows):
    """Layers that take about so long as a graph, and their input."""
    x = torch.randn(rows, width, device='cuda').half()

    def net(depth):
        return torch.nn.Sequential(*(torch.nn.Linear(width, width, bias=False, device='cuda', dtype=torch.half)
                                     for _ in range(depth)))

    with torch.no_grad():
        probe = net(16)
        probe(x)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            probe(x)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        graph.replay()
        begin.record()
        for _ in range(20):
            graph.replay()
        end.record()
        end.synchronize()
    return net(max(1, round(16 * 20 * wanted_ns / (begin.elapsed_time(end) * 1e6)))), x


def open_loop(runtime, service, mean_ns, seconds):
    """Latencies from the intended arrivals, and the share of the time with an active query."""
    draw = random.Random(5)
    found, busy_ns, free_ns = [], 0, 0
    began_ns = arrival_ns = runtime.now_ns()
    while arrival_ns < began_ns + seconds * 1e9:
        arrival_ns += int(draw.expovariate(1 / mean_ns))
        while (left_ns := arrival_ns - runtime.now_ns()) > 0:
            if left_ns > 200_000:
                time.sleep((left_ns - 150_000) / 1e9)
        end_ns = service.submit(arrival_ns=arrival_ns).wait().complete_ns
        found.append(end_ns - arrival_ns)
        busy_ns += end_ns - max(arrival_ns, free_ns)
        free_ns = end_ns
    return sorted(found), busy_ns / (free_ns - began_ns)


def p99(found):
    return found[int(0.99 * len(found))]


def beside_loop(gt, runtime, service, case, loop, seconds):
    """The service beside the loop: latencies, and steps a second."""
    variant, name, mean_ns = case
    ended, gates = threading.Event(), []

    def work():
        with gt.eager_be(runtime, name=f'{name} loop', gates=variant) as gate:
            gates.append(gate)
            while not ended.is_set():
                loop.step()
                if len(loop.losses) % 10 == 0:
                    loop.losses[-1].item()

    thread = threading.Thread(target=work, daemon=True)  # one that is stuck does not keep the process
    thread.start()
    open_loop(runtime, service, mean_ns, 1)
    before, began = len(loop.losses), time.monotonic()
    found, _ = open_loop(runtime, service, mean_ns, seconds)
    rate = (len(loop.losses) - before) / (time.monotonic() - began)
    ended.set()
    thread.join(10)
    gate = gates[0]
    figure(f'{name}: operations, regions, refusals, on credit',
           [gate.operations, gate.regions, gate.refusals, gate.on_credit])
    return found, rate


def beside_service(torch, gt, gpushare, variant, service_name, loops, seconds):
    wanted_ns, width, rows = SERVICES[service_name]
    with gpushare.Runtime(device='cuda') as runtime:
        net, x = service_net(torch, wanted_ns, width, rows)
        with torch.no_grad():
            service = gt.Service(runtime, net, x, name='service', in_place=True, p99_bound=BOUND, places='whole')
        with service:
            solo = sorted(open_loop(runtime, service, 10 * wanted_ns, 0.7)[0])
            mean_ns = solo[len(solo) // 2] / LOAD
            quiet, busy = open_loop(runtime, service, mean_ns, seconds)
            service.app.update(p99_alone_ns=p99(quiet))
            figure(f'beside {service_name}: alone p50 us, p99 us, idle share',
                   [round(quiet[len(quiet) // 2] / 1e3), round(p99(quiet) / 1e3), round(1 - busy, 3)])
            for name, (loop, plain) in loops.items():
                case = (variant, f'beside {service_name}, {name}', mean_ns)
                result = attempt(case[1], lambda case=case, loop=loop: beside_loop(
                    gt, runtime, service, case, loop, seconds))
                if result:
                    found, rate = result
                    figure(f'{case[1]}: p99 over alone, p50; BE over plain; BE over idle share', [
                        round(p99(found) / p99(quiet), 3),
                        round(found[len(found) // 2] / quiet[len(quiet) // 2], 3), round(rate / plain, 3),
                        round(rate / plain / (1 - busy), 3)])


def beside(torch, gt, gpushare, variant, seconds):
    loops = {}
    for name, shape in LOOPS.items():
        loop = Loop(torch, shape)
        loop.rate(0.2)
        loops[name] = loop, loop.rate(seconds / 2)
    for service_name in SERVICES:
        attempt(f'beside {service_name}', lambda service_name=service_name: beside_service(
            torch, gt, gpushare, variant, service_name, loops, 2 * seconds))


def child(arguments):
    import torch

    import gpushare
    import gpushare.torch as gt
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    sys.setswitchinterval(1e-4)  # the service's thread and the loop's share the interpreter
    part = alone if arguments.part == 'alone' else beside
    part(torch, gt, gpushare, arguments.variant, arguments.seconds)
    figure('torch, library', [torch.__version__, gpushare.version()])


# --- the parent ---

def run_part(arguments, variant, part, limit_s, figures):
    """A part in its own process. What it printed before its limit counts."""
    command = [sys.executable, __file__, '--variant', variant, '--part', part, '--seconds', str(arguments.seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    timer = threading.Timer(limit_s, process.kill)
    timer.start()
    for line in process.stdout:
        if not line.startswith('FIGURE '):
            print(line, end='', flush=True)
            continue
        key, value = json.loads(line.removeprefix('FIGURE '))
        figures[key] = value
        print(f'  {key}: {value}', flush=True)
    timer.cancel()
    if process.wait() != 0:
        figures[f'FAILED: {variant}, {part}'] = f'exit code {process.returncode}'
        print(f'  {variant}, {part}: exit code {process.returncode}, limit {limit_s} s', flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--out', default='')
    parser.add_argument('--seconds', type=float, default=1.2, help='of each measurement alone; beside, twice that')
    parser.add_argument('--variants', default='launches,operations')
    parser.add_argument('--variant', help=argparse.SUPPRESS)
    parser.add_argument('--part', help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        return child(arguments)
    import harness  # exits with 77 where nothing can be checked
    figures = {'gpu': harness.torch.cuda.get_device_name()}
    for variant in arguments.variants.split(','):
        for part, limit_s in zip(('alone', 'beside'), LIMITS_S[variant], strict=True):
            if limit_s:
                run_part(arguments, variant, part, limit_s, figures)
    if arguments.out:
        pathlib.Path(arguments.out).write_text(json.dumps(figures, indent=1) + '\n')
    differ = [key for key, value in figures.items()
              if 'losses are the same' in key and value[1] and not value[0]]
    failed = [key for key in figures if key.startswith('FAILED')] + differ
    print(f'FAILED: {failed}' if failed else 'passed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
