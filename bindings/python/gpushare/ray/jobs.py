"""Best-effort jobs on the GPUs of Serve's replicas: an actor that keeps the book, and its client.

The actor runs no job: it is another process than the replica, whose runtime must feed the GPU. Replicas that were made
with jobs=NAME pull from the actor of that name, load the job's callable and run it. What is decided is in _ledger.py
and _placement.py; what a replica does with it in _running.py.
"""

from __future__ import annotations

import math
import os
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray import cloudpickle

from gpushare.ray._ledger import Ledger, Orders, Report, Spec, State, counts
from gpushare.ray._placement import Pair, by_value
from gpushare.ray._running import Codec, JobGpu
from gpushare.ray.metrics import job_metrics

NAMESPACE = 'gpushare'
LEASE_S = 5.0
RESTART_S = 60.0  # a node's loss is found after up to 30 s, and the actor starts elsewhere
ANSWER_S = 1.0  # that an actor which runs has for a call, even at the end of a wait
_SAVE_PERIOD_S = 1.0  # of what pulls change; what callers change is saved at once


class JobsActor:
    """The book of the jobs, as a Ray actor. Made by start_jobs(); Jobs is its client.

    state_path: a file that holds the book across restarts of the actor. Without it, jobs end with the actor.
    """

    def __init__(self, name: str, pairs: Sequence[Pair], lease_s: float, state_path: str | None) -> None:
        # The leases are above those of a book that was lost.
        self._ledger = Ledger(by_value(pairs), lease_s=lease_s, last_lease=time.time_ns())
        self._path = pathlib.Path(state_path) if state_path else None
        self._saved_s, self._saved_changes = 0.0, 0
        self._set_metrics = job_metrics(name)
        if self._path is not None and self._path.is_file():
            self._ledger.restore(cloudpickle.loads(self._path.read_bytes()), time.monotonic())

    def submit(self, spec: Spec) -> None:
        """A new job; as Jobs.submit()."""
        self._ledger.submit(spec)
        self._save()

    def cancel(self, name: str) -> None:
        """Ends a job."""
        self._ledger.cancel(name)
        self._save()

    def forget(self, name: str) -> None:
        """Removes a job that has ended."""
        self._ledger.forget(name)
        self._save()

    def pull(self, report: Report) -> Orders:
        """What a replica asks every so often."""
        orders = self._ledger.pull(report, time.monotonic())
        # A start or an ending is on disk before the replica hears of it.
        if self._ledger.changes != self._saved_changes or time.monotonic() - self._saved_s > _SAVE_PERIOD_S:
            self._save()
        return orders

    def status(self) -> dict[str, dict[str, Any]]:
        """As Jobs.status()."""
        self._ledger.expire(time.monotonic())
        status = self._ledger.status()
        self._set_metrics(counts(status))
        return status

    def result(self, name: str) -> bytes | None:
        """As Jobs.result(), pickled."""
        return self._ledger.result(name)

    def placement_failure(self) -> str:
        """As Jobs.placement_failure()."""
        return self._ledger.placement_failure

    def _save(self) -> None:
        self._saved_s, self._saved_changes = time.monotonic(), self._ledger.changes
        self._set_metrics(counts(self._ledger.status()))
        if self._path is not None:
            partial = self._path.with_name(self._path.name + '.partial')
            with partial.open('wb') as file:
                file.write(cloudpickle.dumps(self._ledger.dump()))
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, self._path)


