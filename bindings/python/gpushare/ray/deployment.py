"""A Serve deployment whose replica owns a runtime and a GPU: what it says of itself, what it refuses, what it costs.

One replica is one process with one runtime and a whole GPU. Its LC requests and its best-effort jobs share the GPU by
that runtime; two processes on one GPU would not know of each other.
"""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpushare.enums import AppClass
from gpushare.options import AppOptions, RuntimeOptions
from gpushare.ray._estimate import Estimate, headroom
from gpushare.ray._placement import Room
from gpushare.ray._ranking import replicas_for
from gpushare.ray._running import Facts, Guard, Runner
from gpushare.records import DeviceInfo, PartitionPlan
from gpushare.runtime import Runtime

if TYPE_CHECKING:
    from typing_extensions import Unpack

_log = logging.getLogger(__name__)

LOAD_MAX = 0.7  # of LC work, where nothing was measured: beyond it queues grow fast
DECAY_S = 2.0  # of what a replica has seen: about 100 queries of a service of 50 a second
BE_WINDOW_NS = 1_000_000_000  # of be_share: a job says what it has had after each step
PULL_S = 0.2
CHECKPOINT_S = 1.0
RESUME_AFTER_S = 1.0
MOVE_AFTER_S = 5.0
CLOSE_S = 5.0
LC_RESOURCE = 'gpushare_lc'  # of a node: 1 for each GPU
_RESOURCE_STEP = 1e-4  # Ray counts resources in ten-thousandths


class WouldBeLateError(RuntimeError):
    """The replica predicts that it would miss the request's deadline, and has not begun it."""


