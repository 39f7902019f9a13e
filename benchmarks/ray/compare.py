#!/usr/bin/env python3
"""Three LC services and four best-effort jobs on four simulated GPUs under Ray Serve, by three ways to run them.

    compare.py [--seconds 30] [--faults] [--json FILE]     all three ways; with faults also the last three phases
    compare.py --smoke                                     one service with two replicas of which one is killed, one job

    bare + two      every launch to the device as it comes (policy bare), Serve's power of two choices
    gpushare + two  gpushare on each GPU, Serve's power of two choices
    gpushare + least  gpushare on each GPU, LeastLatencyRouter

One of the two replicas of `chat` stands for a GPU a third as fast.

Latencies count from the intended arrival, so that a request that waits for a slow client counts in full. The phases of
faults run the last way: a replica is killed, a node is lost and another one comes, the deployment is updated. No
request may be lost or answered twice, and none may fail but those that a broken replica had accepted (verdict.py). A
job must go on from its checkpoint. Otherwise the exit code is 1. The figures are written after each phase.
It needs Ray Serve 2.60, 2 cores and no GPU (docs/ray.md). Arrivals are those of the Azure traces in GPUSHARE_DATA, with
gaps scaled to the services' rates, and Poisson without it.
"""

import argparse
import asyncio
import collections
import csv
import datetime
import functools
import itertools
import json
import math
import os
import pathlib
import random
import signal
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
PACKAGES = [str(HERE), str(HERE.parents[1] / 'bindings/python')]
sys.path[:0] = PACKAGES

import ray  # noqa: E402
import services  # noqa: E402
from ray import serve  # noqa: E402
from ray.cluster_utils import Cluster  # noqa: E402
from verdict import ACCEPTED_MAX, BURST, verdict  # noqa: E402

import gpushare.ray  # noqa: E402
from gpushare.ray import _ranking  # noqa: E402

# Name, replicas, requests a second, ms of a query, ms of its target, Azure trace.
SERVICES = [('chat', 2, 12, 20, 100, 'conv'), ('code', 1, 6, 15, 100, 'code'), ('rank', 1, 6, 10, 100, 'conv')]
SMOKE = SERVICES[:1]
JOBS, GPUS_A_NODE = 4, 2
WAYS = {'bare + two': ('bare', False), 'gpushare + two': ('adaptive', False), 'gpushare + least': ('adaptive', True)}
WITHIN_S = 90  # after which a request without an answer is lost: longer than a slow host needs to replace a replica
PATIENCE_S = 180  # for what happens within 20 s on an idle host
ranked = [0]  # how often LeastLatencyRouter has ranked replicas


def gpus_of(chosen):
    """Each replica has one."""
    return sum(replicas for _, replicas, *_ in chosen)


def count_rankings():
    """Counts in `ranked` what the router ranks in this process, which has all handles.

    Serve copies the router's class, but not what the class uses.
    """
    order = _ranking.Ranking.order

    def counted(*arguments):
        ranked[0] += 1
        return order(*arguments)
    _ranking.Ranking.order = counted


def arrivals(trace, rate, seconds, seed):
    """Times of requests in s, at `rate` a second in the mean."""
    folder = os.environ.get('GPUSHARE_DATA')
    if not folder:
        draw, times = random.Random(seed), [0.0]
        while times[-1] < seconds:
            times.append(times[-1] + draw.expovariate(rate))
        return times[:-1]
    with open(pathlib.Path(folder) / f'azure_llm_2023_{trace}.csv', encoding='ascii') as file:
        rows = [row['TIMESTAMP'][:26]
                for row in itertools.islice(csv.DictReader(file), int(rate * seconds) + 2)]
    stamps = [datetime.datetime.fromisoformat(row).timestamp() for row in rows]
    scale = seconds / (stamps[-1] - stamps[0])
    return [(stamp - stamps[0]) * scale for stamp in stamps[:-1]]


