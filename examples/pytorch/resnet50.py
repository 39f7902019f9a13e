#!/usr/bin/env python3
"""ResNet-50 in PyTorch as latency-critical work beside a best-effort kernel, on one GPU.

The forward pass (batch 1, half precision, channels last, random weights) is one CUDA graph,
captured once for each set of SMs that the library offers. It is calibrated together with the
catalogue's sincos kernel (block tasks of 27 us), then rows are measured in interleaved rounds on
the same Poisson arrivals: bare launches without the library, the library without BE, with BE under
each bound on p99, and BE alone. After each row the model's output and the kernel's results are
checked.

Exit code 0: every answer is right; 1: one is wrong, or a step fails; 2: bad use.
"""

import argparse
import ctypes
import json
import math
import pathlib
import random
import sys
import traceback

from catalogue import Catalogue, run_load

import gpushare
from gpushare import abi

MODEL, KERNEL = 'resnet50_b1', 'sincos_27us'
BLOCK_TASK_US, BLOCK_TASKS = 27, 105600
# The project's goal: the least share of BE's solo rate for each bound on p99.
GOALS = {1.20: 0.66, 1.05: 0.48}
CAPTURES = ('callback', 'keep_graph', 'whole')
VERIFY_SECONDS = 0.2


def quantile(values, share):
    """The quantile by nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def poisson(seed, count, gap_ns):
    draw = random.Random(seed)
    time, arrivals = 0.0, []
    for _ in range(count):
        time += draw.expovariate(1.0) * gap_ns
        arrivals.append(int(time))
    return arrivals


# --- the model -----------------------------------------------------------------------------------


class TorchModel:
    """ResNet-50, its bare graph and its reference output."""

    virtual_time = False

    def __init__(self, catalogue, dtype, seed):
        import torch
        import torchvision

        from gpushare.torch import PlaceCaptures
        self.place_captures = PlaceCaptures
        self.catalogue, self.torch = catalogue, torch
        self.dtype = {'fp16': torch.float16, 'bf16': torch.bfloat16}[dtype]
        torch.manual_seed(seed)
        torch.cuda.init()
        # Every capture uses the same algorithm, and none measures algorithms.
        torch.backends.cudnn.benchmark = False
        torch.backends.cudnn.deterministic = True
        self.net = torchvision.models.resnet50(weights=None).cuda()
        self._normalise()
        self.net.eval().requires_grad_(False)
        self.net.to(dtype=self.dtype, memory_format=torch.channels_last)
        image = torch.randn(1, 3, 224, 224, device='cuda')
        self.input = image.to(dtype=self.dtype, memory_format=torch.channels_last)
        self.output = torch.empty(1, 1000, device='cuda', dtype=self.dtype)
        eager = self._warm_up()
        self.graph = torch.cuda.CUDAGraph(keep_graph=True)
        with torch.cuda.graph(self.graph, capture_error_mode='relaxed'):
            self.forward()
        self.raw_graph = int(self.graph.raw_cuda_graph())
        torch.cuda.synchronize()
        self.bare = catalogue.make('graph_new', self.raw_graph)
        self._take_reference(eager)

    def _normalise(self):
        """Random weights with the statistics of a trained net: activations fit in fp16."""
        torch = self.torch
        for module in self.net.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = None  # the plain mean over batches
        self.net.train()
        with torch.no_grad():
            self.net(torch.randn(16, 3, 224, 224, device='cuda'))

    def _warm_up(self):
        """Makes handles, workspaces and plans of cuBLAS and cuDNN before any capture."""
        torch = self.torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.forward()
        torch.cuda.synchronize()
        return self.output.clone()

    def _take_reference(self, eager):
        torch = self.torch
        self.poison()
        self.raw_run([0])
        torch.cuda.synchronize()
        self.reference = self.output.clone()
        if self.verdict_of(eager) == 'wrong' or float(self.reference.float().std()) < 1e-3:
            raise RuntimeError('The captured forward pass and the eager one differ.')

    def forward(self):
        torch = self.torch
        with torch.no_grad():
            torch.mul(self.net(self.input), 1.0, out=self.output)

    def kernel_spec(self, capture):
        """What to register or calibrate, and the captures, whose memory must outlive the runtime."""
        if capture == 'callback':
            def forward():
                with self.torch.no_grad():
                    return self.net(self.input)

            captures = self.place_captures(forward, self.output)
            return gpushare.KernelSpec(MODEL, capture=captures), captures
        confinable = gpushare.Choice.NO if capture == 'whole' else gpushare.Choice.DEFAULT
        return gpushare.KernelSpec(MODEL, kind=gpushare.TaskKind.GRAPH, graph=self.raw_graph,
                                   confinable=confinable), None

    def raw_run(self, arrivals_ns):
        """Launches bare at the arrivals. Returns the latencies and the span."""
        count = len(arrivals_ns)
        arrivals, latencies = (ctypes.c_int64 * count)(*arrivals_ns), (ctypes.c_int64 * count)()
        span = ctypes.c_int64()
        self.catalogue.call('graph_run', self.bare, arrivals, latencies, count, ctypes.byref(span))
        return list(latencies), span.value

    def poison(self):
        self.output.fill_(float('nan'))
        self.torch.cuda.synchronize()

    def verdict(self):
        self.torch.cuda.synchronize()
        return self.verdict_of(self.output)

    def verdict_of(self, output):
        """'bitwise' or 'tolerance' (another algorithm on another number of SMs), else 'wrong'."""
        torch = self.torch
        if torch.equal(output.view(torch.int16), self.reference.view(torch.int16)):
            return 'bitwise'
        if not bool(torch.isfinite(output).all()) or not bool(torch.isfinite(self.reference).all()):
            return 'wrong'
        error = (output.float() - self.reference.float()).abs().max()
        return 'tolerance' if float(error / self.reference.float().abs().max()) < 0.02 else 'wrong'

    def facts(self):
        torch = self.torch
        return {'gpu': torch.cuda.get_device_name(), 'torch': torch.__version__,
                'cudnn': torch.backends.cudnn.version(), 'dtype': str(self.dtype)}


# --- the best-effort kernel ----------------------------------------------------------------------


class SincosWork:
    """The catalogue's sincos kernel with its buffers."""

    def __init__(self, catalogue, sm_count):
        self.catalogue = catalogue
        self.kernel = gpushare.KernelSpec(KERNEL)
        self.task = abi.init(abi.gpushare_task_options)
        self.workload = catalogue.make('workload_new', b'sincos', float(BLOCK_TASK_US), BLOCK_TASKS, sm_count)
        catalogue.call('workload_fill', self.workload, ctypes.byref(self.kernel.struct), ctypes.byref(self.task))

    def clear(self):
        self.catalogue.call('workload_clear', self.workload)

    def verdict(self):
        checked, wrong = ctypes.c_int64(), ctypes.c_int64()
        self.catalogue.call('workload_verify', self.workload, VERIFY_SECONDS, ctypes.byref(checked),
                            ctypes.byref(wrong))
        return 'right' if wrong.value == 0 and checked.value > 0 else 'wrong'


