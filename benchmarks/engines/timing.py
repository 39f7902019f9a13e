"""What users of an engine feel: time to the first token, time between tokens. And the tables. Needs no PyTorch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

from arrivals import quantile
from loop import Run

RATIO_GOAL, BE_GOAL = 1.05, 0.9  # of p99 over bare's, at most; of BE over its limit, at least
WIDTH = 38  # of a condition's name in a table
BE_GOALS = {'eager': 0.75}  # of jobs whose goal is another one


def first_token_ns(run: Run) -> list[int]:
    """TTFT of each request: from its arrival to its first token."""
    return [line.times_ns[0] - line.request.arrival_ns for line in run.lines]


def between_tokens_ns(run: Run) -> list[int]:
    """TBT: the distances between the tokens of each request."""
    return [after - before for line in run.lines for before, after in itertools.pairwise(line.times_ns)]


def step_ns(run: Run, kind: str) -> list[int]:
    """Times of the steps whose name begins so: 'd' decode, 'p' prefill, '' all."""
    return [end - begin for name, begin, end in run.steps if name.startswith(kind)]


def active_share(run: Run) -> float:
    """The share of the window in which a request was active: from its arrival to its last token."""
    spans = sorted((line.request.arrival_ns, line.times_ns[-1]) for line in run.lines)
    active, until = 0, 0
    for begin, end in spans:
        active += max(0, end - max(begin, until))
        until = max(until, end)
    return active / run.window_ns if run.window_ns else 0.0


def figures(runs: Sequence[Run]) -> dict[str, Any]:
    """Quantiles over all runs, in us, and the share of the time with an active request."""
    found: dict[str, Any] = {
        'runs': len(runs), 'requests': sum(len(run.lines) for run in runs),
        'tokens': sum(len(line.times_ns) for run in runs for line in run.lines),
        'window_s': round(sum(run.window_ns for run in runs) / 1e9, 3),
        'active': round(_mean_share(runs), 4)}
    for name, values, shares in (
            ('tbt', [one for run in runs for one in between_tokens_ns(run)], (0.5, 0.99)),
            ('ttft', [one for run in runs for one in first_token_ns(run)], (0.5, 0.99)),
            ('step', [one for run in runs for one in step_ns(run, 'd')], (0.5, 0.99)),
            ('prefill', [one for run in runs for one in step_ns(run, 'p')], (0.5, 0.99))):
        for share in shares:
            if values:
                found[f'{name}_p{share * 100:.0f}_us'] = round(quantile(values, share) / 1e3, 1)
    return found


def _mean_share(runs: Sequence[Run]) -> float:
    window = sum(run.window_ns for run in runs)
    return sum(active_share(run) * run.window_ns for run in runs) / window if window else 0.0


def over(found: dict[str, Any], bare: dict[str, Any]) -> dict[str, float]:
    """The ratio of each time to bare's."""
    return {name.removesuffix('_us'): round(value / bare[name], 4) for name, value in found.items()
            if name.endswith('_us') and bare.get(name)}


def goals(rows: Iterable[dict[str, Any]]) -> dict[str, int]:
    """How many rows of the library beside a job meet each goal, and all three.

    A row that failed meets none, and neither does one whose tokens differ. What was not measured is not met.
    """
    beside = [row for row in rows if row.get('job') and row.get('way') in ('library', 'query')]
    met = {'tbt_p99': [_right(row) and _ratio(row, 'tbt_p99') <= RATIO_GOAL for row in beside],
           'ttft_p99': [_right(row) and _ratio(row, 'ttft_p99') <= RATIO_GOAL for row in beside],
           'be': [_right(row) and (row.get('be_of_limit') or 0) >= BE_GOALS.get(row['job'], BE_GOAL) for row in beside]}
    return {'rows': len(beside), **{name: sum(found) for name, found in met.items()},
            'all': sum(map(all, zip(*met.values(), strict=True)))}


def _right(row: dict[str, Any]) -> bool:
    return 'failed' not in row and not row.get('token_check', {}).get('differ')


def _ratio(row: dict[str, Any], name: str) -> float:
    return float(row.get('over_bare', {}).get(name, math.inf))


def table(rows: Iterable[dict[str, Any]]) -> str:
    """One line a row: ratios over bare, and BE beside its limit."""
    lines = [f'{"condition":<{WIDTH}} {"tbt p50":>8} {"tbt p99":>8} {"ttft p99":>8} {"step p99":>8} {"BE":>6} '
             f'{"limit":>6}  tokens that differ']
    for row in rows:
        ratios = row.get('over_bare', {})
        cells = ' '.join(f'{ratios[name]:8.3f}' if name in ratios else f'{"-":>8}'
                         for name in ('tbt_p50', 'tbt_p99', 'ttft_p99', 'step_p99'))
        be = f'{row["be"]:6.3f}' if 'be' in row else f'{"-":>6}'
        limit = f'{row["be_limit"]:6.3f}' if 'be_limit' in row else f'{"-":>6}'
        check = row.get('token_check')
        end = row.get('failed') or (f'{check["differ"]} of {check["tokens"]}' if check else '-')
        lines.append(f'{row["condition"]:<{WIDTH}} {cells} {be} {limit}  {end}')
    return '\n'.join(lines)
