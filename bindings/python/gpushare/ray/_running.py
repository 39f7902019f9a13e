"""The jobs that a replica's process runs: a thread each, beside the thread that pulls.

A job is a callable of the user. It is called with the replica's runtime and an app of its own, and returns an object
with step(), and if it likes checkpoint(), result() and close(). Between two steps a job is paused, checkpointed or
given back; within a step the library itself evicts its work.

A job's checkpoints and result are pickled here: one that cannot be pickled is that job's failure and stops no pull,
and the actor needs none of the job's modules. A checkpoint travels with each pull until an answer acknowledges it.

A job stops by itself before its lease is over: the lease counts from when the pull was sent, which is earlier than the
actor's count. So the job never runs in two places, whatever happens to the network.

Knows no Ray: `pull` is any function.
"""

from __future__ import annotations

import dataclasses
import enum
import logging
import math
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gpushare.enums import AppClass
from gpushare.errors import ResourceExhaustedError
from gpushare.ray._ledger import Ending, Held, Orders, Report, Start
from gpushare.ray._placement import Room

if TYPE_CHECKING:
    from gpushare.app import App
    from gpushare.runtime import Runtime

_log = logging.getLogger(__name__)
SAID_BYTES_MAX = 16 << 20  # of a checkpoint or a result, which travel with the pull: larger ones belong in a file
WARN_S = 60.0  # between warnings of pulls that fail
_LEASE_SHARE = 0.8  # of a lease, after which its holder stops: the rest is for a step that runs


class Action(enum.Enum):
    """What the replica's jobs do now."""

    RUN = 'run'
    PAUSE = 'pause'
    MOVE = 'move'


class Guard:
    """Pauses jobs while a guarantee is at risk, and gives them away if that does not help.

    resume_after_s: the guarantee is safe for so long before they go on, so that they do not flap.
    move_after_s: paused for so long, they leave.
    """

    def __init__(self, *, resume_after_s: float, move_after_s: float) -> None:
        self._resume_after_s = resume_after_s
        self._move_after_s = move_after_s
        self._paused_s: float | None = None  # since when
        self._risk_s = 0.0  # when it was last seen

    def decide(self, at_risk: bool, now_s: float) -> Action:
        if at_risk:
            self._risk_s = now_s
            if self._paused_s is None:
                self._paused_s = now_s
        if self._paused_s is None:
            return Action.RUN
        if not at_risk and now_s - self._risk_s >= self._resume_after_s:
            self._paused_s = None
            return Action.RUN
        return Action.MOVE if now_s - self._paused_s >= self._move_after_s else Action.PAUSE


@dataclasses.dataclass(frozen=True)
class JobGpu:
    """What a job runs on: the replica's runtime, and a BE app of the job's own on it.

    name: of the app, unique in the runtime: the job's with the number of its lease. Kernels may be named after it.
    """

    runtime: Runtime
    app: App
    name: str


@dataclasses.dataclass(frozen=True)
class Codec:
    """How a job comes and goes: make() calls its callable with the last checkpoint; dump() pickles what it says."""

    make: Callable[[bytes, JobGpu, bytes | None], Any]
    dump: Callable[[Any], bytes]

    def say(self, what: str, value: Any) -> bytes:
        """The pickled value. Raises ValueError if it is too large to travel with each pull."""
        data = self.dump(value)
        if len(data) > SAID_BYTES_MAX:
            raise ValueError(f'The {what} has {len(data)} bytes, and at most {SAID_BYTES_MAX} may be: write it to a '
                             'file, and return its path.')
        return data


@dataclasses.dataclass(frozen=True)
class Facts:
    """What the replica says of itself at a pull. lost: its GPU is."""

    room: Room
    lost: bool = False


class _Run:
    """One job under one lease. `lock` guards what the pulling thread reads."""

    def __init__(self, runtime: Runtime, start: Start, codec: Codec, until_s: float, checkpoint_s: float) -> None:
        self.start = start
        self.until_s = until_s
        self.going = threading.Event()
        self.going.set()
        self.leaving = False
        self.lock = threading.Lock()
        self.held = Held(start.spec.name, start.lease, start.steps, kind=start.spec.kind,
                         memory_bytes=start.spec.memory_bytes)
        self.acknowledged = -1  # steps of the last checkpoint that the actor has; of the pulling thread
        self.device_ns = 0  # that the job's work has had
        self._runtime, self._codec, self._checkpoint_s = runtime, codec, checkpoint_s
        self.thread = threading.Thread(target=self._work, name=f'gpushare-job-{start.spec.name}', daemon=True)
        self.thread.start()

    def say(self, **changes: Any) -> None:
        with self.lock:
            self.held = dataclasses.replace(self.held, **changes)

    def report(self) -> Held:
        """What the next pull says of the job, without a checkpoint that the actor has."""
        with self.lock:
            held = self.held
        if held.checkpoint_steps > self.acknowledged:
            return held
        return dataclasses.replace(held, checkpoint=None, checkpoint_steps=-1)

    def stop(self) -> None:
        """Asks the job to end after its step, with a checkpoint."""
        self.leaving = True
        self.going.set()

    def _work(self) -> None:
        name = f'{self.start.spec.name}#{self.start.lease}'
        try:
            app = self._runtime.create_app(name, AppClass.BEST_EFFORT, weight=self.start.spec.weight)
        except Exception as error:
            elsewhere = isinstance(error, ResourceExhaustedError) or _lost(self._runtime)
            self.say(ending=Ending.RETURNED if elsewhere else Ending.RAISED, message=_sentence(error))
            return
        try:
            with app:
                self.say(**self._run(JobGpu(self._runtime, app, name)))
        except BaseException as error:  # also an exit: a thread that is gone without a word would keep its lease
            # A lost GPU is not the job's fault.
            self.say(ending=Ending.RETURNED if _lost(self._runtime) else Ending.RAISED, message=_sentence(error))
            _log.warning("The job '%s' raised: %s", self.start.spec.name, _sentence(error))

    def _run(self, gpu: JobGpu) -> dict[str, Any]:
        """Runs the job until it ends. Returns what is to be said of that, once the job is closed."""
        job = self._codec.make(self.start.spec.code, gpu, self.start.checkpoint)
        try:
            steps, saved_s = self.start.steps, time.monotonic()
            while True:
                self.going.wait(timeout=0.1)
                if not self.leaving and not self.going.is_set():
                    continue
                if self.leaving or time.monotonic() > self.until_s:
                    return {**self._saved(job, steps), 'ending': Ending.RETURNED}
                more = job.step()
                steps += 1
                self.device_ns = gpu.app.stats().device_ns
                self.say(steps=steps)
                if more is False:
                    result = self._codec.say('result', job.result() if hasattr(job, 'result') else None)
                    return {'result': result, 'ending': Ending.DONE}
                if time.monotonic() - saved_s >= self._checkpoint_s:
                    self.say(**self._saved(job, steps))
                    saved_s = time.monotonic()
        finally:
            if hasattr(job, 'close'):
                job.close()

    def _saved(self, job: Any, steps: int) -> dict[str, Any]:
        if not hasattr(job, 'checkpoint'):
            return {}
        return {'checkpoint': self._codec.say('checkpoint', job.checkpoint()), 'checkpoint_steps': steps}


