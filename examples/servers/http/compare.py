#!/usr/bin/env python3
"""The server beside BE work and without it, in turns, under an open-loop load; then SIGTERM under that load.

  compare.py PROGRAM [--device cuda] [--rate 2000] [--seconds 20] [--rounds 3] [--graph-us 200] [--output FILE]
  compare.py --collect FOLDER PROGRAM       copies the program, its libraries and these scripts for another machine;
                                            there: LD_LIBRARY_PATH=FOLDER/lib python3 FOLDER/compare.py FOLDER/PROGRAM

Prints a line for each run and a JSON object at the end. p99s are of two kinds: the client's, from the intended time of
a request to its answer, and the library's, from the arrival in the server to the end of the query, over its last 4,096
to 8,192 queries. The ratios are those of the medians over the rounds. Exit code 1: an answer was lost or wrong, or a
server did not end with 0. A bound that is missed is in the output (within_bound), and changes no exit code.
"""

import argparse
import json
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import threading
import time

import load
import running

WARM_UP_S = 4.0
# The C library, which fits its loader, and the driver.
OF_THE_MACHINE = ('libc.so', 'libm.so', 'libdl', 'libpthread', 'ld-', 'libcuda')


def be_work_s(server):
    try:
        return server.metric('gpushare_app_work_seconds_total', 'background')
    except KeyError:
        return 0.0  # no BE app


def one_run(options, beside, seed):
    arguments = ['--device', options.device, '--graph-us', options.graph_us, '--p99-bound', options.p99_bound]
    with running.Server(options.program, *arguments, *([] if beside else ['--no-be'])) as server:
        load.run(server.port, options.rate, WARM_UP_S, server.shift, options.connections, seed + 1000)
        be_before, from_s = be_work_s(server), time.monotonic()
        client = load.run(server.port, options.rate, options.seconds, server.shift, options.connections, seed)
        be_work = be_work_s(server) - be_before
        result = {
            'beside': beside, 'simulated': server.simulated, 'client': client,
            'query_p50_us': server.metric('gpushare_app_recent_p50_seconds', 'service') * 1e6,
            'query_p99_us': server.metric('gpushare_app_recent_p99_seconds', 'service') * 1e6,
            'shadow_p99_us': server.metric('gpushare_app_shadow_p99_seconds', 'service') * 1e6,
            'be_work': be_work / (time.monotonic() - from_s),
        }
        server.terminate()
        result['exit_code'], result['summary'] = server.finish()
        return result


def sigterm_under_load(options):
    with running.Server(options.program, '--device', options.device, '--graph-us', options.graph_us) as server:
        timer = threading.Timer(3, server.terminate)
        timer.start()
        client = load.run(server.port, options.rate, 60, server.shift, options.connections, 7)
        timer.join()
        code, summary = server.finish()
    return {'client': client, 'exit_code': code, 'summary': summary,
            'lost': client['sent'] - client['ok'] - client['refused']}


def ratios(options, runs):
    def median(beside, read):
        return statistics.median(read(one) for one in runs if one['beside'] is beside)

    def ratio(read):
        return round(median(True, read) / max(median(False, read), 1e-9), 4)

    query_p99 = ratio(lambda one: one['query_p99_us'])
    return {
        'p99_bound': options.p99_bound,
        'query_p99_over_without_be': query_p99,
        'query_p99_over_shadow': round(median(True, lambda one: one['query_p99_us'] / one['shadow_p99_us']), 4),
        'query_p50_over_without_be': ratio(lambda one: one['query_p50_us']),
        'client_p99_over_without_be': ratio(lambda one: one['client']['p99_us']),
        'be_work': round(median(True, lambda one: one['be_work']), 4),
        'within_bound': query_p99 <= options.p99_bound,
    }


def compare(options):
    runs = []
    for round_number in range(options.rounds):
        for beside in ((False, True), (True, False))[round_number % 2]:
            runs.append(one_run(options, beside, round_number))
            one = runs[-1]
            print(f"{'beside BE' if beside else 'without BE'}: query p50 {one['query_p50_us']:.0f} us, p99 "
                  f"{one['query_p99_us']:.0f} us; client p99 {one['client']['p99_us']} us; BE {one['be_work']:.3f}; "
                  f"{one['client']['rate']} answers/s", flush=True)
    end = sigterm_under_load(options)
    result = {'machine': platform.node(), 'rate': options.rate, 'seconds': options.seconds, 'rounds': options.rounds,
              'graph_us': options.graph_us, **ratios(options, runs), 'sigterm': end, 'runs': runs}
    print(json.dumps({key: value for key, value in result.items() if key != 'runs'}, indent=1))
    if options.output:
        pathlib.Path(options.output).write_text(json.dumps(result, indent=1) + '\n')
    bad = [one for one in runs if one['exit_code'] != 0 or one['client']['wrong'] or one['client']['lost']]
    return 1 if bad or end['lost'] or end['exit_code'] != 0 else 0


def collect(options):
    folder = pathlib.Path(options.collect)
    (folder / 'lib').mkdir(parents=True, exist_ok=True)
    for file in (options.program, *(str(pathlib.Path(__file__).parent / name)
                                    for name in ('compare.py', 'load.py', 'running.py'))):
        shutil.copy2(file, folder)
    listed = subprocess.run(['ldd', options.program], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        name, _, path = line.strip().partition(' => ')
        if path.startswith('/') and not name.startswith(OF_THE_MACHINE):
            shutil.copy2(path.split(' ')[0], folder / 'lib' / name)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('program')
    parser.add_argument('--collect', metavar='FOLDER')
    parser.add_argument('--device', default='cuda')
    parser.add_argument('--rate', type=float, default=2000)
    parser.add_argument('--seconds', type=float, default=20)
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--connections', type=int, default=64)
    parser.add_argument('--graph-us', type=int, default=200)
    parser.add_argument('--p99-bound', type=float, default=1.05)
    parser.add_argument('--output')
    options = parser.parse_args()
    return collect(options) if options.collect else compare(options)


if __name__ == '__main__':
    sys.exit(main())
