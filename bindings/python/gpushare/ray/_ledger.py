"""The book of the best-effort jobs: which replica holds which one, for how long, and from which checkpoint.

Replicas pull. A pull says what the replica holds and how far it is, and gets back what to start, to drop, and which
leases go on. Nothing is pushed, so a replica that is gone costs nothing but the time until its leases expire.

A lease has a number that is never used again. A job runs under one lease at a time: the replica stops it by itself
before the lease ends (_running.py), and what an older lease reports is refused. So a job may run twice from the same
checkpoint, but two replicas never both continue it.

A pull may be lost on its way, or its answer. Both are repeated: a start is sent until the replica reports its lease,
and an end is reported until the answer no longer asks for it.

Knows no Ray. Times are seconds of one clock, which the caller reads. Threads: one.
"""

from __future__ import annotations

import dataclasses
import enum
import math
from collections.abc import Mapping
from typing import Any

from gpushare.ray._placement import Place, Room, Waiting

JOBS_MAX = 10_000  # of one actor, those that have ended among them
FAILURES_MAX = 3  # a job that raises so often is wrong itself
LEASES_LOST_MAX = 3  # without a newer checkpoint between them: the job is what kills its replicas
NAME_BYTES_MAX = 43  # an app's name has at most 63, of which the lease takes 20
MEMORY_BYTES_MAX = (1 << 63) - 1
CODE_BYTES_MAX = 1 << 20  # of a pickled callable with its arguments: data belongs in a file
OFFER_MARGIN = 16  # waiting jobs that the placement sees beyond the free slots, as some may fit nowhere
OFFER_S = 1.0  # after which the next waiting jobs are offered where none of these fits
PLACE_RETRY_S = 5.0  # after a placement that failed: the same input fails again
AVOID_S = 30.0  # a replica that gave a job back does not get it again so soon


class State(str, enum.Enum):
    """Of a job."""

    WAITING = 'waiting'
    LEASED = 'leased'
    DONE = 'done'
    FAILED = 'failed'
    CANCELLED = 'cancelled'


class Ending(str, enum.Enum):
    """How a held job ended, as its replica says. RETURNED: it goes on elsewhere, from its checkpoint."""

    NONE = ''
    DONE = 'done'
    RAISED = 'raised'
    RETURNED = 'returned'


@dataclasses.dataclass(frozen=True)
class Spec:
    """A job as it was submitted. code: the pickled callable and its arguments, which only a replica reads."""

    name: str
    kind: str
    code: bytes
    memory_bytes: int = 0
    weight: float = 1.0


@dataclasses.dataclass(frozen=True)
class Held:
    """What a replica says of a job that it holds."""

    job: str
    lease: int
    steps: int
    paused: bool = False
    checkpoint: bytes | None = None
    checkpoint_steps: int = -1  # those that the checkpoint has; -1: none that is not acknowledged
    ending: Ending = Ending.NONE
    result: bytes | None = None
    message: str = ''
    kind: str = ''
    memory_bytes: int = 0


@dataclasses.dataclass(frozen=True)
class Report:
    """A pull of a replica. takes_jobs: False before it leaves."""

    room: Room
    held: tuple[Held, ...] = ()
    takes_jobs: bool = True


@dataclasses.dataclass(frozen=True)
class Start:
    """A job that the replica is to run."""

    spec: Spec
    lease: int
    steps: int
    checkpoint: bytes | None


@dataclasses.dataclass(frozen=True)
class Orders:
    """The answer to a pull. drop: leases of the report that are over, or whose ending is noted."""

    lease_s: float
    start: tuple[Start, ...] = ()
    keep: tuple[int, ...] = ()
    drop: tuple[int, ...] = ()


@dataclasses.dataclass
class _Job:
    spec: Spec
    state: State = State.WAITING
    replica: str = ''
    lease: int = 0
    until_s: float = 0.0
    steps: int = 0
    checkpoint: bytes | None = None
    checkpoint_steps: int = 0
    paused: bool = False
    result: bytes | None = None
    message: str = ''
    failures: int = 0
    leases_lost: int = 0
    lost_in_a_row: int = 0  # since the last newer checkpoint
    moves: int = 0
    avoid: dict[str, float] = dataclasses.field(default_factory=dict)

    def wait_again(self) -> None:
        self.state, self.replica, self.lease, self.paused = State.WAITING, '', 0, False
        self.steps = self.checkpoint_steps

    def end(self, state: State) -> None:
        """The job runs no more: what only its next run would need goes."""
        self.wait_again()
        self.state, self.checkpoint = state, None
        self.spec = dataclasses.replace(self.spec, code=b'')


