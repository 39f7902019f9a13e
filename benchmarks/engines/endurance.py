#!/usr/bin/env python3
"""An engine beside BE jobs for minutes at changing load: nothing lost, memory flat, the same tokens.

  endurance.py [--seconds 540] [--phase-s 30] [--jobs lora,vit] [--bound 1.05] [--out FILE]

Phases of --phase-s follow one another with loads 0.3, 0.5 and 0.7 of Poisson requests, then of Azure's conversations
(GPUSHARE_DATA; left out where it is not set), again and again until --seconds have passed. All jobs run all the time.
First bare PyTorch serves some seconds of each load without jobs: what the p99s are over.

Checked: each request got all its tokens; each step and each BE step ended with VERDICT_OK; the first steps of each
phase, replayed by bare PyTorch, give the same tokens; the memory of the device and of the process does not grow behind
the first two phases. Exit code 0: all of it holds; 1: it does not; 2: bad use; 77: there is no GPU or no PyTorch.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import sys
import time
from typing import Any

import engines
from plan import Case
from watch import LOST, Watch, grown, verdict

LOADS = (0.3, 0.5, 0.7)
BARE_S = 4.0  # of arrivals, of each load
CHECK_STEPS = 200  # of a phase
SETTLED_PHASES = 2  # behind which memory may not grow


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--model', choices=('1b', '8b'), default='1b')
    parser.add_argument('--jobs', default='lora,vit', help='of lora, gpt2c, vit, eager')
    parser.add_argument('--bound', type=float, default=1.05)
    parser.add_argument('--seconds', type=float, default=540.0, help='of the whole run behind its preparation')
    parser.add_argument('--phase-s', type=float, default=45.0)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--out', type=pathlib.Path)
    given = parser.parse_args(arguments)
    if not 0 < given.phase_s <= given.seconds:
        parser.error(f'A phase has {given.phase_s} s, and the run has {given.seconds} s.')
    return given


class Endurance(engines.Bench):
    """The engine and the jobs of engines.py, of which all run at once."""

    def __init__(self, given: argparse.Namespace, own: argparse.Namespace) -> None:
        super().__init__(given)
        self.own = own
        self.report['experiment'], self.report['phases'] = 'engines endurance', []

    def measure(self) -> bool:
        jobs, library = self.prepared()
        self.bare = self.rounds_of(self.engine, library, jobs, CHECK_STEPS, 'steps', False)
        cases, self.given.seconds = self.given.cases, BARE_S
        for number, case in enumerate(cases):
            self.served_bare(case, number)
        self.given.seconds = self.own.phase_s
        self.watch = Watch()
        with self.watch, contextlib.ExitStack() as beside:
            feeders = {name: beside.enter_context(self.feeder(job, library)) for name, job in jobs.items()}
            library.open(self.promise(library))
            until = time.monotonic() + self.own.seconds
            for number, case in enumerate(itertools.cycle(cases)):
                if time.monotonic() + self.own.phase_s > until:
                    break
                self.phase(number, case, library, feeders)
            self.report['got'] = library.guarantee()
            self.report['stats'] = {'engine': counts(library.app)}
            library.close_app()
        return self.judged(jobs, library, feeders)

    def served_bare(self, case: Case, number: int) -> None:
        from bare import Bare
        from loop import serve
        from timing import figures
        requests, prompts = self.drawn(case, 900 + number)
        runner = Bare(self.engine)
        with self.phases.phase(f'bare, {case.name}'), runner.current():
            run = serve(requests, prompts, self.engine.batching(), runner)
        self.report.setdefault('bare', {})[case.name] = figures([run])
        self.report.setdefault('bare_steps_ns', []).extend(end - begin for _, begin, end in run.steps)

    def promise(self, library: Any) -> Any:
        from arrivals import quantile
        from library import Promise
        steps = self.report.pop('bare_steps_ns')
        return Promise(self.own.bound, int(quantile(steps, 0.99)), int(quantile(steps, 0.5)))

    def feeder(self, job: Any, library: Any) -> Any:
        from beside import Held, Submitted
        return Submitted(job.training, library.clock_offset) if job.training is not None \
            else Held(job.step, library.runtime)

    def phase(self, number: int, case: Case, library: Any, feeders: dict[str, Any]) -> None:
        from loop import serve
        from timing import active_share, figures, over
        requests, prompts = self.drawn(case, number)
        library.log.begin(CHECK_STEPS)
        with self.phases.phase(f'phase {number}, {case.name}'):
            run = serve(requests, prompts, self.engine.batching(), library)
        found = figures([run])
        end = run.start_ns + run.window_ns
        row = {'phase': number, 'case': case.name, 'submitted': len(requests), **found,
               'complete': sum(len(line.times_ns) == line.request.output for line in run.lines),
               'over_bare': over(found, self.report['bare'][case.name]), 'idle': round(1 - active_share(run), 4),
               'be_steps': {name: one.within(run.start_ns, end) for name, one in feeders.items()},
               'tokens_checked': self.bare.replayed(library.log), **self.watch.now()}
        self.report['phases'].append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)

    def judged(self, jobs: dict[str, Any], library: Any, feeders: dict[str, Any]) -> bool:
        from jobs import health
        rows, memory = self.report['phases'], self.watch.samples
        self.report.update(memory=memory, health={name: health(job.step) for name, job in jobs.items()},
                           be_steps={name: len(one.ends_ns) for name, one in feeders.items()},
                           growth=grown(memory, rows[SETTLED_PHASES - 1]['at_s'] if len(rows) > SETTLED_PHASES else 0))
        self.report['stats'].update({name: counts(job.training.app) for name, job in jobs.items()
                                     if job.training is not None})
        self.report['wrong'] = verdict(self.report)
        with self.phases.phase('end of the library'):
            library.close()
        return not self.report['wrong']


    def print(self) -> None:
        for row in self.report['phases']:
            ratios = row['over_bare']
            print(f"phase {row['phase']}, {row['case']}: {row['complete']} of {row['submitted']} requests; p99 over "
                  f"bare {ratios.get('tbt_p99')} (TBT), {ratios.get('ttft_p99')} (TTFT); BE {row['be_steps']}, idle "
                  f"{row['idle']}; device {row['device_mib']} MiB, host {row['host_mib']} MiB")
        print(f"apps: {self.report['stats']}; growth: {self.report['growth']}")
        print(f"wrong: {self.report['wrong'] or 'nothing'}")


def counts(app: Any) -> dict[str, int]:
    """What an app submitted, and how it ended."""
    stats = app.stats()
    return {name: getattr(stats, name) for name in ('submitted', 'completed', *LOST)}


def main() -> int:
    own = parsed()
    laws = 'poisson,azure' if os.environ.get('GPUSHARE_DATA') else 'poisson'
    given = engines.parsed(['--model', own.model, '--jobs', own.jobs, '--load', ','.join(map(str, LOADS)),
                            '--requests', laws, '--conditions', f'library,library:{own.bound}',
                            '--seed', str(own.seed)] + (['--out', str(own.out)] if own.out else []))
    return engines.run(given, lambda options: Endurance(options, own))


if __name__ == '__main__':
    sys.exit(main())
