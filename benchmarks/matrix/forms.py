#!/usr/bin/env python3
"""The forms of a compiled training step, and what they are compared by. Needs no GPU and no PyTorch.

  forms.py FILE...    one table of the reports of services.py --forms and of engines.py beside forms

BE of every form counts against the form that is fastest alone, so that a template that is slower than cuBLAS pays for
it. The idle share is what the service leaves.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

GOAL_BE = 0.9  # of the idle share


@dataclasses.dataclass(frozen=True)
class Form:
    """How a step runs. Products are templates, or cuBLAS's; long nodes have twins, or run in segments alone."""

    name: str
    templates: bool
    twins: bool


# In the order of their registration: a twin that the runtime has of a kernel counts for every graph behind it.
FORMS = (Form('cublas', False, False), Form('segments', True, False), Form('twins', True, True))


def chosen(words: str) -> list[Form]:
    """Those of a list such as 'cublas,twins', in the order of their registration."""
    by_name = {form.name: form for form in FORMS}
    wanted = words.split(',')
    for word in wanted:
        if word not in by_name:
            raise ValueError(f"'{word}' is no form. There are {', '.join(by_name)}.")
    return [form for form in FORMS if form.name in wanted]


def in_order(jobs: Sequence[str]) -> list[str]:
    """The same jobs, forms with twins last: a twin of a kernel counts for every graph that is registered behind it."""
    return sorted(jobs, key=has_twins)


def split(job: str) -> tuple[str, str]:
    """Step and form of a job such as 'gpt2_twins'; ('', '') if it is none."""
    step, _, form = job.rpartition('_')
    return (step, form) if step and form in {one.name for one in FORMS} else ('', '')


def has_twins(job: str) -> bool:
    return split(job)[1] in {form.name for form in FORMS if form.twins}


def shares(kernels: Sequence[tuple[str, float]], twins: Collection[str], segment_us: float) -> dict[str, Any]:
    """Which part of a step's kernel time is in kernels that have a twin, and in those that are evicted in the middle.

    kernels: names and times. A node is evicted in the middle if it is longer than a segment. A kernel counts by its
    name, which different codes share (triton_mm): if one of them has a twin, all count. One whose block tasks all run
    at once counts too. So the shares with a twin are upper bounds, and those without are lower bounds:
    `evictable_segments` has the nodes that really are evicted.
    """
    total = sum(us for _, us in kernels)
    if not total:
        return {}
    with_twin = [us for name, us in kernels if name in twins]
    without = [us for name, us in kernels if name not in twins]
    return {'with_twin_at_most_by_name': _share(with_twin, total),
            'evictable_at_most_by_name': _share(_long(with_twin, segment_us), total),
            'long_without_twin_at_least_by_name': _share(_long(without, segment_us), total),
            'longest_without_twin_at_least_us': round(max(without, default=0.0), 1)}


def _long(times: Iterable[float], segment_us: float) -> list[float]:
    return [us for us in times if us > segment_us]


def _share(times: Iterable[float], total: float) -> float:
    return round(sum(times) / total, 4)


def against_fastest(rows: Iterable[dict[str, Any]], rates: Mapping[str, float]) -> None:
    """Adds to an engine's rows beside forms of a step what BE is over the step's fastest form alone.

    rates: steps a second of each job alone, without the library.
    """
    for row in rows:
        step, _ = split(row.get('job', ''))
        if not step or 'be_steps' not in row or not row.get('be_limit'):
            continue
        fastest = max(rate for job, rate in rates.items() if split(job)[0] == step)
        be = row['be_steps'] / (row['window_s'] * fastest)
        row['be_of_fastest'] = round(be, 4)
        row['be_of_idle'] = round(be / row['be_limit'], 4)


@dataclasses.dataclass(frozen=True)
class Cell:
    """A service beside a form of a step under a bound: what is judged."""

    lc: str
    step: str
    form: str
    bound: float
    p99: float  # over bare, the worst of those that the bound counts
    be: float  # over the fastest form alone
    of_idle: float
    evictable: float | None  # share of the step's kernel time, at most: by name

    @property
    def kept(self) -> bool:
        return self.p99 <= self.bound


def cells_of(report: dict[str, Any]) -> list[Cell]:
    """Those of a report of services.py --forms or of engines.py."""
    if report.get('experiment') == 'engines':
        return [cell for row in report['rows'] for cell in _engine_cell(row, report['jobs'])]
    return [cell for row in report.get('rows', []) if 'forms' in row for cell in _service_cells(row)]


def _service_cells(row: dict[str, Any]) -> list[Cell]:
    cells = []
    lc = row['service'] + (' (partial row)' if 'partial' in row else '')
    for name, found in row['conditions'].items():
        if 'be_of_idle' in found:
            _, bound, form = name.split(' ')
            cells.append(Cell(lc, row['step'], form, float(bound), found['p99_over_alone'], found['be'],
                              found['be_of_idle'], _evictable(row['forms'][form])))
    return cells


def _engine_cell(row: dict[str, Any], jobs: Mapping[str, dict[str, Any]]) -> list[Cell]:
    if 'be_of_idle' not in row:
        return []
    step, form = split(row['job'])
    ratios = row['over_bare']
    return [Cell('LLM engine', step, form, row['bound'], max(ratios['tbt_p99'], ratios['ttft_p99']),
                 row['be_of_fastest'], row['be_of_idle'], _evictable(jobs[row['job']]))]


def _evictable(facts: Mapping[str, Any]) -> float | None:
    return facts.get('shares', {}).get('evictable_at_most_by_name')


def table(cells: Iterable[Cell]) -> list[str]:
    """Lines of Markdown."""
    lines = ['| LC | step | form, bound | p99 over bare | BE of the fastest form | of the idle share '
             '| evictable (at most, by name) |',
             '| --- | --- | --- | --- | --- | --- | --- |']
    for one in cells:
        evictable = '-' if one.evictable is None else f'{one.evictable:.3f}'
        lines.append(f'| {one.lc} | {one.step} | {one.form}, {one.bound:.2f} | {one.p99:.3f} | {one.be:.3f} '
                     f'| {one.of_idle:.3f} | {evictable} |')
    return lines


def verdicts(cells: Sequence[Cell]) -> list[str]:
    """For each form and bound: in how many cells p99 keeps the bound, and BE reaches the goal as well."""
    lines = []
    for form, bound in sorted({(one.form, one.bound) for one in cells}):
        some = [one for one in cells if (one.form, one.bound) == (form, bound)]
        kept = [one for one in some if one.kept]
        enough = [one for one in kept if one.of_idle >= GOAL_BE]
        lines.append(f'{form} {bound:.2f}: kept in {len(kept)} of {len(some)}, with BE of {GOAL_BE} of the idle share '
                     f'in {len(enough)}')
    return lines


def main() -> int:
    cells = [cell for path in sys.argv[1:] for cell in cells_of(json.loads(pathlib.Path(path).read_text('utf-8')))]
    print('\n'.join((*table(cells), *verdicts(cells))))
    return 0 if cells else 2


if __name__ == '__main__':
    sys.exit(main())