class Ledger:
    """The jobs and the replicas of one Jobs actor.

    last_lease: leases count from here. It must be above those of an earlier book that is lost, whose replicas still
    report them. `changes` counts starts and endings, which must be on disk before a replica hears of them.
    """

    def __init__(self, place: Place, *, lease_s: float, avoid_s: float = AVOID_S, last_lease: int = 0) -> None:
        if not lease_s > 0:
            raise ValueError(f'lease_s is {lease_s}, and it must be above 0.')
        self._place = place
        self._lease_s = lease_s
        self._avoid_s = avoid_s
        self._jobs: dict[str, _Job] = {}
        self._rooms: dict[str, tuple[float, Report]] = {}
        self._last_lease = last_lease
        self._placed: dict[str, str] = {}
        self._placed_for: object = None
        self._place_from_s = -math.inf  # after a failure
        self._offer_from = 0  # the first of the waiting jobs that is offered
        self._offered_s: float | None = None  # since when
        self.placement_failure = ''
        self.changes = 0

    def submit(self, spec: Spec) -> None:
        """A new job waits for a replica. Raises ValueError if the name is taken or there are too many jobs."""
        if spec.name in self._jobs:
            raise ValueError(f"There is a job '{spec.name}' already; names are unique, also of jobs that have ended.")
        if len(self._jobs) >= JOBS_MAX:
            raise ValueError(f'There are {JOBS_MAX} jobs; forget() those that have ended.')
        if len(spec.name.encode()) > NAME_BYTES_MAX:
            raise ValueError(f"The job's name '{spec.name}' has {len(spec.name.encode())} bytes, and at most "
                             f'{NAME_BYTES_MAX} may be.')
        memory_bytes = spec.memory_bytes
        if not isinstance(memory_bytes, int) or not 0 <= memory_bytes <= MEMORY_BYTES_MAX:
            raise ValueError(f"memory_bytes of job '{spec.name}' is {memory_bytes!r}, and it must be a whole number "
                             f'from 0 to {MEMORY_BYTES_MAX}.')
        if len(spec.code) > CODE_BYTES_MAX:
            raise ValueError(f"The callable and the arguments of job '{spec.name}' have {len(spec.code)} bytes, and at "
                             f'most {CODE_BYTES_MAX} may be: write data to a file, and pass its path.')
        self._jobs[spec.name] = _Job(spec)

    def cancel(self, name: str) -> None:
        """The job runs no more; its replica hears so by its next pull."""
        job = self._of(name)
        if job.state in (State.WAITING, State.LEASED):
            job.end(State.CANCELLED)

    def forget(self, name: str) -> None:
        """Removes a job that has ended."""
        if self._of(name).state in (State.WAITING, State.LEASED):
            raise ValueError(f"The job '{name}' has not ended; cancel() it first.")
        del self._jobs[name]

    def pull(self, report: Report, now_s: float) -> Orders:
        """What a replica asks and says every so often."""
        replica = report.room.replica
        self.expire(now_s)
        keep: list[int] = []
        drop: list[int] = []
        for held in report.held:
            (keep if self._note(replica, held, now_s) else drop).append(held.lease)
        if report.takes_jobs:
            self._rooms[replica] = (now_s, report)
        else:
            self._rooms.pop(replica, None)
        if report.takes_jobs:
            self._grant(replica, now_s)
        known = {held.lease for held in report.held}
        start: list[Start] = []
        for job in self._jobs.values():
            if job.state is State.LEASED and job.replica == replica and job.lease not in known:
                if not report.takes_jobs:  # it has not begun the job, and leaves
                    self.changes += 1
                    job.wait_again()
                    continue
                job.until_s = now_s + self._lease_s  # as the replica counts it, from this pull
                start.append(Start(job.spec, job.lease, job.checkpoint_steps, job.checkpoint))
        return Orders(self._lease_s, tuple(start), tuple(keep), tuple(drop))

    def expire(self, now_s: float) -> None:
        """Jobs whose lease is over wait again. Replicas that pull no more are forgotten."""
        for job in self._jobs.values():
            if job.state is State.LEASED and now_s > job.until_s:
                self._lose(job, now_s)
        self._rooms = {name: room for name, room in self._rooms.items() if now_s - room[0] <= self._lease_s}

    def status(self) -> dict[str, dict[str, Any]]:
        """Of each job what may be told: state, replica, steps and how often it failed, was lost or moved."""
        return {name: {'state': job.state.value, 'replica': job.replica, 'steps': job.steps, 'paused': job.paused,
                       'checkpoint_steps': job.checkpoint_steps, 'failures': job.failures,
                       'leases_lost': job.leases_lost, 'moves': job.moves, 'message': job.message}
                for name, job in self._jobs.items()}

    def result(self, name: str) -> bytes | None:
        """What the job's result() returned, pickled. Raises RuntimeError unless the job is done."""
        job = self._of(name)
        if job.state is not State.DONE:
            raise RuntimeError(f"The job '{name}' is {job.state.value}, not done. {job.message}".rstrip())
        return job.result

    def dump(self) -> dict[str, Any]:
        """What restore() needs, in another process and on another clock."""
        return {'jobs': [dataclasses.replace(job, avoid={}) for job in self._jobs.values()],
                'last_lease': self._last_lease}

    def restore(self, dumped: Mapping[str, Any], now_s: float) -> None:
        """Goes on from dump(). A lease begins anew: its holder may have gone on meanwhile, and shows by a pull."""
        self._last_lease = max(self._last_lease, dumped['last_lease'])
        self._jobs = {job.spec.name: dataclasses.replace(job, until_s=now_s + self._lease_s) for job in dumped['jobs']}

    def _of(self, name: str) -> _Job:
        if name not in self._jobs:
            raise KeyError(f"There is no job '{name}'.")
        return self._jobs[name]

    def _note(self, replica: str, held: Held, now_s: float) -> bool:
        """Takes what a replica says of a job. Whether its lease goes on."""
        job = self._jobs.get(held.job)
        if job is None or job.state is not State.LEASED or job.lease != held.lease or job.replica != replica:
            return False
        job.steps, job.paused = held.steps, held.paused
        if held.checkpoint_steps >= 0:
            if held.checkpoint_steps > job.checkpoint_steps:
                job.lost_in_a_row = 0
            job.checkpoint, job.checkpoint_steps = held.checkpoint, held.checkpoint_steps
        job.message = held.message or job.message
        if held.ending is Ending.NONE:
            job.until_s = now_s + self._lease_s
            return True
        self.changes += 1
        if held.ending is Ending.DONE:
            job.end(State.DONE)
            job.result, job.steps = held.result, held.steps
            return False
        job.avoid[replica] = now_s + self._avoid_s
        if held.ending is Ending.RAISED:
            job.failures += 1
        else:
            job.moves += 1
        if job.failures >= FAILURES_MAX:
            job.end(State.FAILED)
        else:
            job.wait_again()
        return False

    def _lose(self, job: _Job, now_s: float) -> None:
        """The job's lease is over, and its replica is gone or hears nothing."""
        job.leases_lost += 1
        job.lost_in_a_row += 1
        job.avoid[job.replica] = now_s + self._avoid_s
        self.changes += 1
        if job.lost_in_a_row < LEASES_LOST_MAX:
            job.wait_again()
            return
        job.message = (f'{job.lost_in_a_row} leases were lost without a newer checkpoint, the last one by replica '
                       f'{job.replica}, and at most {LEASES_LOST_MAX} may be: the job may end its process.')
        job.end(State.FAILED)

    def _grant(self, replica: str, now_s: float) -> None:
        """Gives the replica the waiting jobs that the placement has for it."""
        waiting = [Waiting(job.spec.name, job.spec.kind, job.spec.memory_bytes,
                           frozenset(name for name, until in job.avoid.items() if until > now_s))
                   for job in self._jobs.values() if job.state is State.WAITING]
        rooms = [self._room(name, report) for name, (_, report) in sorted(self._rooms.items())]
        free = sum(max(room.jobs_max - len(room.running), 0) for room in rooms if not room.at_risk)
        if not waiting or free == 0 or now_s < self._place_from_s:
            return
        waiting = self._offered(waiting, free + OFFER_MARGIN, now_s)
        wanted = (tuple(waiting), tuple(_rounded(room) for room in rooms))
        if wanted != self._placed_for:
            try:
                self._placed = self._place(waiting, rooms)
                self.placement_failure = ''
                self._placed_for = wanted
            except Exception as error:  # until it is asked again, what waits goes on waiting
                self._placed, self.placement_failure = {}, str(error)
                self._placed_for, self._place_from_s = None, now_s + PLACE_RETRY_S
        for name, where in self._placed.items():
            if where == replica and self._jobs[name].state is State.WAITING:
                job = self._jobs[name]
                self._last_lease += 1
                self.changes += 1
                job.state, job.replica, job.lease = State.LEASED, replica, self._last_lease
                job.until_s = now_s + self._lease_s

    def _offered(self, waiting: list[Waiting], most: int, now_s: float) -> list[Waiting]:
        """The waiting jobs that the placement sees: at most so many, and others after a while if none of them fits."""
        if len(waiting) <= most:
            return waiting
        if self._offered_s is None or now_s - self._offered_s >= OFFER_S:
            if self._offered_s is not None and not self._placed:
                self._offer_from += most
            self._offered_s = now_s
        first = self._offer_from % len(waiting)
        return (waiting[first:] + waiting[:first])[:most]

    def _room(self, name: str, report: Report) -> Room:
        """The replica's room with the jobs that this book says it holds, and those that still end their step there."""
        jobs = {job.lease: job for job in self._jobs.values() if job.state is State.LEASED and job.replica == name}
        running = [(job.spec.name, job.spec.kind, job.spec.memory_bytes) for job in jobs.values()]
        running += [(held.job, held.kind, held.memory_bytes) for held in report.held
                    if held.lease not in jobs and held.ending is Ending.NONE]
        free = report.room.memory_bytes
        if free is not None:
            free = max(free - sum(memory_bytes for _, _, memory_bytes in running), 0)
        return dataclasses.replace(report.room, memory_bytes=free,
                                   running=tuple((job, kind) for job, kind, _ in running))


def _rounded(room: Room) -> Room:
    """A room without the small changes of its load, for which nothing is placed anew."""
    return dataclasses.replace(room, load=round(room.load, 1), headroom=round(room.headroom, 1))


def counts(status: Mapping[str, Mapping[str, Any]]) -> dict[str, int]:
    """How many jobs are in each state."""
    return {state.value: sum(job['state'] == state.value for job in status.values()) for state in State}
