"""Rows of services.py --forms: a service beside each form of a compiled training step, in turns on the same arrivals.

Each round runs bare first, then every form under every bound; the next round begins with another of them. A form's
step is made once in the process, for all services. No compilation, registration or run begins that would end behind
--limit-s. How long the first two take is a guess, so the file has what was measured in front of each: a process that is
ended from outside leaves a row that is marked 'partial'. PyTorch's profiler, which may slow later launches, runs behind
all rows.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from typing import Any

import compiled_steps
import forms
import torch
import unprepared
from arrivals import poisson, quantile, queries_of_round
from baselines import Way, undisturbed
from forms import Form
from plan import Phases, turned

import gpushare.torch
import gpushare.triton

RUN_S = 0.7  # of a run beyond its arrivals: an app, the last query, the answer's check
# Guesses: none was measured on a GPU. A form that has no room is left out.
COMPILATION_S = 20.0
REGISTRATION_S = 10.0
BEFORE_S = 20.0  # what a row takes in front of its runs, if its steps are compiled already
ALONE = 'alone'


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--forms', default='', metavar='LIST', help='rows of compiled steps in these forms, of '
                        f'{",".join(form.name for form in forms.FORMS)}')
    parser.add_argument('--search', choices=tuple(compiled_steps.SEARCHES), default='short', help='which forms of a '
                        'product the compilation times; full takes several times as long')
    parser.add_argument('--segment-us', type=int, default=100, help='of a segment')
    parser.add_argument('--limit-s', type=float, default=290.0, help='no compilation, registration or run begins '
                        'that would end later')


class Made:
    """The steps of the process by step and form, each with what was measured of it alone."""

    def __init__(self, search: str) -> None:
        self._search = search
        self._steps: dict[tuple[str, str], Any] = {}
        self.twins: dict[tuple[str, str], set[str]] = {}  # names of kernels of which a code has one
        self.compiled_s: dict[str, float] = {}

    def has(self, name: str, form: Form) -> bool:
        return (name, form.name) in self._steps

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
        unprepared.write(arguments, cls.rows)
        cells = forms.cells_of({'rows': cls.rows})
        print('\n'.join((*(f'{step}_{form}: {found}' for (step, form), found in shares.items()),
                         *forms.table(cells), *forms.verdicts(cells))))

    @classmethod
    def kept(cls, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return cls.rows  # with those that failed in the middle

    def measure(self, greens: dict[str, Any]) -> dict[str, Any]:
        given, chosen = self.arguments, forms.chosen(self.arguments.forms)
        name = f'{self.service.name} + {self.step_name}'
        self.left_out: list[str] = []
        self.out_of_time = False  # for a run
        self.row: dict[str, Any] = {
            'service': self.service.name, 'step': self.step_name, 'load': given.load, 'seed': given.seed, 'forms': {},
            'bits': {}, 'compiled_s': self.made.compiled_s, 'left_out': self.left_out, 'conditions': {}}
        self.rows.append(self.row)
        with self.phases.phase(f'{name}: compiled'):
            steps = self._compiled(chosen)
        with self.phases.phase(f'{name}: alone'):
            made = self._ways(None, {})
            self.solo_ns = made[ALONE].solo()
            alone_ns = {one: self._alone_ns(one, step) for one, step in steps.items()}
        # Every form's BE counts against the fastest one. Without a form there is no BE.
        self.step_ns = min(alone_ns.values(), default=0.0)
        self.row.update(solo_us=round(self.solo_ns / 1e3, 1), step_us=round(self.step_ns / 1e3, 1))
        with contextlib.ExitStack() as stack:
            trainings = dict[str, Any]()
            for form in chosen:
                if form.name not in steps or not self._begins(f'{form.name}: registration', REGISTRATION_S):
                    continue
                began = time.monotonic()
                with self.phases.phase(f'{name}: registration of {form.name}'):
                    trainings[form.name] = stack.enter_context(self._training(form, steps[form.name]))
                self.row['forms'][form.name] = {'registered_s': round(time.monotonic() - began, 2),
                                                **self._facts(form, trainings[form.name], alone_ns[form.name])}
            with self.phases.phase(f'{name}: runs'), undisturbed():
                self._runs(made[ALONE], trainings)
            self._write('what is known behind the runs')
            for one, training in trainings.items():
                self.row['forms'][one].update(self._behind(steps[one], training))
        self.row['bits'] = self._bits({one: steps[one] for one in trainings})
        del self.row['partial']
        return self.row

    def _compiled(self, chosen: list[Form]) -> dict[str, Any]:
        """The steps by form, without those whose compilation has no room."""
        return {form.name: self.made.step(self.step_name, form) for form in chosen
                if self.made.has(self.step_name, form) or self._begins(f'{form.name}: compilation', COMPILATION_S)}

    def _begins(self, what: str, seconds: float) -> bool:
        """Whether there is room for what comes now. What was measured in front of it is in the file then."""
        if not self.phases.has_room(seconds):
            self.left_out.append(what)
            return False
        self._write(what)
        return True

    def _write(self, what: str) -> None:
        """Writes the row as it is, marked with what comes now: a process that is ended in it loses that alone."""
        self.row['conditions'] = {one: self._summary(one) if one == ALONE else self._of_idle(self._summary(one))
                                  for one in self.runs}
        self.row['partial'] = what
        unprepared.write(self.arguments, self.rows)

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
                          sorted({twin.state for twin in twins})} if form.twins else {},
                'no_twins': [[twin.name, twin.reason] for twin in twins if twin.reason] if form.twins else []}

    def _runs(self, bare: Way, trainings: dict[str, Any]) -> None:
        given = self.arguments
        gap_ns = self.solo_ns / given.load
        count = queries_of_round(given.queries, given.rounds, gap_ns, given.window_s)
        beside = [(promise, form) for promise in given.promises.split(',') for form in trainings]
        for number in range(given.rounds):
            arrivals = poisson(1000 * given.seed + number, count, gap_ns)
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
        what = f'{name}, round {number}'
        if self.out_of_time:
            self.left_out.append(what)
            return False
        self.out_of_time = not self._begins(what, seconds)
        return not self.out_of_time

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
        found['be_of_idle'] = round(found['be'] / (1 - found['load']), 4)
        return found

    @staticmethod
    def is_right(row: dict[str, Any]) -> bool:
        """A compiled step often adds by atomics, so that losses that differ are shown and are no failure.

        A row that had no time for any form is none that was measured.
        """
        return bool(row['forms']) and all(facts['finite'] for facts in row['forms'].values())

    @staticmethod
    def show(row: dict[str, Any]) -> None:
        print(f"{row['service']} beside {row['step']}: query {row['solo_us']} us, fastest step {row['step_us']} us, "
              f"compiled in {row['compiled_s']} s, losses of twins against segments {row['bits']}, left out "
              f"{row['left_out'] or 'nothing'}")
        for name, facts in row['forms'].items():
            print(f'  {name}: {facts}')
        print('\n'.join(forms.table(forms.cells_of({'rows': [row]}))), flush=True)