# --- choosing a capture, calibrating -------------------------------------------------------------


def open_runtime(model, device, profile=None):
    return gpushare.Runtime(
        device=device, policy='adaptive', profile_path=profile or None,
        drive=gpushare.Drive.POLL if model.virtual_time else gpushare.Drive.THREAD)


def lc_task(kernel):
    """The task as a C struct; the caller keeps the kernel."""
    return abi.init(abi.gpushare_task_options, kernel=kernel.handle)


def try_capture(catalogue, model, device, capture):
    """Runs a few queries of a graph captured in this way. Raises if it does not work."""
    spec, captures = model.kernel_spec(capture)
    with open_runtime(model, device) as runtime:
        runtime.keep(captures)
        kernel = runtime.register(spec)
        with runtime.create_app('probe', gpushare.LATENCY_CRITICAL) as app:
            model.poison()
            run_load(catalogue, runtime, lc=app, lc_task=lc_task(kernel), warm_up_queries=2,
                     arrivals_ns=[i * 5_000_000 for i in range(5)], virtual_time=model.virtual_time)
    if model.verdict() == 'wrong':
        raise RuntimeError('The output differs from the bare graph\'s.')


def choose_capture(catalogue, model, args, report):
    """The first way to capture that works. The report names those that failed."""
    report['captures_tried'] = {}
    for capture in CAPTURES if args.capture == 'auto' else (args.capture,):
        try:
            try_capture(catalogue, model, args.device, capture)
            report['captures_tried'][capture] = 'works'
            return capture
        except Exception as failure:
            report['captures_tried'][capture] = str(failure)
            print(f'Capture {capture} does not work: {failure}', flush=True)
    raise RuntimeError('No way to capture the model works.')


