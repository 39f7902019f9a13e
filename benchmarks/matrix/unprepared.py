#!/usr/bin/env python3
"""LC services beside training steps that nobody prepared: gpushare and what users do today, on the same arrivals.

  unprepared.py [--services a,b] [--steps c,d] [--load 0.5] [--queries 2400] [--out FILE] ...

Each row is a service and a step. Its conditions take turns in rounds, and a round has the same Poisson arrivals for
all of them. The step was never calibrated: the library sees it for the first time in its row. p99 is over that of
the service's own graph alone on the same arrivals; BE is steps done over those of the step alone in the same time.

Prints one line a condition; writes JSON after each row. Exit code 0: every answer and every loss is right; 1: one is
wrong or a row failed; 77: there is no GPU or no PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import time
import traceback
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

import cold
from arrivals import poisson, quantile, queries_of_round
from baselines import SWITCH_S, Way, undisturbed, ways
from green import GreenContexts
from networks import LOSSES_MAX, SERVICES, STEPS
from served import Answered
from sharing import Promise, Sharing

import gpushare
import gpushare.torch

GREEN_SMS = (64, 96)  # SMs of the service
FAR_SHARE = 0.25  # of the queries, for ways whose p99 is far from any bound
FAR = ('streams', 'priorities')
TWIN_STEPS = 150  # that tell whether a step alone gives the same bits twice
RATE_S = 0.8  # how long the step's rate alone is measured


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--services', default=','.join(SERVICES))
    parser.add_argument('--steps', default='mlp_small,mlp_large,gpt2,resnet50_b32')
    parser.add_argument('--load', type=float, default=0.5, help='arrival rate times the time of one query')
    parser.add_argument('--queries', type=int, default=2400, help='of each condition, in all rounds')
    parser.add_argument('--rounds', type=int, default=2)
    parser.add_argument('--window-s', type=float, default=2.0, help='of a round of a condition at least: short queries '
                        'are more then')
    parser.add_argument('--promises', default='1.05,1.20', help='p99 bounds; 1.05/1.10 also has a p50 bound')
    parser.add_argument('--baselines', default='streams,priorities,green,gated', help='empty: only alone')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--seconds', type=float, default=540, help='no row begins after it')
    parser.add_argument('--cold', type=int, default=0, metavar='MB',
                        help='no steps: queries behind so much other memory that was read (cold.py)')
    parser.add_argument('--event-log', default='', help='FILE: the event log of the library, of the first row')
    parser.add_argument('--out', default='')
    return parser


class Service(Answered):
    """One LC service with its ways without the library and its runtime."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.sharing = Sharing(self.net, self.inputs, name)