class Runner:
    """Pulls, and runs what it gets.

    facts: what the replica says of itself. pull: asks the Jobs actor; an exception is a pull that failed.
    """

    def __init__(self, runtime: Runtime, *, facts: Callable[[], Facts], pull: Callable[[Report], Orders],
                 codec: Codec, guard: Guard, period_s: float, checkpoint_s: float) -> None:
        self._runtime, self._facts, self._pull, self._codec = runtime, facts, pull, codec
        self._guard, self._period_s, self._checkpoint_s = guard, period_s, checkpoint_s
        self._runs: dict[int, _Run] = {}
        self._ended = threading.Event()
        self._earlier_device_ns = 0  # of jobs that this replica holds no more
        self.action = Action.RUN
        self._thread = threading.Thread(target=self._loop, name='gpushare-jobs', daemon=True)

    def begin(self) -> None:
        """Starts the pulling thread."""
        self._thread.start()

    def count(self) -> int:
        """Jobs that this replica holds."""
        return len(self._runs)

    def device_ns(self) -> int:
        """Device time that jobs of this replica have had. Threads: any."""
        return self._earlier_device_ns + sum(run.device_ns for run in list(self._runs.values()))

    def close(self, timeout_s: float) -> None:
        """Gives all jobs back with a checkpoint, and says so to the actor once. Steps get timeout_s to end."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        runs = list(self._runs.values())
        for run in runs:
            run.stop()
        end_s = time.monotonic() + timeout_s
        for run in runs:
            run.thread.join(max(end_s - time.monotonic(), 0.0))
        if runs:
            try:
                self._pull(Report(self._facts().room, tuple(run.report() for run in runs), takes_jobs=False))
            except Exception as error:  # the leases expire instead
                _log.info('The jobs could not be given back: %s', _sentence(error))

    def _loop(self) -> None:
        warned_s = -math.inf
        while not self._ended.wait(self._period_s):
            try:
                self.turn()
            except Exception as error:  # the actor restarts, or the runtime is being closed
                if time.monotonic() - warned_s >= WARN_S:
                    warned_s = time.monotonic()
                    _log.warning('A pull of jobs failed; without one the jobs stop: %s', _sentence(error))

    def turn(self) -> None:
        """One pull and what follows from it."""
        facts = self._facts()
        self.action = self._guard.decide(facts.room.at_risk, time.monotonic())
        for run in self._runs.values():
            if self.action is Action.RUN:
                run.going.set()
            elif not run.leaving:
                run.going.clear()
            if self.action is Action.MOVE or facts.lost:
                run.stop()
            run.say(paused=self.action is not Action.RUN)
        sent_s = time.monotonic()
        held = {lease: run.report() for lease, run in self._runs.items()}
        try:
            orders = self._pull(Report(facts.room, tuple(held.values()), takes_jobs=not facts.lost))
        except Exception:
            for run in self._runs.values():
                run.acknowledged = -1  # the actor may restart with an older book
            raise
        until_s = sent_s + orders.lease_s * _LEASE_SHARE
        for lease in orders.keep:
            run = self._runs[lease]
            run.until_s = until_s
            run.acknowledged = max(run.acknowledged, held[lease].checkpoint_steps)
        for lease in orders.drop:
            self._runs[lease].stop()
            if not self._runs[lease].thread.is_alive():
                self._earlier_device_ns += self._runs.pop(lease).device_ns
        for start in orders.start:
            if start.lease not in self._runs:
                self._runs[start.lease] = _Run(self._runtime, start, self._codec, until_s, self._checkpoint_s)


def _lost(runtime: Runtime) -> bool:
    """Whether the runtime is closing or has lost its GPU, so that an error says nothing of the job."""
    try:
        return runtime.closing or runtime.stats().device_lost
    except Exception:  # it is closed
        return True


def _sentence(error: BaseException) -> str:
    return f'{type(error).__name__}: {error}'[:1000]