def calibrate(model, be, capture, args, report):
    """Measures both kernels and writes the profile. Returns its path."""
    path = str(pathlib.Path(args.out).with_name('resnet50_profile.json'))
    report['calibration'] = {}

    def progress(given):
        if given.note:
            print(f'Note: {given.note.decode()}')
        if not given.kernel:
            return
        row = given.kernel.contents
        curve = {row.speed[i].sms: round(row.speed[i].speed, 4) for i in range(row.speed_count)}
        report['calibration'][row.name.decode()] = {
            'solo_ns': row.solo_ns, 'block_task_ns': row.block_task_ns, 'speed': curve,
            'eviction_p50_ns': row.eviction_p50_ns, 'eviction_p99_ns': row.eviction_p99_ns}
        print(f'{row.name.decode()}: solo {row.solo_ns / 1e3:.1f} us, eviction p99 '
              f'{row.eviction_p99_ns / 1e3:.1f} us, speed by SMs {curve}', flush=True)

    spec, captures = model.kernel_spec(capture)
    gpushare.calibrate(path, [(spec, None), (be.kernel, be.task)], progress, device=args.device, seed=args.seed,
                       kernel_time_ns=int(args.calibrate_seconds * 1e9))
    del captures  # its memory was in use until here
    return path


def place_sizes(runtime, captures):
    """The number of SMs of each place, from the captures, else from capturing an empty graph."""
    if captures is not None and captures.place_sms:
        return captures.place_sms
    sizes = []
    try:
        runtime.register_kernel('place_sizes', capture=lambda stream, sm_count: sizes.append(sm_count))
    except gpushare.Error:
        pass  # the numbers of the places are told instead
    return sizes


# --- rows ----------------------------------------------------------------------------------------


class Row:
    """All rounds of one row."""

    def __init__(self, name, bound=None):
        self.name, self.bound = name, bound
        self.latencies_ns, self.span_ns, self.block_tasks = [], 0, 0.0
        self.outputs, self.counts = set(), {}

    def add(self, latencies_ns, span_ns, block_tasks=0.0):
        self.latencies_ns += latencies_ns
        self.span_ns += span_ns
        self.block_tasks += block_tasks

    def count(self, what, key, more):
        if more:
            counters = self.counts.setdefault(what, {})
            counters[key] = counters.get(key, 0) + more

    def be_rate(self):
        return self.block_tasks / self.span_ns if self.span_ns else 0.0