class Load:
    """The requests of one phase."""

    def __init__(self, chosen, handles, seconds, first):
        self.services, self.handles, self.seconds, self.first = chosen, handles, seconds, first
        self.rows = []  # service, arrival in s of the phase, latency in ms, version or the error's name, device ms

    async def run(self, after_half=None):
        begin = time.monotonic() + 0.1
        plan = sorted((at, name) for seed, (name, _, rate, _, _, trace) in enumerate(self.services)
                      for at in arrivals(trace, rate, self.seconds, self.first + seed))
        halfway = asyncio.create_task(self._at_half(begin, after_half, self.first + len(plan)))
        tasks = []
        for number, (at, name) in enumerate(plan, self.first):
            await asyncio.sleep(max(begin + at - time.monotonic(), 0))
            tasks.append(asyncio.create_task(self._ask(number, name, begin, at)))
        last = self.first + len(plan) + (BURST if after_half is not None else 0)
        while not halfway.done():  # what was begun lasts longer: requests go on
            tasks.append(asyncio.create_task(self._ask(last, 'chat', begin, time.monotonic() - begin)))
            last += 1
            await asyncio.sleep(0.1)
        await asyncio.gather(halfway, *tasks)
        return last

    async def _at_half(self, begin, action, first):
        await asyncio.sleep(begin + self.seconds / 2 - time.monotonic())
        if action is not None:
            burst = [asyncio.create_task(self._ask(first + number, 'chat', begin, time.monotonic() - begin))
                     for number in range(BURST)]
            await asyncio.sleep(0.06)
            await asyncio.get_running_loop().run_in_executor(None, action)
            await asyncio.gather(*burst)

    async def _ask(self, number, name, begin, at):
        device_ms = math.nan
        try:
            outcome, device_ms = await asyncio.wait_for(self.handles[name].remote(number), WITHIN_S)
        except asyncio.TimeoutError:
            outcome = 'lost'
        except Exception as error:
            outcome = type(error).__name__
        self.rows.append((name, at, (time.monotonic() - begin - at) * 1e3, outcome, device_ms))


