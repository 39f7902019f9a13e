"""Rows of services.py --forms: a service beside each form of a compiled training step, in turns on the same arrivals.

Each round runs bare first, then every form under every bound; the next round begins with another of them. A form's
step is made once in the process, for all services. No run begins that would end behind --limit-s. PyTorch's profiler,
which may slow later launches, runs behind all rows.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import pathlib
import time
from typing import Any

import compiled_steps
import forms
import torch
import unprepared
from arrivals import poisson, quantile
from baselines import Way, undisturbed
from forms import Form
from plan import Phases, turned

import gpushare.torch
import gpushare.triton

RUN_S = 0.7  # of a run beyond its arrivals: an app, the last query, the answer's check
BEFORE_S = 20.0  # what a row takes in front of its runs, if its steps are compiled already
ALONE = 'alone'


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--forms', default='', metavar='LIST', help='rows of compiled steps in these forms, of '
                        f'{",".join(form.name for form in forms.FORMS)}')
    parser.add_argument('--search', choices=tuple(compiled_steps.SEARCHES), default='short', help='which forms of a '
                        'product the compilation times; full takes several times as long')
    parser.add_argument('--segment-us', type=int, default=100, help='of a segment')
    parser.add_argument('--limit-s', type=float, default=290.0, help='no run begins that would end later')


class Made:
    """The steps of the process by step and form, each with what was measured of it alone."""

    def __init__(self, search: str) -> None:
        self._search = search
        self._steps: dict[tuple[str, str], Any] = {}
        self.twins: dict[tuple[str, str], set[str]] = {}  # names of kernels of which a code has one
        self.compiled_s: dict[str, float] = {}

    def step(self, name: str, form: Form) -> Any:
        key = (name, form.name)
        if key not in self._steps:
            began = time.monotonic()
            step = compiled_steps.made(name, form, self._search)
            for _ in range(3):
                step()
            torch.cuda.synchronize()
            self._steps[key] = step
            self.compiled_s[f'{name}_{form.name}'] = round(time.monotonic() - began, 1)
        return self._steps[key]

    def shares(self, segment_us: float) -> dict[tuple[str, str], dict[str, Any]]:
        """Of each step and form, the shares of its kernels' time."""
        return {key: forms.shares(compiled_steps.kernels_us(step), self.twins.get(key, ()), segment_us)
                for key, step in self._steps.items()}