class Bench:
    """The rows on one open runtime."""

    def __init__(self, args, catalogue, model, be, runtime, spec, captures):
        self.args, self.catalogue, self.model, self.be = args, catalogue, model, be
        self.runtime = runtime
        self.kernels = [runtime.register(spec), runtime.register(be.kernel)]
        self.query = lc_task(self.kernels[0])
        self.sizes = place_sizes(runtime, captures)
        self.be.task.kernel = self.kernels[1].handle
        self.raw, self.bare = Row('raw alone'), Row('library, no BE', args.bounds[-1])
        self.beside = [Row(f'library + BE, bound {bound:.2f}', bound) for bound in args.bounds]
        self.be_alone = Row('BE alone')
        self.apps = 0
        alone = self.model.raw_run([i * 3_000_000 for i in range(101)])[0]
        self.solo_ns = quantile(alone, 0.5)

    def rows(self):
        return [self.raw, self.bare, *self.beside, self.be_alone]

    def run_round(self, number):
        count = max(1, self.args.queries // self.args.rounds)
        arrivals = poisson(self.args.seed * 1000 + number, count, self.solo_ns / self.args.load)
        self.model.poison()
        self.raw.add(*self.model.raw_run(arrivals))
        self.raw.outputs.add(self.model.verdict())
        for row in (self.bare, *self.beside):
            self.run_library(row, arrivals, beside=row is not self.bare)
        self.run_library(self.be_alone, [], beside=True)

    def app_name(self, role):
        self.apps += 1
        return f'{role}{self.apps}'

    def run_library(self, row, arrivals, beside):
        be = lc = None
        if arrivals:
            lc = self.runtime.create_app(
                self.app_name('service'), gpushare.LATENCY_CRITICAL, p99_bound=row.bound, solo_ns=self.solo_ns,
                tasks_max=8192, p99_alone_ns=quantile(self.raw.latencies_ns, 0.99))
            self.model.poison()
        if beside:
            be = self.runtime.create_app(self.app_name('training'), gpushare.BEST_EFFORT)
            self.be.clear()
        before = self.runtime.stats()
        result, latencies = run_load(
            self.catalogue, self.runtime, lc=lc, be=be, lc_task=self.query, be_task=self.be.task,
            arrivals_ns=arrivals, span_ns=int(self.args.be_seconds * 1e9),
            virtual_time=self.model.virtual_time)
        self.count_decisions(row, result, before, self.runtime.stats())
        for app in (lc, be):
            if app is not None:
                app.close()
        row.add(latencies, result.span_ns, result.be_block_tasks)
        if lc is not None:
            row.outputs.add(self.model.verdict())
        if be is not None:
            row.outputs.add('BE ' + self.be.verdict())

    def place(self, index):
        return f'{self.sizes[index]} SMs' if index < len(self.sizes) else f'place {index}'

    def count_decisions(self, row, result, before, after):
        for what, counters, name in (
                ('lc_places', result.lc_places, self.place),
                ('be_places', result.be_places, self.place),
                ('lc_reasons', result.lc_reasons, self.reason),
                ('be_reasons', result.be_reasons, self.reason),
                ('be_holds', result.be_holds, self.reason)):
            for index, more in enumerate(counters):
                row.count(what, name(index), more)
        for field in ('launches', 'fast_path_launches', 'evictions', 'evictions_blocked'):
            row.count('stats', field, getattr(after, field) - getattr(before, field))
        row.counts['eviction_p99_ns'] = after.eviction_latency.p99_ns

    def reason(self, value):
        return gpushare.Reason(value).name.lower()

    def result_of(self, row):
        result = {'row': row.name, 'bound': row.bound, 'queries': len(row.latencies_ns),
                  'span_s': row.span_ns * 1e-9, 'output': sorted(row.outputs), **row.counts}
        if row.latencies_ns:
            p99 = quantile(row.latencies_ns, 0.99)
            result.update(
                p50_us=quantile(row.latencies_ns, 0.5) / 1e3, p99_us=p99 / 1e3,
                p99_over_raw=p99 / quantile(self.raw.latencies_ns, 0.99),
                realised_load=self.solo_ns * len(row.latencies_ns) / row.span_ns)
        if row.block_tasks and self.be_alone.be_rate():
            result['be_of_solo'] = row.be_rate() / self.be_alone.be_rate()
        goal = next((share for bound, share in GOALS.items()
                     if row in self.beside and abs(bound - row.bound) < 1e-9), None)
        if goal is not None:
            result['be_goal'] = goal
            result['goal_met'] = (result.get('be_of_solo', 0.0) >= goal and
                                  result['p99_over_raw'] <= row.bound)
        return result


def mechanism(result):
    """A few words: the places of the queries, most frequent first, and what BE did meanwhile."""
    places = sorted(result.get('lc_places', {}).items(), key=lambda item: -item[1])
    words = ', '.join(f'LC on {place} x {count}' for place, count in places[:2])
    evictions = result.get('stats', {}).get('evictions', 0)
    return f'{words}; {evictions} evictions' if words else '-'


def number(result, key, digits):
    return f'{result[key]:.{digits}f}' if key in result else '-'


def table(results):
    lines = [f'{"row":<28} {"p50 us":>9} {"p99 us":>9} {"p99/raw":>8} {"BE/solo":>8} {"load":>6}  '
             'output; mechanism']
    for result in results:
        goal = ''
        if 'goal_met' in result:
            goal = f' [goal {result["be_goal"]:.2f} {"met" if result["goal_met"] else "MISSED"}]'
        lines.append(f'{result["row"]:<28} {number(result, "p50_us", 1):>9} {number(result, "p99_us", 1):>9} '
                     f'{number(result, "p99_over_raw", 3):>8} {number(result, "be_of_solo", 3):>8} '
                     f'{number(result, "realised_load", 3):>6}  {"+".join(result["output"])}; '
                     f'{mechanism(result)}{goal}')
    return '\n'.join(lines)


def measure(args, catalogue, model, be, report):
    """Runs everything and fills the report. True if every answer is right."""
    report.update(model.facts(), load=args.load, rounds=args.rounds, seed=args.seed)
    capture = choose_capture(catalogue, model, args, report)
    report['capture'] = capture
    print(f'Capture: {capture}', flush=True)
    profile = args.profile or calibrate(model, be, capture, args, report)
    report['profile'] = pathlib.Path(profile).name
    spec, captures = model.kernel_spec(capture)
    with open_runtime(model, args.device, profile) as runtime:
        runtime.keep(captures)
        bench = Bench(args, catalogue, model, be, runtime, spec, captures)
        report['solo_us'] = bench.solo_ns / 1e3
        for number in range(args.rounds):
            bench.run_round(number)
        report['rows'] = [bench.result_of(row) for row in bench.rows()]
    print(table(report['rows']), flush=True)
    wrong = [row['row'] for row in report['rows'] if {'wrong', 'BE wrong'} & set(row['output'])]
    report['wrong_rows'] = wrong
    return not wrong


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--catalogue', default='libgpushare_catalogue.so',
                        help='path of the catalogue')
    parser.add_argument('--out', default='out/resnet50.json', help='file of the results')
    parser.add_argument('--profile', default='', help='a profile to use; else one is calibrated')
    parser.add_argument('--capture', choices=('auto', *CAPTURES), default='auto')
    parser.add_argument('--dtype', choices=('fp16', 'bf16'), default='fp16')
    parser.add_argument('--queries', type=int, default=1500, help='of each row')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--load', type=float, default=0.5)
    parser.add_argument('--bounds', type=float, nargs='+', default=[1.20, 1.05])
    parser.add_argument('--be-seconds', type=float, default=0.5, help='BE alone, each round')
    parser.add_argument('--calibrate-seconds', type=float, default=10, help='for each kernel')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--device', default='cuda', help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.queries < args.rounds or args.rounds < 1 or not 0 < args.load < 1:
        parser.error('There is at least one query a round, and the load lies between 0 and 1.')
    return args


def main(argv=None):
    args = parse(argv)
    out = pathlib.Path(args.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    report, right = {'command': sys.argv[1:]}, False
    try:
        import torch  # before the libraries: its CUDA runtime sets the device up
        torch.cuda.init()
        catalogue = Catalogue(args.catalogue)
        if not catalogue.has_cuda():
            raise RuntimeError('The catalogue was built without CUDA.')
        model = TorchModel(catalogue, args.dtype, args.seed)
        sms = torch.cuda.get_device_properties(0).multi_processor_count
        right = measure(args, catalogue, model, SincosWork(catalogue, sms), report)
    except Exception as failure:
        report['failure'] = str(failure)
        traceback.print_exc()
    report['right'] = right
    out.write_text(json.dumps(report, indent=1) + '\n')
    print(f'Results: {out}', flush=True)
    return 0 if right else 1


if __name__ == '__main__':
    sys.exit(main())