class Jobs:
    """The client of a Jobs actor.

    While the actor is gone, as when its node is lost, what only reads waits up to RESTART_S for Ray to start it again;
    what changes something raises ray.exceptions.RayActorError, because it may have happened or not. An actor that
    does not answer for RESTART_S raises ray.exceptions.GetTimeoutError, which is a TimeoutError.
    """

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def submit(self, name: str, job: Callable[..., Any], *, kind: str = '', memory_bytes: int = 0, weight: float = 1.0,
               **arguments: Any) -> None:
        """A job that a replica calls as job(gpu, checkpoint, **arguments) in its own process.

        job: a class or function that the replica can import, or one of the main program, which is pickled with its
        arguments to at most 1 MiB. It returns
        an object with step(), which does a bounded part of the work and returns False after the last one; and if it
        likes checkpoint(), of which a later replica gets the last value; result(); close().
        kind: its name in the placement's pairs. memory_bytes: GPU memory that it takes. weight: as of a BE app.
        """
        spec = Spec(name, kind, cloudpickle.dumps((job, arguments)), memory_bytes, weight)
        ray.get(self._actor.submit.remote(spec), timeout=RESTART_S)

    def status(self) -> dict[str, dict[str, Any]]:
        """Of each job its state, replica, steps, and how often it failed, moved or lost its replica."""
        status: dict[str, dict[str, Any]] = self._read(self._actor.status)
        return status

    def result(self, name: str) -> Any:
        """What the job's result() returned. Raises RuntimeError unless the job is done."""
        return cloudpickle.loads(self._read(self._actor.result, name))

    def wait(self, name: str, timeout_s: float) -> Any:
        """Waits until the job has ended, and returns its result. Raises TimeoutError."""
        end_s = time.monotonic() + timeout_s
        while True:
            status = self._read(self._actor.status, end_s=end_s)[name]
            if status['state'] not in (State.WAITING.value, State.LEASED.value):
                return self.result(name)
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                raise TimeoutError(f"The job '{name}' has not ended within {timeout_s} s: {status}")
            time.sleep(min(0.1, left_s))

    def cancel(self, name: str) -> None:
        """Ends the job. Its replica stops it at its next pull, after the step that runs."""
        ray.get(self._actor.cancel.remote(name), timeout=RESTART_S)

    def forget(self, name: str) -> None:
        """Frees the name of a job that has ended."""
        ray.get(self._actor.forget.remote(name), timeout=RESTART_S)

    def placement_failure(self) -> str:
        """Why jobs were not placed when it was last tried; '': they were."""
        failure: str = self._read(self._actor.placement_failure)
        return failure

    def _read(self, method: Any, *arguments: Any, end_s: float = math.inf) -> Any:
        """Calls a method that changes nothing, again and again while the actor restarts, until end_s at the latest."""
        end_s = min(end_s, time.monotonic() + RESTART_S)
        while True:
            try:
                return ray.get(method.remote(*arguments), timeout=max(end_s - time.monotonic(), ANSWER_S))
            except ray.exceptions.RayActorError:
                if time.monotonic() > end_s:
                    raise
                time.sleep(0.5)


def start_jobs(name: str = 'jobs', *, pairs: Sequence[Pair] = (), lease_s: float = LEASE_S,
               state_path: str | os.PathLike[str] | None = None, **actor_options: Any) -> Jobs:
    """Starts the Jobs actor of this name, or finds it. It is detached, Ray restarts it, and it loads libgpushare.

    pairs: what LC and BE kinds do to each other; without them a job goes where the most headroom is. lease_s: after
    which time a job of a replica that is gone starts again; a step of a job must be shorter than a fifth of it.
    state_path: a file, which a restart of the actor on any node can read; without it a restart loses the jobs.
    actor_options: of Ray, such as resources or runtime_env.
    """
    options = {'name': name, 'namespace': NAMESPACE, 'lifetime': 'detached', 'get_if_exists': True, 'num_cpus': 0,
               'max_restarts': -1, **actor_options}
    actor = ray.remote(JobsActor).options(**options).remote(
        name, tuple(pairs), lease_s, None if state_path is None else os.fspath(state_path))
    ray.get(actor.status.remote(), timeout=RESTART_S)  # an error of the actor's start is raised here, at once
    return Jobs(actor)


def connect_jobs(name: str = 'jobs') -> Jobs:
    """The Jobs actor of this name. Raises ValueError if there is none."""
    return Jobs(ray.get_actor(name, namespace=NAMESPACE))


def puller(name: str, timeout_s: float) -> Callable[[Report], Orders]:
    """How a replica pulls. The actor may start later than the replica, and again under the same name."""
    found: list[Any] = []

    def pull(report: Report) -> Orders:
        if not found:
            found.append(ray.get_actor(name, namespace=NAMESPACE))
        try:
            reference = found[0].pull.remote(report)
            try:
                orders: Orders = ray.get(reference, timeout=timeout_s)
            except ray.exceptions.GetTimeoutError:
                ray.cancel(reference)  # one that has not begun: pulls must not queue at a slow actor
                raise
        except Exception:
            found.clear()  # looked up anew: another actor may have the name
            raise
        return orders
    return pull


def codec() -> Codec:
    """How a replica calls a job's callable and pickles what it says."""
    def make(code: bytes, gpu: JobGpu, checkpoint: bytes | None) -> Any:
        job, arguments = cloudpickle.loads(code)
        return job(gpu, None if checkpoint is None else cloudpickle.loads(checkpoint), **arguments)
    return Codec(make, cloudpickle.dumps)
