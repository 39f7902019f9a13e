#!/usr/bin/env python3
"""An LLM engine alone and beside BE jobs, on bare PyTorch and through the library, on the same requests.

  engines.py [--model 1b] [--jobs lora,vit] [--seconds 3] [--rounds 2] [--out FILE] ...

The engine is a Llama-style decoder with random weights in bf16: continuous batching, decode graphs of batch 1 to 32,
prefill graphs of five lengths, one host loop, requests in open loop. Each round runs every condition on the same
requests. Times are over bare PyTorch's; BE is steps over those of the job's own whole graph (or eager loop) alone; its
limit is the share of bare's time without an active request. The steps of the library's runs are replayed by bare
PyTorch, and tokens that differ are counted.

The defaults end within 120 s on an H200. --full is the version of 10 minutes. Times of the phases go to stderr, a
table comes last. Exit code 0: measured; 1: a token or a result is wrong, or a condition failed; 2: bad use; 77: there
is no GPU or no PyTorch.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import sys
from collections.abc import Callable
from typing import Any

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / 'matrix'))
# cuBLAS gives the same bits in every run only with a fixed workspace; read when its handle is made.
os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')

import forms
import traffic
from loop import simulated
from plan import EAGER, FULL, HIGH_WAYS, SHORT, Case, Condition, Phases, cases, conditions, order
from timing import active_share, goals, table

DRAWS = 4000  # requests of a round at most
RATE_S = 0.6  # how long a job's rate alone is measured
OVERRUN_S = 1.0  # of a run beyond its arrivals, at most about
REPORT_S = 3.0
SEGMENT_US = 100.0  # of a job's segments
FULL_OPTIONS = {'jobs': 'lora,gpt2c,vit,eager', 'seconds': 8.0, 'rounds': 2, 'conditions': FULL, 'limit_s': 570.0,
                'check_steps': 1000}


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--model', choices=('1b', '8b'), default='1b')
    parser.add_argument('--jobs', default='lora,vit', help='of lora, gpt2c, vit, eager; and of gpt2 and resnet50 in '
                        'forms: gpt2_cublas,gpt2_segments,gpt2_twins; empty: none')
    parser.add_argument('--conditions', default=SHORT, help='of bare, library, library:BOUND, query:BOUND (one query a '
                        'busy period), streams, priority, gated, stopped, process')
    parser.add_argument('--load', default='0.5', help='share of the time with an active request; several: 0.5,0.3')
    parser.add_argument('--requests', default='poisson', help='of poisson, azure')
    parser.add_argument('--prefill', choices=('graph', 'eager'), default='graph')
    parser.add_argument('--gaps', choices=('learnt', 'stated'), default='learnt', help='stated: next_within_ns')
    parser.add_argument('--latency', choices=('balanced', 'spin'), default='balanced', help='of the runtime')
    parser.add_argument('--through', choices=('server', 'kernels'), default='server', help='server: a '
                        'gpushare.torch.Server; kernels: register_kernel and queue.run')
    parser.add_argument('--places', choices=('copied', 'whole'), default='copied', help='whole: no places for the '
                        "engine's graphs, which saves memory and the time of the registration")
    parser.add_argument('--compile', choices=('blocks', 'whole'), default='blocks', help='of gpt2c; whole: minutes')
    parser.add_argument('--search', choices=('short', 'full'), default='short', help='of the forms of a product that '
                        'a template may have')
    parser.add_argument('--feeder', choices=('tickets', 'start'), default='tickets', help="of the library's jobs: a "
                        'thread of this program, or Training.start')
    parser.add_argument('--hint', choices=('steps', 'decode', 'none'), default='steps', help='whose p99 alone the '
                        "engine's app states, as the first run of bare has it; none: the library finds it")
    parser.add_argument('--process-env', default='', metavar='NAME=VALUE,...', help="of the job's process, such as "
                        'CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50')
    parser.add_argument('--seconds', type=float, default=3.0, help='of arrivals, in each condition and round')
    parser.add_argument('--rounds', type=int, default=2)
    parser.add_argument('--check-steps', type=int, default=200, help='of a run that bare replays; 0: all')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--limit-s', type=float, default=112.0, help='no run begins that would end later')
    parser.add_argument('--full', action='store_true', help=' '.join(
        f'--{name.replace("_", "-")} {value}' for name, value in FULL_OPTIONS.items()))
    parser.add_argument('--out', type=pathlib.Path, help='a file for the JSON')
    given = parser.parse_args(arguments)
    if given.full:
        parser.set_defaults(**FULL_OPTIONS)
        given = parser.parse_args(arguments)
    try:
        given.jobs = forms.in_order([job for job in given.jobs.split(',') if job])
        given.conditions = conditions(given.conditions, given.jobs)
        given.cases = cases(given.load, given.requests)
    except ValueError as error:
        parser.error(str(error))
    return given


class Bench:
    """One process: builds the engine and the jobs, runs the rounds, reports."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.phases = given, Phases(given.limit_s)
        self.report: dict[str, Any] = {
            'experiment': 'engines', 'arguments': {name: str(value) for name, value in vars(given).items()
                                                   if name not in ('conditions', 'cases')},
            'left_out': [], 'jobs': {}, 'memory_mib': {}}

    def measure(self) -> bool:
        jobs, library = self.prepared()
        self.rounds = {case: self.rounds_of(self.engine, library, jobs, self.given.check_steps, self.given.hint,
                                            self.given.feeder == 'start') for case in self.given.cases}
        for number in range(self.given.rounds):
            for case in self.given.cases:
                self.run_round(case, number)
        self.memory('after')
        return self.finish(jobs, library)

    def prepared(self) -> tuple[dict[str, Any], Any]:
        """The engine, the library and the jobs."""
        with self.phases.phase('PyTorch'):
            import torch
            torch.cuda.init()
            import gpushare
        self.report.update(gpu=torch.cuda.get_device_name(), torch=torch.__version__)
        self.memory('before')
        with self.phases.phase('engine: weights and graphs'):
            self.build()
        self.memory('engine')
        library = None
        if any(one.uses_library for one in self.given.conditions):
            self.report['library'] = gpushare.version()
            library = self.register()
        jobs = {name: self.job(name, library) for name in self.given.jobs}
        self.ready()
        self.memory('registered')
        return jobs, library

    def build(self) -> None:
        """The engine, and the time of its steps."""
        from bare import Bare
        from engine import Engine
        self.engine: Any = Engine(self.given.model, eager=self.given.prefill == 'eager')
        self.times_ns = Bare(self.engine).times_ns()
        if any(one.way in HIGH_WAYS for one in self.given.conditions):
            self.engine.graphs(-5)
        self.report['step_times_us'] = {name: round(time / 1e3, 1) for name, time in self.times_ns.items()}

    def ready(self) -> None:
        """Behind the jobs, in front of the rounds: the engine is ready."""

    def rounds_of(self, *given: Any) -> Any:
        from rounds import Rounds
        return Rounds(*given)

    def memory(self, when: str) -> None:
        import torch
        torch.cuda.synchronize()
        free, total = torch.cuda.mem_get_info()
        self.report['memory_mib'][when] = (total - free) >> 20

    def register(self) -> Any:
        from library import made
        given = self.given
        with self.phases.phase('registration of the engine'):
            library = made(self.engine, given.through, given.latency, given.gaps, given.places == 'whole')
            library.warm_up()
        self.report['registration'] = {'by': type(library).__name__, 'graphs': len(self.engine.forms),
                                       'seconds': round(library.registered_s, 2),
                                       'mib': library.registered_bytes >> 20, 'unconfinable': library.unconfinable}
        return library

    def job(self, name: str, library: Any) -> Any:
        """A job, captured for bare PyTorch and registered with the library, and its rates alone."""
        import jobs
        import torch
        from baselines import captured
        from beside import Launched, Submitted, rate
        from rounds import Job

        import gpushare.torch
        with self.phases.phase(f'job {name}'):
            step = jobs.made(name, self.given.compile == 'whole', self.given.search)
            stream, facts = torch.cuda.Stream(), {}
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(3):
                    step()
            torch.cuda.synchronize()
            launch = step if name in EAGER else captured(step, stream).replay
            made = Job(name, step, launch, stream, rate(Launched(launch, stream), RATE_S))
            facts['step_us'] = round(1e6 / made.rate, 1)
        if library is not None and name not in EAGER:
            with self.phases.phase(f'registration of {name}'):
                made.training = gpushare.torch.Training(library.runtime, step, state=step.state, name=f'job-{name}',
                                                        kernel_options=jobs.kernel_options(name))
                info = library.runtime.kernel_info(made.training.name)
                facts.update(nodes=info.node_count, segments=info.segment_count,
                             evictable_segments=info.evictable_segments,
                             longest_us=round(info.longest_segment_ns / 1e3, 1),
                             unconfinable=made.training.unconfinable)
                alone = rate(Submitted(made.training, library.clock_offset), RATE_S)
                facts['library_alone'] = round(alone / made.rate, 4)
        if any((one.way, one.job) == ('process', name) for one in self.given.conditions):
            from process import JobProcess
            with self.phases.phase(f'process of {name}'):
                words = [word.partition('=') for word in self.given.process_env.split(',') if word]
                made.process = JobProcess(name, {key: value for key, _, value in words})
        self.report['jobs'][name] = facts
        return made

    @staticmethod
    def shares(step: Any, name: str, runtime: Any) -> dict[str, Any]:
        """Which part of a form's time is evicted in the middle of a node. By the profiler, so behind the rounds."""
        import compiled_steps

        import gpushare.triton
        made = {twin.name for twin in gpushare.triton.twins(runtime) if twin.state == 'made'}
        return forms.shares(compiled_steps.kernels_us(step), made if forms.has_twins(name) else set(), SEGMENT_US)

    def requests(self, case: Case, number: int) -> list[traffic.Request]:
        """The requests of a round: those of the load in virtual time, with the step times that were measured."""
        given, seed = self.given, 1000 * self.given.seed + number
        lengths = traffic.Lengths(self.engine.prompt_max, self.engine.output_max)
        if case.law == 'azure':
            path = os.path.join(os.environ['GPUSHARE_DATA'], 'azure_llm_2023_conv.csv')
            draws = traffic.azure(path, seed, DRAWS, lengths)
        else:
            draws = traffic.poisson(seed, DRAWS, lengths)
        window_ns = int(given.seconds * 1e9)
        times = {'p0': 1.5 * self.times_ns.get('d1', 0.0), **self.times_ns}
        gap_ns = traffic.gap_of(draws, case.load, window_ns, lambda requests: active_share(
            simulated(requests, self.engine.batching, times)) if requests else 0.0)
        return traffic.spread(draws, gap_ns, window_ns)

    def drawn(self, case: Case, number: int) -> tuple[list[traffic.Request], dict[int, list[int]]]:
        """The requests of a round and their prompts."""
        with self.phases.phase(f'{case.name}, requests of round {number}'):
            requests = self.requests(case, number)
            vocabulary = self.engine.shape.vocabulary
            prompts = {request.number: traffic.prompt_tokens(request, vocabulary) for request in requests}
            if self.given.prefill == 'eager':
                self.engine.prepare(prompts.values())
        return requests, prompts

    def run_round(self, case: Case, number: int) -> None:
        requests, prompts = self.drawn(case, number)
        for condition in order(self.given.conditions, number):
            if not self.phases.has_room(self.given.seconds + OVERRUN_S + REPORT_S):
                self.report['left_out'].append(f'{case.name}: {condition.name}, round {number}')
                continue
            with self.phases.phase(f'{case.name}, round {number}, {condition.name}'):
                self.rounds[case].run(condition, number, requests, prompts)

    def finish(self, made: dict[str, Any], library: Any) -> bool:
        from jobs import health
        rows = [{**dataclasses.asdict(case), **rounds.row(condition)}
                for case, rounds in self.rounds.items() for condition in self.given.conditions
                if condition in rounds.found and Condition('bare') in rounds.found]
        forms.against_fastest(rows, {name: job.rate for name, job in made.items()})
        for name, job in made.items():
            if library is not None and forms.split(name)[0]:
                self.report['jobs'][name]['shares'] = self.shares(job.step, name, library.runtime)
            self.report['jobs'][name]['health'] = health(job.step)
            if job.process is not None:
                job.process.close()
        if library is not None:
            with self.phases.phase('end of the library'):
                library.close()
        right = all('failed' not in row and not row.get('token_check', {}).get('differ') for row in rows) and \
            all(facts['health']['right'] for facts in self.report['jobs'].values())
        self.report.update(rows=rows, goals=goals(rows), right=right, phases_s=self.phases.seconds)
        return right

    def print(self) -> None:
        print(f"{self.given.model}, prefill by {self.given.prefill}; "
              f"registration {self.report.get('registration')}; memory {self.report['memory_mib']} MiB; "
              f"left out {self.report['left_out'] or 'nothing'}")
        for name, facts in self.report['jobs'].items():
            print(f'job {name}: {facts}')
        print(f"goals met: {self.report['goals']}")
        for case in self.given.cases:
            print(f'{case.name}:')
            print(table(row for row in self.report['rows'] if Case(row['load'], row['law']) == case))
        cells = forms.cells_of(self.report)
        if cells:
            print('\n'.join((*forms.table(cells), *forms.verdicts(cells))))


def run(given: argparse.Namespace, kind: Callable[[argparse.Namespace], Bench]) -> int:
    """Measures, writes the JSON, prints the tables. Returns the exit code."""
    try:
        import torch
    except ImportError:
        print('skipped: PyTorch is not installed')
        return 77
    if not torch.cuda.is_available():
        print('skipped: PyTorch sees no GPU')
        return 77
    bench = kind(given)
    right = bench.measure()
    text = json.dumps(bench.report, indent=1)
    if given.out is not None:
        given.out.write_text(text + '\n', encoding='utf-8')
    else:
        print(text)
    bench.print()
    return 0 if right else 1


def main() -> int:
    return run(parsed(), Bench)


if __name__ == '__main__':
    sys.exit(main())