class Replica:
    """Base class of a deployment. `runtime` is the GPU's runtime, and `app` the LC app of the deployment.

        class Chat(gpushare.ray.Replica):
            def __init__(self):
                super().__init__('chat', target_ns=50_000_000, jobs='jobs')
                self.kernel = self.runtime.register_kernel('chain1')

            async def __call__(self, prompt, within_s=None):
                with self.request(within_s):
                    return (await self.app.submit(self.kernel)).measured_ns

    name: of the LC app. kind: its name in the placement's pairs. service_ns: what a request takes, as far as known.
    load_max: the largest LC load at which its promise was measured to hold (calibration); headroom counts from it.
    jobs: the name of the Jobs actor whose best-effort jobs run here, from Serve's first health check on; None: none.
    jobs_max: how many at once.
    memory_bytes: GPU memory that jobs may take; None: not counted. runtime_options: of gpushare.Runtime.
    The other options are those of Runtime.create_app: target_ns, p99_bound, p99_alone_ns and so on.
    """

    def __init__(self, name: str, *, kind: str = '', service_ns: float = 0, load_max: float = LOAD_MAX,
                 jobs: str | None = None, jobs_max: int = 1, memory_bytes: int | None = None,
                 runtime_options: RuntimeOptions | None = None, **app_options: Unpack[AppOptions]) -> None:
        if not 0 < load_max <= 1:
            raise ValueError(f'load_max is {load_max}, and it must be above 0 and at most 1.')
        self.runtime = Runtime(**(runtime_options or {}))
        self.app = self.runtime.create_app(name, AppClass.LATENCY_CRITICAL, **app_options)
        self._load_max = load_max
        self._app_options = app_options
        self._kind, self._jobs_max, self._memory_bytes = kind or name, jobs_max, memory_bytes
        self._runner: Runner | None = None
        self._begun = False  # pulling of jobs
        self._lock = threading.Lock()
        self._bound_ns = _bound_ns(app_options)
        self._estimate = Estimate(service_ns, DECAY_S, time.monotonic_ns(), self._bound_ns)
        self._sequence = 0
        self._be_seen = (time.monotonic_ns(), 0)  # when device_ns of the jobs was read, and what it was
        self._be_share = 0.0  # over BE_WINDOW_NS or longer
        self._replica, deployment = self.replica_name()
        self._metrics = self.make_metrics(deployment, self._replica)
        if jobs is not None:
            from gpushare.ray.jobs import codec, puller
            self._runner = Runner(
                self.runtime, facts=self._facts, pull=puller(jobs, timeout_s=2 * PULL_S + 1), codec=codec(),
                guard=Guard(resume_after_s=RESUME_AFTER_S, move_after_s=MOVE_AFTER_S), period_s=PULL_S,
                checkpoint_s=CHECKPOINT_S)

    def replica_name(self) -> tuple[str, str]:
        """The replica's unique name and that of its deployment."""
        from ray import serve
        context = serve.get_replica_context()
        return context.replica_id.unique_id, context.deployment

    def make_metrics(self, deployment: str, replica: str) -> Any:
        """What the replica's figures go to: gpushare.ray.Metrics."""
        from gpushare.ray.metrics import Metrics
        return Metrics(deployment, replica)

    @contextlib.contextmanager
    def request(self, within_s: float | None = None) -> Iterator[None]:
        """Surrounds the work of one request, so that the replica counts it and predicts the next one.

        within_s: seconds that are left for it. Raises WouldBeLateError, before the work begins, if they are predicted
        not to be enough. A request that raises counts as ended, and its time is dropped.
        """
        now_ns = time.monotonic_ns()
        with self._lock:
            predicted_ns = self._estimate.wait_ns(now_ns) + self._estimate.service_ns(now_ns)
            late = within_s is not None and predicted_ns > within_s * 1e9
            if not late:
                arrival_ns = self._estimate.begin(now_ns)
        if late:
            self._metrics.refuse()
            raise WouldBeLateError(f'The request has {within_s} s, and replica {self._replica} predicts '
                                   f'{predicted_ns / 1e9:.3f} s.')
        served = False
        try:
            yield
            served = True
        finally:
            with self._lock:
                self._estimate.end(arrival_ns, time.monotonic_ns(), served)

    def record_routing_stats(self) -> dict[str, Any]:
        """Called by Serve every request_routing_stats_period_s: what LeastLatencyRouter reads."""
        self._begin_jobs()
        stats = self._stats()
        self._metrics.set(stats)
        return stats

    def record_replica_metadata(self) -> dict[str, Any]:
        """Called by Serve once: what does not change of the replica."""
        device = self.runtime.device()
        return {'device': device.name, 'simulated': device.simulated, 'sm_count': device.sm_count, 'kind': self._kind,
                'load_max': self._load_max}

    def record_autoscaling_stats(self) -> dict[str, float]:
        """Called by Serve: what HeadroomPolicy reads."""
        return {'gpushare_used': 1.0 - float(self._stats()['headroom'])}

    def check_health(self) -> None:
        """Called by Serve, which replaces the replica when this raises: its GPU is lost, or its runtime is closed."""
        if self.runtime.closing:
            raise RuntimeError(f'The runtime of replica {self._replica} is closed.')
        if self.runtime.stats().device_lost:
            raise RuntimeError(f'Replica {self._replica} has lost its GPU, {self.runtime.device().name}.')
        self._begin_jobs()

    def close(self) -> None:
        """Gives the jobs back with their last checkpoint, and closes the runtime. A second call does nothing."""
        if self._runner is not None:
            self._runner.close(CLOSE_S)
            self._runner = None
        self.runtime.close()

    def __del__(self) -> None:
        """Called by Serve before it stops a replica, once its requests are answered."""
        if hasattr(self, '_lock'):
            self.close()

    def _begin_jobs(self) -> None:
        """Pulls jobs from now on. Serve's first call comes when the subclass is made: its model has its memory."""
        with self._lock:
            if self._runner is not None and not self._begun:
                self._begun = True
                self._runner.begin()

    def _stats(self) -> dict[str, Any]:
        p99_ns = self.app.guarantee().p99_ns
        now_ns = time.monotonic_ns()
        runner = self._runner
        with self._lock:
            self._sequence += 1
            load, at_risk = self._estimate.load(now_ns), self._estimate.at_risk(now_ns)
            device_ns = runner.device_ns() if runner is not None else 0
            since_ns, before_ns = self._be_seen
            if now_ns - since_ns >= BE_WINDOW_NS:
                self._be_share = max((device_ns - before_ns) / (now_ns - since_ns), 0.0)
                self._be_seen = (now_ns, device_ns)
            return {
                'sequence': self._sequence, 'wait_ms': self._estimate.wait_ns(now_ns) * 1e-6,
                'service_ms': self._estimate.service_ns(now_ns) * 1e-6,
                'spread_ms': self._estimate.spread_ns(now_ns) * 1e-6, 'p99_ms': p99_ns * 1e-6,
                'p99_bound_ms': self._bound_ns * 1e-6, 'at_risk': at_risk, 'load': load,
                'headroom': headroom(load, self._load_max, at_risk), 'be_share': self._be_share,
                'jobs': runner.count() if runner is not None else 0}

    def _facts(self) -> Facts:
        stats = self._stats()
        room = Room(self._replica, self._kind, stats['load'], self._app_options.get('p99_bound') or 0.0,
                    stats['headroom'], stats['at_risk'], self._jobs_max, self._memory_bytes)
        return Facts(room, self.runtime.stats().device_lost)


