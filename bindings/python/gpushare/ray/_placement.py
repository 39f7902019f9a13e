"""Which waiting job goes to which replica: by what each pair is predicted to do, as docs/placement.md has it.

by_value() asks gpushare.place, whose assignment is the best or close to it. Jobs that run stay where they are: a job
moves only when a guarantee is at risk, which the replica says.

Knows no Ray.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from gpushare.options import PlaceBe, PlaceGpu, PlaceLc, PlacePair
from gpushare.placement import place as place_cluster

_ANY_MEMORY = 1 << 40  # of a GPU whose replica does not say what is free
_BE_PER_GPU_MAX = 64  # of gpushare.place
_KIND = 'any'  # of each LC app and each job where no pairs are given


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


def by_value(pairs: Sequence[Pair] = ()) -> Place:
    """The assignment of gpushare.place: the most jobs, then the largest BE rate less an error bar.

    Replicas are filled evenly. Without pairs the BE rate of a job is the replica's headroom, and a replica without any
    gets none. Raises InvalidArgumentError for a pair outside its range. A call takes a millisecond; the ledger makes
    one when jobs wait and something has changed.
    """
    rows = [_row(pair) for pair in pairs or _BY_HEADROOM]
    place_cluster([{'name': 'any', 'memory_bytes': 1}], pairs=rows)  # checks the rows

    def place(waiting: Sequence[Waiting], rooms: Sequence[Room]) -> dict[str, str]:
        if not pairs:
            waiting = [dataclasses.replace(job, kind=_KIND) for job in waiting]
            rooms = [_by_headroom(room) for room in rooms if room.headroom > 0]
        return _placed(rows, waiting, rooms)
    return place


# The load of a replica is what its headroom lacks.
_BY_HEADROOM = (Pair(_KIND, _KIND, 0.0, 1.0, 1.0), Pair(_KIND, _KIND, 1.0, 1.0, 0.0))


def _by_headroom(room: Room) -> Room:
    return dataclasses.replace(room, lc_kind=_KIND, load=1.0 - room.headroom, p99_bound=0.0,
                               running=tuple((job, _KIND) for job, _ in room.running))


def _row(pair: Pair) -> PlacePair:
    return {'lc': pair.lc, 'be': pair.be, 'load': pair.load, 'p99_ratio': pair.p99_ratio, 'p99_error': pair.p99_error,
            'be_rate': pair.be_rate, 'be_error': pair.be_error}


def _placed(rows: Sequence[PlacePair], waiting: Sequence[Waiting], rooms: Sequence[Room]) -> dict[str, str]:
    """Several assignments: gpushare.place has one limit of jobs for all GPUs, and no GPUs that a job avoids.

    Jobs that avoid the most replicas have the least choice and come first. A job whose replica is full by other jobs
    of its assignment is placed again without that replica. Each round but the last places a job.
    """
    # A kind without a row is allowed nowhere. Its name goes no further: one that is too long would fail the call.
    lc_kinds, be_kinds = {row['lc'] for row in rows}, {row['be'] for row in rows}
    left = {room.replica: room for room in rooms if not room.at_risk and room.lc_kind in lc_kinds}
    jobs = sorted((job for job in waiting if job.kind in be_kinds), key=lambda job: -len(job.avoid))
    placed: dict[str, str] = {}
    for avoid in dict.fromkeys(job.avoid for job in jobs):
        rest = [job for job in jobs if job.avoid == avoid]
        while rest:
            free = [room for room in left.values() if room.replica not in avoid and len(room.running) < room.jobs_max]
            chosen = _assigned(rows, be_kinds, rest, free) if free else {}
            for job in rest:
                if job.job in chosen and _fits(job, left[chosen[job.job]]):
                    placed[job.job] = chosen[job.job]
                    left[chosen[job.job]] = _with(left[chosen[job.job]], job)
            if len(rest) == len(rest := [job for job in rest if job.job not in placed]):
                break
    return placed


def _fits(job: Waiting, room: Room) -> bool:
    return len(room.running) < room.jobs_max and (room.memory_bytes is None or job.memory_bytes <= room.memory_bytes)


def _with(room: Room, job: Waiting) -> Room:
    free = room.memory_bytes
    return dataclasses.replace(room, running=(*room.running, (job.job, job.kind)),
                               memory_bytes=None if free is None else free - job.memory_bytes)


def _assigned(rows: Sequence[PlacePair], be_kinds: set[str], waiting: Sequence[Waiting],
              rooms: Sequence[Room]) -> dict[str, str]:
    """One assignment: each replica is a GPU with an LC app, each job a BE app of one instance.

    Names are numbers: those of Ray are long. A job that runs has its memory already.
    """
    lc_kinds = {room.lc_kind for room in rooms}
    gpus: list[PlaceGpu] = [
        {'name': str(index), 'memory_bytes': _ANY_MEMORY if room.memory_bytes is None else max(room.memory_bytes, 1)}
        for index, room in enumerate(rooms)]
    lc_apps: list[PlaceLc] = [{'name': f'lc{index}', 'kind': room.lc_kind, 'load': room.load, 'memory_bytes': 0,
                               'p99_bound': room.p99_bound} for index, room in enumerate(rooms)]
    held = [(index, kind) for index, room in enumerate(rooms) for _, kind in room.running if kind in be_kinds]
    be_apps: list[PlaceBe] = [{'name': f'held{number}', 'kind': kind, 'memory_bytes': 0}
                              for number, (_, kind) in enumerate(held)]
    be_apps += [{'name': f'job{number}', 'kind': job.kind, 'memory_bytes': job.memory_bytes}
                for number, job in enumerate(waiting)]
    running = {f'lc{index}': (index,) for index in range(len(rooms))}
    running.update((f'held{number}', (index,)) for number, (index, _) in enumerate(held))
    answer = place_cluster(gpus, lc_apps, be_apps, [row for row in rows if row['lc'] in lc_kinds], running,
                           be_per_gpu=min(max(room.jobs_max for room in rooms), _BE_PER_GPU_MAX)).gpus
    chosen = {job.job: answer[f'job{number}'][0] for number, job in enumerate(waiting)}
    return {job: rooms[gpu].replica for job, gpu in chosen.items() if gpu is not None}