class Fleet:
    """A cluster with the services and jobs of one way to run them."""

    def __init__(self, chosen, folder, way, jobs):
        self.services, self.folder, self.way, self.jobs, self.version = chosen, folder, way, jobs, 1
        self.handles = {name: self.deploy(name) for name, *_ in chosen}

    def deploy(self, name):
        policy, least = WAYS[self.way]
        _, replicas, _, query_ms, target_ms, _ = next(row for row in SERVICES if row[0] == name)
        options = {'request_router_config': gpushare.ray.router_config(deadline_ms=target_ms)} if least else {}
        deployment = serve.deployment(
            services.Service, name=name, num_replicas=replicas, max_ongoing_requests=ACCEPTED_MAX,
            health_check_period_s=1, health_check_timeout_s=30, graceful_shutdown_timeout_s=10,
            ray_actor_options=gpushare.ray.actor_options(lc_load=0.7, simulated=True, num_cpus=0.1), **options)
        # Without gpushare nothing is promised, so that no job is paused.
        target_ms = 0 if policy == 'bare' else target_ms
        return serve.run(deployment.bind(name, query_ms, target_ms, policy, str(self.folder), self.version),
                         name=self.app(name), route_prefix=None)

    def app(self, name):
        """Another application for each way: a process keeps the router of a deployment for which it had a handle."""
        return f'{name}{list(WAYS).index(self.way)}'

    def update(self):
        """A rolling update of the service with two replicas."""
        self.version += 1
        self.deploy('chat')

    def kill(self):
        """Kills a replica of the service with two: one that holds a job, if one of them does."""
        holders = {job['replica'] for job in self.jobs.status().values()}
        note = max(self.folder.glob('chat.*'), key=lambda file: file.read_text(encoding='utf-8') in holders)
        os.kill(int(note.suffix[1:]), signal.SIGKILL)
        note.unlink()

    def steps(self):
        return sum(job['steps'] for job in self.jobs.status().values())

    def until(self, what, text):
        end = time.monotonic() + PATIENCE_S
        while not what(self.jobs.status()):
            if time.monotonic() > end:
                sys.exit(f'{text} within {PATIENCE_S} s: {self.jobs.status()}')
            time.sleep(0.1)

    def begin(self):
        """Every job makes steps, and has a checkpoint from which it would go on."""
        self.until(lambda status: all(job['checkpoint_steps'] > 0 for job in status.values()), 'Not every job began')

    def goes_on(self):
        """Every job is there and makes steps again, and what began anew did so from a checkpoint."""
        before = {name: job['steps'] for name, job in self.jobs.status().items()}
        self.until(lambda status: all(job['state'] in ('leased', 'waiting') for job in status.values()) and all(
            job['steps'] > before[name] for name, job in status.items()), 'Not every job went on')
        anew = [self._starts(name)[1:] for name in before]
        if not all(all(starts) for starts in anew) or not any(anew):
            sys.exit(f'After a replica broke, jobs began anew from these steps: {anew}.')

    def _starts(self, name):
        """From which checkpoints a job began."""
        return [int(line) for line in (self.folder / f'starts.{name}').read_text(encoding='utf-8').split()]

    def phase(self, title, seconds, first, after_half=None, breaks=0):
        """Runs the load, and says what came of it. Returns the figures and the next request's number.

        after_half: what happens then. breaks: replicas that it ends with their requests.
        """
        ranked[0] = 0
        before, begin, load = self.steps(), time.monotonic(), Load(self.services, self.handles, seconds, first)
        last = asyncio.run(load.run(after_half))
        share = services.STEP_MS * 1e-3 / (time.monotonic() - begin) / gpus_of(self.services)
        outcomes = collections.Counter(row[3] if isinstance(row[3], str) else f'version {row[3]}' for row in load.rows)
        answered = collections.Counter(
            int(line) for file in self.folder.glob('answers.*') for line in file.read_text().split())
        figures = {
            'phase': title, 'way': self.way, 'requests': last - first, 'outcomes': dict(outcomes),
            'lost': outcomes['lost'], 'twice': sum(answered[number] > 1 for number in range(first, last)),
            'be': (self.steps() - before) * share, 'breaks': breaks, 'least': WAYS[self.way][1], 'ranked': ranked[0],
            'services': {name: {
                'p50_ms': percentile(rows, 0.5, 2), 'p99_ms': percentile(rows, 0.99, 2),
                'device_p99_ms': percentile(rows, 0.99, 4), 'answered': len(rows)}
                for name, *_ in self.services
                for rows in [[row for row in load.rows if row[0] == name and not isinstance(row[3], str)]]}}
        print(f"{title}, {self.way}: {figures['requests']} requests, {dict(outcomes)}, answered twice "
              f"{figures['twice']}, ranked {ranked[0]} times; BE {figures['be']:.2f} of the GPUs")
        for name, row in figures['services'].items():
            print(f"  {name}: p50 {row['p50_ms']:.0f} ms, p99 {row['p99_ms']:.0f} ms; on the device p99 "
                  f"{row['device_p99_ms']:.1f} ms", flush=True)
        return figures, last


def percentile(rows, share, column):
    values = sorted(row[column] for row in rows)
    return values[math.ceil(share * len(values)) - 1] if values else math.nan


