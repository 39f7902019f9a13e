"""Which waiting job goes to which replica: by what each pair is predicted to do, as docs/placement.md has it.

Two ways, of one rule. greedy() takes the most valuable pair first and needs nothing else. by_command() writes the
cluster as a file and asks `gpushare place`, whose assignment is the best or close to it. Jobs that run stay where they
are: a job moves only when a guarantee is at risk, which the replica says.

Knows no Ray.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

COMMAND_TIMEOUT_S = 0.5  # 1,024 apps take 0.03 s; the actor renews no lease meanwhile, of which a replica uses 4 s
_ANY_MEMORY = 1 << 40  # of a GPU whose replica does not say what is free


@dataclasses.dataclass(frozen=True)
class Pair:
    """An LC kind at a load beside a BE kind: a row of `pairs` in a cluster's file (docs/placement.md)."""

    lc: str
    be: str
    load: float
    p99_ratio: float
    be_rate: float
    p99_error: float = 0.0
    be_error: float = 0.0


@dataclasses.dataclass(frozen=True)
class Waiting:
    """A job that wants a GPU."""

    job: str
    kind: str
    memory_bytes: int = 0
    avoid: frozenset[str] = frozenset()  # replicas that just gave it back


@dataclasses.dataclass(frozen=True)
class Room:
    """A replica's GPU and what may join it."""

    replica: str
    lc_kind: str
    load: float
    p99_bound: float  # over the p99 alone; 0: 1.05, as in a cluster's file
    headroom: float
    at_risk: bool = False
    jobs_max: int = 1
    memory_bytes: int | None = None  # free for jobs that wait; None: unknown
    running: tuple[tuple[str, str], ...] = ()  # job and kind


Place = Callable[[Sequence[Waiting], Sequence[Room]], dict[str, str]]


def value_of(pairs: Sequence[Pair], room: Room, kind: str, risk: float = 1.0) -> float | None:
    """The BE rate, less `risk` error bars, of a kind beside a replica's LC app. None: the pair is not allowed.

    Between two loads a row is interpolated with the larger error bar; below the least load its row counts; above the
    largest, and without a row, nothing is allowed. Without any pairs the headroom is the value.
    """
    if not pairs:
        return room.headroom
    rows = sorted((pair for pair in pairs if pair.lc == room.lc_kind and pair.be == kind), key=lambda pair: pair.load)
    above = next((row for row in rows if row.load >= room.load), None)
    if above is None:
        return None
    below = max((row for row in rows if row.load <= room.load), key=lambda row: row.load, default=above)
    part = 0.0 if above.load == below.load else (room.load - below.load) / (above.load - below.load)
    p99 = below.p99_ratio + part * (above.p99_ratio - below.p99_ratio) + max(below.p99_error, above.p99_error)
    if p99 > (room.p99_bound or 1.05):
        return None
    return below.be_rate + part * (above.be_rate - below.be_rate) - risk * max(below.be_error, above.be_error)


def greedy(pairs: Sequence[Pair] = ()) -> Place:
    """Pair by pair, the most valuable first, replicas filled evenly. A tie goes by the names, so it is repeatable."""
    def place(waiting: Sequence[Waiting], rooms: Sequence[Room]) -> dict[str, str]:
        counts = {room.replica: len(room.running) for room in rooms}
        memory = {room.replica: room.memory_bytes for room in rooms}
        open_jobs = list(waiting)
        placed: dict[str, str] = {}
        while open_jobs:
            best: tuple[int, float, str, str] | None = None
            for job in open_jobs:
                for room in rooms:
                    if not _fits(job, room, counts[room.replica], memory[room.replica]):
                        continue
                    value = value_of(pairs, room, job.kind)
                    if value is None or value <= 0:
                        continue
                    key = (counts[room.replica], -value, job.job, room.replica)
                    if best is None or key < best:
                        best = key
            if best is None:
                return placed
            _, _, name, replica = best
            placed[name] = replica
            counts[replica] += 1
            taken = next(job for job in open_jobs if job.job == name)
            free = memory[replica]
            memory[replica] = None if free is None else free - taken.memory_bytes
            open_jobs.remove(taken)
        return placed
    return place