class Row:
    """A service beside a step, in every condition. A derived class measures a row of another kind."""

    def __init__(self, service: Service, step: str, arguments: argparse.Namespace) -> None:
        self.service, self.step_name, self.arguments = service, step, arguments
        self.runs: dict[str, list[dict[str, Any]]] = {}
        self.library_s = 0.0

    def measure(self, greens: dict[str, GreenContexts]) -> dict[str, Any]:
        torch.manual_seed(11)
        plain = STEPS[self.step_name]()
        for _ in range(3):
            plain()
        torch.manual_seed(11)
        shared = STEPS[self.step_name]()
        made = self._ways(plain, greens)
        self.solo_ns = made['alone'].solo()
        step_alone = Way('step alone', self.service.call, plain, (torch.cuda.Stream(), torch.cuda.Stream()))
        self.step_ns = step_alone.rate(max(3, int(RATE_S * 1e9 / step_alone.rate(3))))
        began = time.monotonic()
        with gpushare.torch.Training(self.service.sharing.runtime, shared, state=shared.state,
                                     name=f'{self.service.name}-{self.step_name}') as training:
            registered = time.monotonic() - began
            info = self.service.sharing.runtime.kernel_info(training.name)
            with undisturbed():
                self._rounds(made, training)
            shared_ns = self.service.sharing.rate(training, max(8, int(RATE_S * 1e9 / self.step_ns)))
            losses = self._losses(plain, shared)
            if losses['differ']:  # does the step alone repeat itself?
                torch.manual_seed(11)
                twin = STEPS[self.step_name]()
                for _ in range(3):
                    twin()  # as for the other instance: its capture must not make the optimizer's state
                streams = (torch.cuda.Stream(), torch.cuda.Stream())
                Way('twin', self.service.call, twin, streams).rate(min(losses['compared'], TWIN_STEPS))
                losses['alone_differ'] = self._losses(plain, twin)['differ']
        return {'service': self.service.name, 'step': self.step_name, 'load': self.arguments.load,
                'seed': self.arguments.seed, 'solo_us': round(self.solo_ns / 1e3, 1),
                'step_us': round(self.step_ns / 1e3, 1), 'registered_s': round(registered, 2),
                'be_alone': round(self.step_ns / shared_ns, 4),
                'nodes': info.node_count, 'segments': info.segment_count, 'longest_us': info.longest_segment_ns / 1e3,
                'whole_reason': info.whole_reason,
                'absent': self.absent, 'library_s': round(self.library_s, 1), 'losses': losses,
                'conditions': {name: self._summary(name) for name in self.runs}}

    def _ways(self, plain: Any, greens: dict[str, GreenContexts]) -> dict[str, Way]:
        wanted = ['alone', *self.arguments.baselines.split(','), *greens]
        made, self.absent = ways(self.service.call, plain, greens, wanted)
        return made

    def _rounds(self, made: dict[str, Way], training: Any) -> None:
        arguments = self.arguments
        gap_ns = self.solo_ns / arguments.load
        count = queries_of_round(arguments.queries, arguments.rounds, gap_ns, arguments.window_s)
        promises = arguments.promises.split(',')
        for number in range(arguments.rounds):
            arrivals = poisson(1000 * arguments.seed + number, count, gap_ns)
            for name, way in made.items():
                few = arrivals[:int(FAR_SHARE * count)] if name.split(' ')[0] in FAR else arrivals
                self.service.answer.fill_(float('nan'))
                self._keep(name, way.run(few))
                self.service.check(name)
            if number == 0:
                alone = self.runs['alone'][0]['latencies']
                self.p99_alone_ns = int(quantile(alone, 0.99))
            if number == 0:
                self._library('library alone', arrivals, '1.05', None)
            for promise in promises:
                self._library(f'library {promise}', arrivals, promise, training)

    def _library(self, name: str, arrivals: list[int], promise: str, training: Any) -> None:
        p99, _, p50 = promise.partition('/')
        service = self.service.sharing.service
        service.outputs.fill_(float('nan'))
        torch.cuda.synchronize()
        began = time.monotonic()
        self._keep(name, self.service.sharing.run(
            arrivals, Promise(float(p99), float(p50 or 0), self.p99_alone_ns, int(self.solo_ns)), training))
        self.library_s += time.monotonic() - began
        self.service.check(name, service.outputs)

    def _keep(self, name: str, run: dict[str, Any]) -> None:
        self.runs.setdefault(name, []).append(run)

    def _summary(self, name: str) -> dict[str, Any]:
        runs = self.runs[name]
        alone = [latency for base, run in zip(self.runs['alone'], runs, strict=False)
                 for latency in base['latencies'][:len(run['latencies'])]]
        latencies = [latency for run in runs for latency in run['latencies']]
        window = sum(run['window_ns'] for run in runs)
        result = {'queries': len(latencies), 'window_s': round(window / 1e9, 2),
                  'load': round(len(latencies) * self.solo_ns / window, 4)}
        for share in (0.5, 0.99):
            result[f'p{share * 100:.0f}_us'] = round(quantile(latencies, share) / 1e3, 1)
            result[f'p{share * 100:.0f}_over_alone'] = round(quantile(latencies, share) / quantile(alone, share), 4)
        if 'steps' in runs[0]:
            steps = sum(run['steps'] for run in runs)
            result.update(steps=steps, be=round(steps * self.step_ns / window, 4))
        if 'seen' in runs[0]:
            seen = [latency for run in runs for latency in run['seen']]
            result['seen_p50_us'] = round(quantile(seen, 0.5) / 1e3, 1)
            result['seen_p99_us'] = round(quantile(seen, 0.99) / 1e3, 1)
        for key in ('held_s', 'evictions', 'launches', 'got'):
            if key in runs[0]:
                result[key] = [run[key] for run in runs]
        return result

    @staticmethod
    def _losses(plain: Any, shared: Any) -> dict[str, Any]:
        """Compares the steps that both instances have done, bit by bit."""
        torch.cuda.synchronize()
        counts = int(plain.count.item()), int(shared.count.item())
        both = min(*counts, LOSSES_MAX - 1)
        left, right = plain.losses[:both], shared.losses[:both]
        differ = (left.view(torch.int32) != right.view(torch.int32)).nonzero().flatten().tolist()
        every = shared.losses[:min(counts[1], LOSSES_MAX - 1)]
        result = {'compared': both, 'differ': len(differ), 'steps': counts[1],
                  'finite': bool(every.isfinite().all().item()), 'first': every[0].item(), 'last': every[-1].item()}
        if differ:
            at = differ[0]
            result.update(differ_from=at, alone=left[at].item(), shared=right[at].item())
        return result

    @classmethod
    def kept(cls, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What the file has of the process: the rows that were measured. A derived class may know of more."""
        return rows

    @staticmethod
    def is_right(row: dict[str, Any]) -> bool:
        return row['losses']['differ'] == 0 and bool(row['losses']['finite'])

    @staticmethod
    def show(row: dict[str, Any]) -> None:
        show(row)


def show(row: dict[str, Any]) -> None:
    print(f"{row['service']} beside {row['step']}: query {row['solo_us']} us, step {row['step_us']} us, "
          f"registered in {row['registered_s']} s, {row['segments']} segments of at most {row['longest_us']} us "
          f"{row['whole_reason']}, BE alone {row['be_alone']}, losses {row['losses']}")
    for name, why in row['absent'].items():
        print(f'  {name:18} absent: {why}')
    for name, figures in row['conditions'].items():
        print(f"  {name:18} p50 {figures['p50_over_alone']:7.3f}  p99 {figures['p99_over_alone']:7.3f}  "
              f"BE {figures.get('be', 0):.3f} of {1 - figures['load']:.3f}  {figures.get('held_s', '')} "
              f"{figures.get('evictions', '')}", flush=True)


def write(arguments: argparse.Namespace, rows: list[dict[str, Any]]) -> None:
    """Writes the report, if there is a file for it. A process that ends meanwhile leaves the last report whole."""
    if not arguments.out:
        return
    report = {'gpu': torch.cuda.get_device_name(), 'torch': torch.__version__, 'library': gpushare.version(),
              'arguments': vars(arguments), 'rows': rows}
    path = pathlib.Path(arguments.out)
    beside = path.with_name(path.name + '.part')
    beside.write_text(json.dumps(report, indent=1) + '\n', encoding='utf-8')
    beside.replace(path)


def main(arguments: argparse.Namespace | None = None, kind: type[Row] = Row) -> int:
    """Measures rows of a kind. The arguments are those of options(), and more where the kind has its own."""
    if arguments is None:
        arguments = options().parse_args()
    if arguments.cold:
        return cold.run(arguments.services.split(','), arguments.cold, arguments.out)
    began = time.monotonic()
    sys.setswitchinterval(SWITCH_S)
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    contexts = [GreenContexts(sms) for sms in GREEN_SMS] if 'green' in arguments.baselines else []
    greens = {f'green {green.sms[0]}/{green.sms[1]}': green for green in contexts}
    rows: list[dict[str, Any]] = []
    failed = False
    for name in arguments.services.split(','):
        service = Service(name)
        print(f'{name}: registered in {service.sharing.registered_s:.2f} s', flush=True)
        for step in arguments.steps.split(','):
            if time.monotonic() - began > arguments.seconds:
                print(f'{name} beside {step}: no time was left')
                failed = True
                continue
            traced = bool(arguments.event_log) and not rows
            if traced:
                service.sharing.runtime.start_trace(event_log_path=arguments.event_log, records_max=1 << 22)
            try:
                rows.append(kind(service, step, arguments).measure(greens))
            except Exception:
                traceback.print_exc()
                failed = True
                continue
            finally:
                if traced:
                    service.sharing.runtime.stop_trace()
            kind.show(rows[-1])
            failed = failed or not kind.is_right(rows[-1])
            write(arguments, kind.kept(rows))
            torch.cuda.empty_cache()
        service.sharing.close()
        del service
        torch.cuda.empty_cache()
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