def _bound_ns(options: AppOptions) -> float:
    """The latency that an app of these options promises; 0: none that is known."""
    target_ns = options.get('target_ns') or math.inf
    bound_ns = (options.get('p99_bound') or 0) * (options.get('p99_alone_ns') or 0)
    least_ns = min(target_ns, bound_ns or math.inf)
    return least_ns if least_ns < math.inf else 0.0


class HeadroomPolicy:
    """A policy of Serve's autoscaling: as many replicas as keep `target` of their admitted LC load used.

        autoscaling_config={'min_replicas': 1, 'max_replicas': 8,
                            'policy': {'policy_function': 'gpushare.ray.deployment:HeadroomPolicy'}}

    A replica whose guarantee is at risk counts as fully used. Before the first figures the number stays.
    """

    def __init__(self, target: float = 0.7) -> None:
        if not 0 < target <= 1:
            raise ValueError(f'target is {target}, and it must be above 0 and at most 1.')
        self._target = target

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        used: Mapping[Any, float] = (context.aggregated_metrics or {}).get('gpushare_used') or {}
        least, most = context.capacity_adjusted_min_replicas, context.capacity_adjusted_max_replicas
        if len(used) < context.current_num_replicas or not used:  # a new replica has not reported yet
            return min(max(context.target_num_replicas, least), most), {}
        return replicas_for(list(used.values()), self._target, least, most), {}


def admitted_fraction(lc_load: float, load_max: float = LOAD_MAX) -> float:
    """The fraction of a GPU that an LC load takes: 1 is all that its promise was measured to hold at.

    Raises ValueError for a load that one GPU does not admit: more replicas take it.
    """
    if not 0 < lc_load <= load_max <= 1:
        raise ValueError(f'An LC load of {lc_load} is not admitted on one GPU: it must be above 0 and at most '
                         f'load_max, {load_max}. Use more replicas.')
    return lc_load / load_max


def partition_fraction(plan: PartitionPlan, device: DeviceInfo) -> float:
    """The fraction of a GPU that a plan of partitions takes for periodic apps (Runtime.plan_partitions)."""
    return plan.partitions * plan.partition_sms / device.sm_count


def actor_options(*, lc_load: float, load_max: float = LOAD_MAX, simulated: bool = False,
                  num_cpus: float = 1, **options: Any) -> dict[str, Any]:
    """The option ray_actor_options of serve.deployment: a whole GPU, and the fraction of it that the LC load takes.

    Ray gives the replica a GPU of its own. The fraction is a custom resource, gpushare_lc, of which a node has 1 for
    each GPU, or less where less is to be admitted: ray start --resources='{"gpushare_lc": 8}'. A replica that does not
    fit waits. simulated: no GPU is asked for. options: more of Ray's, such as runtime_env.
    """
    fraction = math.ceil(admitted_fraction(lc_load, load_max) / _RESOURCE_STEP - 1e-6) * _RESOURCE_STEP
    resources = {**options.pop('resources', {}), LC_RESOURCE: round(fraction, 4)}
    return {'num_cpus': num_cpus, 'num_gpus': 0 if simulated else 1, 'resources': resources, **options}