def run(arguments, chosen, cluster, nodes, folder):
    """All phases. Returns their figures, which are in the file after each one."""
    report, first = [], 0

    def keep(figures):
        report.append(figures)
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(report, indent=1) + '\n', encoding='utf-8')
    ways = arguments.way or list(WAYS)
    for way in ways:
        place = pathlib.Path(folder) / way.replace(' ', '')
        place.mkdir()
        jobs = gpushare.ray.start_jobs(state_path=place / 'jobs')
        for number in range(1 if arguments.smoke else JOBS):
            jobs.submit(f'job{number}', services.Steps, folder=str(place))
        fleet = Fleet(chosen, place, way, jobs)
        fleet.begin()
        if not arguments.smoke:
            figures, first = fleet.phase('steady', arguments.seconds, first)
            keep(figures)
        if way == ways[-1] and (arguments.smoke or arguments.faults):
            figures, first = fleet.phase('a replica is killed', arguments.seconds, first, fleet.kill, breaks=1)
            keep(figures)
            fleet.goes_on()
        if way == ways[-1] and arguments.faults:
            spare = add_node(cluster)  # Ray starts the lost replicas there
            lose = functools.partial(cluster.remove_node, nodes[0], allow_graceful=False)
            figures, first = fleet.phase('a node is lost', arguments.seconds, first, lose, breaks=GPUS_A_NODE)
            nodes[0] = spare
            keep(figures)
            fleet.goes_on()
            figures, first = fleet.phase('a rolling update', arguments.seconds, first, fleet.update)
            keep(figures)
            if 'version 2' not in figures['outcomes']:
                sys.exit('No request was answered by the new version.')
        print({name: {key: job[key] for key in ('steps', 'failures', 'leases_lost', 'moves')}
               for name, job in jobs.status().items()}, flush=True)
        if way == ways[-1]:
            break  # the end of Serve ends the rest
        for name, *_ in chosen:
            serve.delete(fleet.app(name))
        ray.kill(ray.get_actor('jobs', namespace='gpushare'))
    return report


def add_node(cluster):
    return cluster.add_node(num_cpus=2, resources={'gpushare_lc': GPUS_A_NODE})


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--seconds', type=float, default=30, help='of each phase')
    parser.add_argument('--faults', action='store_true', help='also kill a replica, lose a node, update')
    parser.add_argument('--way', action='append', choices=list(WAYS), help='only this one; may be repeated')
    parser.add_argument('--smoke', action='store_true', help='one way and one killed replica')
    parser.add_argument('--json', type=pathlib.Path, help='file for the figures')
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.way = ['gpushare + least']
    # What the workers need: the library and the packages of this process.
    names = ('GPUSHARE_LIBRARY', 'GPUSHARE_PYTHON_STEPS', 'GPUSHARE_DATA')
    environment = {name: os.environ[name] for name in names if name in os.environ}
    environment['PYTHONPATH'] = os.pathsep.join(PACKAGES)
    os.environ.setdefault('RAY_worker_niceness', '0')  # Ray's default is 15: the GPU's scheduler would wait for others
    os.environ.setdefault('RAY_memory_monitor_refresh_ms', '0')  # it ends replicas where other programs take the memory
    count_rankings()
    chosen, cluster, nodes = SMOKE if arguments.smoke else SERVICES, None, []
    with tempfile.TemporaryDirectory(prefix='gpushare-ray-') as folder:
        options = {'log_to_driver': False, 'runtime_env': {'env_vars': environment}}
        if arguments.faults:
            cluster = Cluster(initialize_head=True, head_node_args={
                'num_cpus': 2, 'resources': {'gpushare_lc': GPUS_A_NODE}, 'object_store_memory': 100_000_000})
            nodes.append(add_node(cluster))
            ray.init(address=cluster.address, **options)
        else:
            ray.init(address='local', num_cpus=2, resources={'gpushare_lc': gpus_of(chosen)},
                     object_store_memory=100_000_000, include_dashboard=False, **options)
        serve.start(proxy_location='Disabled')
        try:
            report = run(arguments, chosen, cluster, nodes, folder)
        finally:
            serve.shutdown()
            ray.shutdown()
            if cluster is not None:
                cluster.shutdown()
    wrong = [f"{figures['phase']}, {figures['way']}: {sentence}" for figures in report
             for sentence in verdict(figures)]
    if wrong or not report:
        sys.exit('\n'.join(wrong) or 'There was no phase.')
    print('No request was lost, and none was answered twice.')


if __name__ == '__main__':
    main()