class FormsRow(unprepared.Row):
    """A service beside the forms of a step."""

    made: Made
    phases: Phases
    rows: list[dict[str, Any]]

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> type[FormsRow]:
        """The kind of one process, whose rows share the steps and the limit."""
        return type('ProcessRow', (cls,), {'made': Made(arguments.search), 'phases': Phases(arguments.limit_s),
                                           'rows': []})

    @classmethod
    def finish(cls, arguments: argparse.Namespace) -> None:
        """Adds the shares to all rows, in the file too, and prints one table. Nothing is measured behind it."""
        with cls.phases.phase('shares of the kernels'):
            shares = cls.made.shares(arguments.segment_us)
        for row in cls.rows:
            for form, facts in row['forms'].items():
                facts['shares'] = shares[row['step'], form]
        if arguments.out and cls.rows:
            path = pathlib.Path(arguments.out)
            report = {**json.loads(path.read_text(encoding='utf-8')), 'rows': cls.rows}
            path.write_text(json.dumps(report, indent=1) + '\n', encoding='utf-8')
        cells = forms.cells_of({'rows': cls.rows})
        print('\n'.join((*(f'{step}_{form}: {found}' for (step, form), found in shares.items()),
                         *forms.table(cells), *forms.verdicts(cells))))

    def measure(self, greens: dict[str, Any]) -> dict[str, Any]:
        given, chosen = self.arguments, forms.chosen(self.arguments.forms)
        name = f'{self.service.name} + {self.step_name}'
        with self.phases.phase(f'{name}: compiled'):
            steps = {form.name: self.made.step(self.step_name, form) for form in chosen}
        with self.phases.phase(f'{name}: alone'):
            made, self.absent = self._ways(None, {})
            self.solo_ns = made[ALONE].solo()
            alone_ns = {form.name: self._alone_ns(form.name, steps[form.name]) for form in chosen}
        self.step_ns = min(alone_ns.values())  # every form's BE counts against the fastest one
        self.left_out: list[str] = []
        with contextlib.ExitStack() as stack:
            facts, trainings = dict[str, dict[str, Any]](), dict[str, Any]()
            for form in chosen:
                began = time.monotonic()
                with self.phases.phase(f'{name}: registration of {form.name}'):
                    trainings[form.name] = stack.enter_context(self._training(form, steps[form.name]))
                facts[form.name] = {'registered_s': round(time.monotonic() - began, 2),
                                    **self._facts(form, trainings[form.name], alone_ns[form.name])}
            with self.phases.phase(f'{name}: runs'), undisturbed():
                self._runs(made[ALONE], trainings)
            for form in chosen:
                facts[form.name].update(self._behind(steps[form.name], trainings[form.name]))
        row = {'service': self.service.name, 'step': self.step_name, 'load': given.load, 'seed': given.seed,
               'solo_us': round(self.solo_ns / 1e3, 1), 'step_us': round(self.step_ns / 1e3, 1),
               'forms': facts, 'bits': self._bits(steps), 'compiled_s': self.made.compiled_s,
               'left_out': self.left_out, 'conditions': {one: self._of_idle(self._summary(one)) for one in self.runs}}
        self.rows.append(row)
        return row

    def _alone_ns(self, name: str, step: Any) -> float:
        """Of the form's whole graph, replayed back to back."""
        way = Way(name, self.service.call, step, (torch.cuda.Stream(), torch.cuda.Stream()))
        return way.rate(max(3, int(unprepared.RATE_S * 1e9 / way.rate(3))))

    def _training(self, form: Form, step: Any) -> Any:
        return gpushare.torch.Training(
            self.service.sharing.runtime, step, state=step.state,
            name=f'{self.service.name}-{self.step_name}-{form.name}',
            kernel_options={'node_twins': form.twins, 'segment_ns': self.arguments.segment_us * 1000})

    def _facts(self, form: Form, training: Any, alone_ns: float) -> dict[str, Any]:
        runtime = self.service.sharing.runtime
        info = runtime.kernel_info(training.name)
        twins = gpushare.triton.twins(runtime)
        if form.twins:
            self.made.twins[self.step_name, form.name] = {twin.name for twin in twins if twin.state == 'made'}
        return {'step_us': round(alone_ns / 1e3, 1), 'nodes': info.node_count, 'segments': info.segment_count,
                'evictable_segments': info.evictable_segments, 'longest_us': round(info.longest_segment_ns / 1e3, 1),
                'whole_reason': info.whole_reason, 'unconfinable': training.unconfinable,
                'twins': {state: sum(twin.state == state for twin in twins) for state in
                          sorted({twin.state for twin in twins})} if form.twins else {}}

    def _runs(self, bare: Way, trainings: dict[str, Any]) -> None:
        given = self.arguments
        count = given.queries // given.rounds
        beside = [(promise, form) for promise in given.promises.split(',') for form in trainings]
        for number in range(given.rounds):
            arrivals = poisson(1000 * given.seed + number, count, self.solo_ns / given.load)
            run_s = arrivals[-1] / 1e9 + RUN_S
            if not self._has_room(ALONE, number, run_s):
                continue
            self.service.answer.fill_(float('nan'))
            self._keep(ALONE, bare.run(arrivals))
            self.service.check(ALONE)
            if number == 0:
                self.p99_alone_ns = int(quantile(self.runs[ALONE][0]['latencies'], 0.99))
            for promise, form in turned(beside, number):
                name = f'library {promise} {form}'
                if self._has_room(name, number, run_s):
                    self._library(name, arrivals, promise, trainings[form])

    def _has_room(self, name: str, number: int, seconds: float) -> bool:
        """Once a run has no room, no later one has: so the runs of a condition are of its first rounds."""
        if self.left_out or not self.phases.has_room(seconds):
            self.left_out.append(f'{name}, round {number}')
            return False
        return True

    def _behind(self, step: Any, training: Any) -> dict[str, Any]:
        """What is known behind the runs: the rate through the library alone, and whether the losses are finite."""
        runs = max(8, int(unprepared.RATE_S * 1e9 / self.step_ns))
        library_ns = self.service.sharing.rate(training, runs)
        torch.cuda.synchronize()
        losses = step.losses[:min(int(step.count.item()), unprepared.LOSSES_MAX - 1)]
        return {'be_alone': round(self.step_ns / library_ns, 4), 'steps': len(losses),
                'finite': bool(losses.isfinite().all().item())}

    @staticmethod
    def _bits(steps: dict[str, Any]) -> dict[str, int]:
        """Losses of the twins that are not those of the same code in segments. Empty if not both ran."""
        if 'twins' not in steps or 'segments' not in steps:
            return {}
        both = min(*(int(steps[name].count.item()) for name in ('segments', 'twins')), unprepared.LOSSES_MAX - 1)
        left, right = (steps[name].losses[:both].view(torch.int32) for name in ('segments', 'twins'))
        return {'compared': both, 'differ': int((left != right).sum().item())}

    @staticmethod
    def _of_idle(found: dict[str, Any]) -> dict[str, Any]:
        if 'be' in found:
            found['be_of_idle'] = round(found['be'] / (1 - found['load']), 4)
        return found

    @staticmethod
    def is_right(row: dict[str, Any]) -> bool:
        """A compiled step often adds by atomics, so that losses that differ are shown and are no failure."""
        return all(facts['finite'] for facts in row['forms'].values())

    @staticmethod
    def show(row: dict[str, Any]) -> None:
        print(f"{row['service']} beside {row['step']}: query {row['solo_us']} us, fastest step {row['step_us']} us, "
              f"compiled in {row['compiled_s']} s, losses of twins against segments {row['bits']}, left out "
              f"{row['left_out'] or 'nothing'}")
        for name, facts in row['forms'].items():
            print(f'  {name}: {facts}')
        print('\n'.join(forms.table(forms.cells_of({'rows': [row]}))), flush=True)