def _fits(job: Waiting, room: Room, count: int, memory_bytes: int | None) -> bool:
    if room.at_risk or room.replica in job.avoid or count >= room.jobs_max:
        return False
    return memory_bytes is None or job.memory_bytes <= memory_bytes


def cluster_of(pairs: Sequence[Pair], waiting: Sequence[Waiting], rooms: Sequence[Room]) -> dict[str, Any]:
    """The file of `gpushare place`: each replica is a GPU with an LC app, each job a BE app of one instance.

    A replica at risk or without free memory is left out, so that nothing joins it. Names are numbers: those of Ray are
    long.
    """
    gpus, lc_apps, be_apps, running = [], [], [], []
    for index, room in enumerate(rooms):
        if room.at_risk or room.memory_bytes == 0:
            continue
        gpu = f'gpu{index}:0'
        memory_bytes = _ANY_MEMORY if room.memory_bytes is None else room.memory_bytes
        gpus.append({'name': f'gpu{index}', 'memory_bytes': memory_bytes, 'count': 1})
        lc_apps.append({'name': f'lc{index}', 'kind': room.lc_kind, 'load': room.load, 'memory_bytes': 0,
                        'p99_bound': room.p99_bound or 1.05, 'replicas': 1})
        running.append({'gpu': gpu, 'app': f'lc{index}'})
        for number, (_, kind) in enumerate(room.running):
            name = f'held{index}.{number}'
            be_apps.append({'name': name, 'kind': kind, 'memory_bytes': 0, 'instances': 1})
            running.append({'gpu': gpu, 'app': name})
    be_apps += [{'name': f'job{index}', 'kind': job.kind, 'memory_bytes': job.memory_bytes, 'instances': 1}
                for index, job in enumerate(waiting)]
    return {'gpus': gpus, 'lc_apps': lc_apps, 'be_apps': be_apps, 'pairs': [dataclasses.asdict(pair) for pair in pairs],
            'running': running, 'be_per_gpu': max((room.jobs_max for room in rooms), default=1)}


def placed_by(answer: Mapping[str, Any], waiting: Sequence[Waiting], rooms: Sequence[Room]) -> dict[str, str]:
    """The new jobs of the command's answer. jobs_max and avoided replicas, unknown to it, are checked here."""
    counts = {room.replica: len(room.running) for room in rooms}
    memory = {room.replica: room.memory_bytes for room in rooms}
    placed: dict[str, str] = {}
    for gpu in answer['gpus']:
        room = rooms[int(str(gpu['gpu']).partition(':')[0].removeprefix('gpu'))]
        for app in gpu['be_apps']:
            if not app['app'].startswith('job'):
                continue
            job = waiting[int(app['app'].removeprefix('job'))]
            free = memory[room.replica]
            if _fits(job, room, counts[room.replica], free):
                placed[job.job] = room.replica
                counts[room.replica] += 1
                memory[room.replica] = None if free is None else free - job.memory_bytes
    return placed


def by_command(command: str, pairs: Sequence[Pair]) -> Place:
    """The assignment of `gpushare place CLUSTER --json`. Raises RuntimeError with the command's sentence if it fails.

    One call takes milliseconds; the ledger calls it when jobs wait and something has changed.
    """
    if not pairs:
        raise ValueError('The command places by pairs, and there is none; without pairs jobs are placed by headroom.')

    def place(waiting: Sequence[Waiting], rooms: Sequence[Room]) -> dict[str, str]:
        cluster = cluster_of(pairs, waiting, rooms)
        if not cluster['gpus']:
            return {}
        with tempfile.TemporaryDirectory(prefix='gpushare-place-') as folder:
            file = pathlib.Path(folder) / 'cluster.json'
            file.write_text(json.dumps(cluster), encoding='utf-8')
            done = subprocess.run([command, 'place', str(file), '--json'], capture_output=True, text=True,
                                  timeout=COMMAND_TIMEOUT_S, check=False)
        try:
            answer = json.loads(done.stdout)
            if 'error' in answer:
                raise RuntimeError(f"{command} place: {answer['error']['message']}")
            return placed_by(answer, waiting, rooms)
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise RuntimeError(f'{command} place ended with {done.returncode} and no placement: '
                               f'{done.stderr.strip()[:500]}') from error
    return place
