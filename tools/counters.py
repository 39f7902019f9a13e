#!/usr/bin/env python3
"""Counts what the kernels of the catalogue do, by ncu, into a samples file (docs/samples.md).

  counters.py PROGRAM --samples FILE [--ncu NCU] [-- ARGUMENTS...]

PROGRAM is counters_benchmark. Each launch that it announces becomes a row of counters: numbers of one launch, and
shares of peak between 0 and 1. Metrics that this GPU or this ncu does not know are left out, and named.
Exit code 0: rows were appended; 1: ncu or the program failed, and nothing was.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import pathlib
import subprocess
import sys
import tempfile

PEAK = '.avg.pct_of_peak_sustained_elapsed'
SHARE = 0.01  # from per cent to a share
VALUE_MAX = 1e18  # the largest that a reader accepts
LAUNCH = 'launch__'  # metrics of the launch itself: ncu always has them, and its query does not list them

# Each counter: alternative lists of metrics, and a factor. The first list whose metrics are all known is summed.
COUNTERS: dict[str, tuple[list[list[str]], float]] = {
    'duration_ns': ([['gpu__time_duration.sum']], 1),
    'cycles': ([['sm__cycles_elapsed.max']], 1),
    'instructions': ([['smsp__inst_executed.sum']], 1),
    'thread_instructions': ([['smsp__thread_inst_executed.sum']], 1),
    'global_instructions': ([['smsp__inst_executed_op_global_ld.sum', 'smsp__inst_executed_op_global_st.sum'],
                             ['smsp__sass_inst_executed_op_global_ld.sum',
                              'smsp__sass_inst_executed_op_global_st.sum']], 1),
    'shared_instructions': ([['smsp__inst_executed_op_shared.sum'],
                             ['smsp__inst_executed_op_shared_ld.sum', 'smsp__inst_executed_op_shared_st.sum'],
                             ['smsp__sass_inst_executed_op_shared.sum']], 1),
    'async_copies': ([['smsp__inst_executed_op_ldgsts.sum'], ['smsp__sass_inst_executed_op_ldgsts.sum']], 1),
    'global_requests': ([['l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum',
                          'l1tex__t_requests_pipe_lsu_mem_global_op_st.sum']], 1),
    'global_sectors': ([['l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum',
                         'l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum']], 1),
    'l2_sectors': ([['lts__t_sectors.sum']], 1),
    'dram_bytes': ([['dram__bytes.sum'], ['dram__bytes_read.sum', 'dram__bytes_write.sum']], 1),
    'dram_read_bytes': ([['dram__bytes_read.sum']], 1),
    'dram_write_bytes': ([['dram__bytes_write.sum']], 1),
    'threads': ([['launch__block_size']], 1),  # of a block
    'registers': ([['launch__registers_per_thread']], 1),
    'shared_bytes': ([['launch__shared_mem_per_block']], 1),  # static, dynamic and the driver's
    'l1_hits': ([['l1tex__t_sector_hit_rate.pct']], SHARE),
    'l2_hits': ([['lts__t_sector_hit_rate.pct']], SHARE),
    'warps': ([['sm__warps_active.avg.pct_of_peak_sustained_active']], SHARE),
    'issue': ([['smsp__issue_active' + PEAK], ['sm__inst_issued' + PEAK]], SHARE),
    'fma': ([['sm__pipe_fma_cycles_active' + PEAK], ['sm__inst_executed_pipe_fma' + PEAK]], SHARE),
    'alu': ([['sm__pipe_alu_cycles_active' + PEAK], ['sm__inst_executed_pipe_alu' + PEAK]], SHARE),
    'tensor': ([['sm__pipe_tensor_cycles_active' + PEAK], ['sm__inst_executed_pipe_tensor' + PEAK]], SHARE),
    'tensor_hmma': ([['sm__pipe_tensor_op_hmma_cycles_active' + PEAK]], SHARE),
    'tensor_gmma': ([['sm__pipe_tensor_op_gmma_cycles_active' + PEAK],
                     ['sm__inst_executed_pipe_tensor_op_gmma' + PEAK]], SHARE),
    'special': ([['sm__inst_executed_pipe_xu' + PEAK], ['sm__pipe_xu_cycles_active' + PEAK]], SHARE),
    'lsu': ([['sm__inst_executed_pipe_lsu' + PEAK]], SHARE),
    'shared': ([['l1tex__data_pipe_lsu_wavefronts_mem_shared' + PEAK]], SHARE),
    'l1': ([['l1tex__throughput' + PEAK]], SHARE),
    'l2': ([['lts__throughput' + PEAK]], SHARE),
    'dram': ([['dram__throughput' + PEAK], ['gpu__dram_throughput' + PEAK]], SHARE),
}


def known_metrics(ncu: str) -> set[str]:
    """The base names that this ncu knows on this GPU; empty: it does not tell."""
    query = subprocess.run([ncu, '--query-metrics'], capture_output=True, text=True, check=False)
    return {line.split()[0] for line in query.stdout.splitlines() if '__' in line.split(' ')[0]}


def chosen_metrics(known: set[str]) -> dict[str, list[str]]:
    """For each counter the metrics whose sum it is."""
    chosen = {}
    for counter, (alternatives, _) in COUNTERS.items():
        for metrics in alternatives:
            if not known or all(metric.startswith(LAUNCH) or metric.split('.')[0] in known for metric in metrics):
                chosen[counter] = metrics
                break
    return chosen


def parsed_rows(text: str) -> list[dict[str, str]]:
    """The launches of a raw page: a line of names, one of units, one for each launch."""
    lines = [line for line in text.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(io.StringIO('\n'.join(lines))))
    return rows[1:]


def counters_of(row: dict[str, str], chosen: dict[str, list[str]]) -> list[dict[str, object]]:
    counters: list[dict[str, object]] = []
    for counter, metrics in chosen.items():
        texts = [row.get(metric, '').replace(',', '') for metric in metrics]
        try:
            value = sum(float(text) for text in texts)
        except ValueError:
            continue  # n/a: the kernel has none of it
        if not 0 <= value <= VALUE_MAX:
            continue  # nan among them
        counters.append({'name': counter, 'value': round(value * COUNTERS[counter][1], 6)})
    return counters


def announced_counters(one: dict[str, object]) -> list[dict[str, object]]:
    """What the program knows and no profiler counts: the workers that an SM holds."""
    return [{'name': 'workers_per_sm', 'value': one['workers_per_sm']}] if 'workers_per_sm' in one else []


def rows_of(announced: list[dict[str, object]], page: str, chosen: dict[str, list[str]]) -> list[str]:
    launches = parsed_rows(page)
    if len(launches) != len(announced):
        raise ValueError(f'ncu counted {len(launches)} launches, and the program announced {len(announced)}')
    return [json.dumps({'what': 'counters', 'kernel': one['kernel'], 'form': 'original',
                        'block_tasks': one['block_tasks'],
                        'counters': counters_of(row, chosen) + announced_counters(one)}, separators=(',', ':'))
            for one, row in zip(announced, launches, strict=True)]


def append(samples: pathlib.Path, lines: list[str]) -> None:
    """Writes the lines behind the last whole one: a writer that was stopped may have left a part of a line."""
    with samples.open('rb+') as out:
        out.truncate(out.read().rfind(b'\n') + 1)
        out.seek(0, 2)
        out.write(''.join(line + '\n' for line in lines).encode())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('arguments', nargs='*')
    parser.add_argument('--samples', required=True)
    parser.add_argument('--ncu', default='ncu')
    given = parser.parse_args()
    samples = pathlib.Path(given.samples)
    if not samples.is_file():
        print(f'{samples} does not exist: `gpushare calibrate --samples` makes it.', file=sys.stderr)
        return 1
    chosen = chosen_metrics(known_metrics(given.ncu))
    missing = sorted(set(COUNTERS) - set(chosen))
    if missing:
        print('not known here: ' + ', '.join(missing), file=sys.stderr)
    metrics = sorted({metric for sums in chosen.values() for metric in sums})
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / 'page.csv'
        run = subprocess.run([given.ncu, '--profile-from-start', 'off', '--clock-control', 'none', '--csv', '--page',
                              'raw', '--print-units', 'base', '--log-file', str(page), '--metrics',
                              ','.join(metrics), given.program, *given.arguments],
                             capture_output=True, text=True, check=False)
        text = page.read_text() if page.is_file() else ''
    announced = [json.loads(line) for line in run.stdout.splitlines() if line.startswith('{')]
    if run.returncode != 0 or not announced:
        print(f'ncu ended with {run.returncode}.\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}\n{text[-2000:]}',
              file=sys.stderr)
        return 1
    try:
        lines = rows_of(announced, text, chosen)
    except ValueError as error:
        print(f'{error}.\n{text[-2000:]}', file=sys.stderr)
        return 1
    append(samples, lines)
    print(f'{len(lines)} kernels counted')
    return 0


if __name__ == '__main__':
    sys.exit(main())
