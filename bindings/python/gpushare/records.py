"""The result structs of the C ABI as frozen dataclasses. A comment is that of the C header."""

# Written by bindings/python/generate.py from the C headers. Do not edit.

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from gpushare import abi
from gpushare.enums import (
    AppClass,
    EventType,
    Form,
    Intensity,
    Reason,
    TaskKind,
    Verdict,
)


def _by_reason(held_ns: Iterable[int]) -> dict[Reason, int]:
    """Times by the reason of a hold. A reason without any is left out."""
    return {Reason(abi.GPUSHARE_REASON_HOLD_HEADROOM + index): held for index, held in enumerate(held_ns) if held}


@dataclasses.dataclass(frozen=True)
class ResourceDemand:
    """gpushare_resource_demand"""

    # instruction issue, of each SM that it runs on
    issue: float
    # Tensor cores, of each SM that it runs on
    tensor: float
    # special function units, of each SM that it runs on
    special: float
    # DRAM bandwidth of the device, when it runs on all SMs
    dram: float
    # L2 bandwidth of the device, when it runs on all SMs
    l2: float

    @classmethod
    def from_c(cls, struct: abi.gpushare_resource_demand) -> ResourceDemand:
        """Copies the C struct and the strings that it points to."""
        return cls(
            issue=struct.issue,
            tensor=struct.tensor,
            special=struct.special,
            dram=struct.dram,
            l2=struct.l2,
        )


@dataclasses.dataclass(frozen=True)
class KernelInfo:
    """gpushare_kernel_info"""

    kind: TaskKind
    threads_per_block: int
    registers_per_thread: int
    shared_memory_bytes: int
    workers_per_sm_max: int
    # a registered GRAPH: it has several segments
    evictable: bool
    confinable: bool
    roomy: bool
    # GRAPH: nodes, each counted as often as it repeats
    node_count: int
    # KERNEL: one block task alone; 0: unknown
    block_task_ns: int
    yield_interval_ns: int
    # One launch alone on the whole device: the caller's estimate, else the sum of a graph's nodes
    # and gaps; 0: unknown. For a KERNEL estimate it as rounds of block_task_ns, where one round
    # executes SMs times workers_per_sm_max block tasks.
    solo_ns: int
    demand: ResourceDemand
    # GRAPH: why it runs whole, a sentence; null: it has segments, is not registered, or is no
    # graph. Lives as long as the runtime.
    whole_reason: str
    # GRAPH: alone on the whole device; 0: unknown
    longest_segment_ns: int
    # GRAPH: 1: it runs whole; 0: it is not registered
    segment_count: int

    @classmethod
    def from_c(cls, struct: abi.gpushare_kernel_info) -> KernelInfo:
        """Copies the C struct and the strings that it points to."""
        return cls(
            kind=TaskKind(struct.kind),
            threads_per_block=struct.threads_per_block,
            registers_per_thread=struct.registers_per_thread,
            shared_memory_bytes=struct.shared_memory_bytes,
            workers_per_sm_max=struct.workers_per_sm_max,
            evictable=bool(struct.evictable),
            confinable=bool(struct.confinable),
            roomy=bool(struct.roomy),
            node_count=struct.node_count,
            block_task_ns=struct.block_task_ns,
            yield_interval_ns=struct.yield_interval_ns,
            solo_ns=struct.solo_ns,
            demand=ResourceDemand.from_c(struct.demand),
            whole_reason=(struct.whole_reason or b'').decode('utf-8', 'replace'),
            longest_segment_ns=struct.longest_segment_ns,
            segment_count=struct.segment_count,
        )


@dataclasses.dataclass(frozen=True)
class CompletionRecord:
    """gpushare_completion_record"""

    verdict: Verdict
    ticket: int
    # 0: none
    query: int
    # gpushare_app_id
    app_id: int
    queue_id: int
    # gpushare_kernel_id, 0: none
    kernel_id: int
    kind: TaskKind
    submit_ns: int
    # the scheduler accepted it
    admit_ns: int
    # first launch call
    launch_ns: int
    # first block starts, by the device; 0 where the device has no timestamps
    start_ns: int
    # last block ends, by the device
    end_ns: int
    # the host saw the end
    complete_ns: int
    # predicted duration alone on the whole device
    predicted_ns: int
    # error bar of predicted_ns
    predicted_error_ns: int
    # device time, summed over its launches, two of which may run at once
    measured_ns: int
    # time between evictions and relaunches
    evicted_ns: int
    # block tasks executed
    block_tasks: int
    evictions: int
    launches: int
    # of the last launch
    form: Form
    # set of SMs of the last launch, an index; 0: the whole device
    place: int
    launch_reason: Reason
    # why it last waited; NONE: it never did
    hold_reason: Reason
    # the first kernel that ran beside it; 0: none
    beside_kernel_id: int
    # CUresult of the CUDA call that failed it, or what it waited for; 0: none did.
    error_code: int
    # VERDICT_FAILED: the first of its wait_tickets whose task did not end with VERDICT_OK. Value 0:
    # the task failed by itself. The ticket may be released already.
    failed_dependency: int
    # how that task ended; PENDING: there is none
    failed_dependency_verdict: Verdict

    @classmethod
    def from_c(cls, struct: abi.gpushare_completion_record) -> CompletionRecord:
        """Copies the C struct and the strings that it points to."""
        return cls(
            verdict=Verdict(struct.verdict),
            ticket=int(struct.ticket.value),
            query=int(struct.query.value),
            app_id=struct.app_id,
            queue_id=struct.queue_id,
            kernel_id=struct.kernel_id,
            kind=TaskKind(struct.kind),
            submit_ns=struct.submit_ns,
            admit_ns=struct.admit_ns,
            launch_ns=struct.launch_ns,
            start_ns=struct.start_ns,
            end_ns=struct.end_ns,
            complete_ns=struct.complete_ns,
            predicted_ns=struct.predicted_ns,
            predicted_error_ns=struct.predicted_error_ns,
            measured_ns=struct.measured_ns,
            evicted_ns=struct.evicted_ns,
            block_tasks=struct.block_tasks,
            evictions=struct.evictions,
            launches=struct.launches,
            form=Form(struct.form),
            place=struct.place,
            launch_reason=Reason(struct.launch_reason),
            hold_reason=Reason(struct.hold_reason),
            beside_kernel_id=struct.beside_kernel_id,
            error_code=struct.error_code,
            failed_dependency=int(struct.failed_dependency.value),
            failed_dependency_verdict=Verdict(struct.failed_dependency_verdict),
        )


@dataclasses.dataclass(frozen=True)
class DeviceInfo:
    """gpushare_device_info"""

    simulated: bool
    # "cuda", "sim" or "null"; lives as long as the library
    name: str
    # name of the profile; lives as long as the runtime
    profile: str
    # policy at creation; lives as long as the runtime
    policy: str
    # the clock moves only when the flow is driven
    virtual_time: bool
    # the device can confine work to a set of SMs
    partitions: bool
    # the device can evict worker launches
    eviction: bool
    # records have start_ns and end_ns
    timestamps: bool
    sm_count: int
    # partitions are made of groups of this many SMs
    sm_granularity: int
    # most streams of the library
    lanes_max: int
    # most sets of SMs, the whole device included
    places_max: int
    threads_per_sm: int
    registers_per_sm: int
    shared_memory_per_sm_bytes: int
    blocks_per_sm: int
    launch_latency_ns: int
    completion_latency_ns: int
    eviction_write_latency_ns: int
    # copy rate of pinned host memory
    pinned_bytes_per_ns: float

    @classmethod
    def from_c(cls, struct: abi.gpushare_device_info) -> DeviceInfo:
        """Copies the C struct and the strings that it points to."""
        return cls(
            simulated=bool(struct.simulated),
            name=(struct.name or b'').decode('utf-8', 'replace'),
            profile=(struct.profile or b'').decode('utf-8', 'replace'),
            policy=(struct.policy or b'').decode('utf-8', 'replace'),
            virtual_time=bool(struct.virtual_time),
            partitions=bool(struct.partitions),
            eviction=bool(struct.eviction),
            timestamps=bool(struct.timestamps),
            sm_count=struct.sm_count,
            sm_granularity=struct.sm_granularity,
            lanes_max=struct.lanes_max,
            places_max=struct.places_max,
            threads_per_sm=struct.threads_per_sm,
            registers_per_sm=struct.registers_per_sm,
            shared_memory_per_sm_bytes=struct.shared_memory_per_sm_bytes,
            blocks_per_sm=struct.blocks_per_sm,
            launch_latency_ns=struct.launch_latency_ns,
            completion_latency_ns=struct.completion_latency_ns,
            eviction_write_latency_ns=struct.eviction_write_latency_ns,
            pinned_bytes_per_ns=struct.pinned_bytes_per_ns,
        )


@dataclasses.dataclass(frozen=True)
class LatencySummary:
    """gpushare_latency_summary"""

    count: int
    p50_ns: int
    p99_ns: int
    max_ns: int

    @classmethod
    def from_c(cls, struct: abi.gpushare_latency_summary) -> LatencySummary:
        """Copies the C struct and the strings that it points to."""
        return cls(
            count=struct.count,
            p50_ns=struct.p50_ns,
            p99_ns=struct.p99_ns,
            max_ns=struct.max_ns,
        )


@dataclasses.dataclass(frozen=True)
class RuntimeStats:
    """gpushare_runtime_stats"""

    simulated: bool
    # passes of the flow
    ticks: int
    plans: int
    launches: int
    # LC launches by the submitting thread
    fast_path_launches: int
    evictions: int
    # eviction writes that did not take effect in time
    evictions_blocked: int
    # launches that never ended
    hung: int
    # sum over SMs of their busy time
    busy_sm_ns: int
    tasks_pending: int
    # durations that solo predictions were compared with
    prediction_samples: int
    # mean absolute relative error of solo predictions
    prediction_error: float
    # from the eviction call until the last worker left
    eviction_latency: LatencySummary
    # host time of the plan stage; 0 in virtual time
    plan_time: LatencySummary
    # An error made the device unusable, or launches hung until a class of work had no lane left.
    device_lost: bool
    app_count: int

    @classmethod
    def from_c(cls, struct: abi.gpushare_runtime_stats) -> RuntimeStats:
        """Copies the C struct and the strings that it points to."""
        return cls(
            simulated=bool(struct.simulated),
            ticks=struct.ticks,
            plans=struct.plans,
            launches=struct.launches,
            fast_path_launches=struct.fast_path_launches,
            evictions=struct.evictions,
            evictions_blocked=struct.evictions_blocked,
            hung=struct.hung,
            busy_sm_ns=struct.busy_sm_ns,
            tasks_pending=struct.tasks_pending,
            prediction_samples=struct.prediction_samples,
            prediction_error=struct.prediction_error,
            eviction_latency=LatencySummary.from_c(struct.eviction_latency),
            plan_time=LatencySummary.from_c(struct.plan_time),
            device_lost=bool(struct.device_lost),
            app_count=struct.app_count,
        )


@dataclasses.dataclass(frozen=True)
class AppStats:
    """gpushare_app_stats"""

    app_class: AppClass
    submitted: int
    completed: int
    failed: int
    dropped: int
    cancelled: int
    # refused at submit, for any reason
    rejected: int
    evictions: int
    # tasks submitted and not complete
    queue_depth: int
    # device time, summed over the launches of its tasks
    device_ns: int
    # predicted whole-device time of its completed work
    work_ns: int
    # block tasks executed
    block_tasks: int
    # from submit (queries: from arrival) to completion
    latency: LatencySummary

    @classmethod
    def from_c(cls, struct: abi.gpushare_app_stats) -> AppStats:
        """Copies the C struct and the strings that it points to."""
        return cls(
            app_class=AppClass(struct.app_class),
            submitted=struct.submitted,
            completed=struct.completed,
            failed=struct.failed,
            dropped=struct.dropped,
            cancelled=struct.cancelled,
            rejected=struct.rejected,
            evictions=struct.evictions,
            queue_depth=struct.queue_depth,
            device_ns=struct.device_ns,
            work_ns=struct.work_ns,
            block_tasks=struct.block_tasks,
            latency=LatencySummary.from_c(struct.latency),
        )


@dataclasses.dataclass(frozen=True)
class AppGuarantee:
    """gpushare_app_guarantee"""

    app_class: AppClass
    # promised, as in gpushare_app_options; 0: none
    target_ns: int
    p99_bound: float
    p50_bound: float
    # in the window
    queries: int
    # delivered, from arrival to completion; to 1.6 %
    p50_ns: int
    p99_ns: int
    # p99_ns / p99_alone_ns; 0: p99 alone is unknown
    p99_over_alone: float
    # Share of the window above the target, or above p99_bound x p99_alone_ns; 0 where neither is
    # known. The promise is kept up to 0.01.
    late_share: float
    # The tail account (docs/glossary.md): queries that BE work may still make late; negative: a
    # debt.
    tail_credit: float
    # queries that were late and met BE work on credit, since creation
    queries_late_for_be: int
    # BE: time that the planner held the app's queue heads, for GPUSHARE_REASON_HOLD_HEADROOM +
    # index.
    held_ns: dict[Reason, int]

    @classmethod
    def from_c(cls, struct: abi.gpushare_app_guarantee) -> AppGuarantee:
        """Copies the C struct and the strings that it points to."""
        return cls(
            app_class=AppClass(struct.app_class),
            target_ns=struct.target_ns,
            p99_bound=struct.p99_bound,
            p50_bound=struct.p50_bound,
            queries=struct.queries,
            p50_ns=struct.p50_ns,
            p99_ns=struct.p99_ns,
            p99_over_alone=struct.p99_over_alone,
            late_share=struct.late_share,
            tail_credit=struct.tail_credit,
            queries_late_for_be=struct.queries_late_for_be,
            held_ns=_by_reason(struct.held_ns),
        )


@dataclasses.dataclass(frozen=True)
class TraceSummary:
    """gpushare_trace_summary"""

    records: int
    # events for which there was no room
    dropped: int
    # equal for two runs with the same decisions
    decision_digest: int

    @classmethod
    def from_c(cls, struct: abi.gpushare_trace_summary) -> TraceSummary:
        """Copies the C struct and the strings that it points to."""
        return cls(
            records=struct.records,
            dropped=struct.dropped,
            decision_digest=struct.decision_digest,
        )


@dataclasses.dataclass(frozen=True)
class Event:
    """gpushare_event"""

    type: EventType
    time_ns: int
    # number of a ticket, query, app or lane
    id: int
    a: int
    b: int
    c: int
    d: int
    app_id: int
    kernel_id: int
    # index of a set of SMs; -1: none
    place: int
    reason: Reason
    # form of a launch, outcome of a part, verdict of a completion, kind of a choice
    detail: int
    app_class: AppClass

    @classmethod
    def from_c(cls, struct: abi.gpushare_event) -> Event:
        """Copies the C struct and the strings that it points to."""
        return cls(
            type=EventType(struct.type),
            time_ns=struct.time_ns,
            id=struct.id,
            a=struct.a,
            b=struct.b,
            c=struct.c,
            d=struct.d,
            app_id=struct.app_id,
            kernel_id=struct.kernel_id,
            place=struct.place,
            reason=Reason(struct.reason),
            detail=struct.detail,
            app_class=AppClass(struct.app_class),
        )


@dataclasses.dataclass(frozen=True)
class KernelCalibration:
    """gpushare_kernel_calibration"""

    kind: TaskKind
    name: str
    # of the sample task
    block_tasks: int
    # one launch of the original form, alone on the whole device
    solo_ns: int
    # one launch of the worker form; 0: it has none
    worker_solo_ns: int
    # one block task alone, with all workers of the SM resident
    block_task_ns: int
    # from the eviction call to the end of the evicted launch
    eviction_p50_ns: int
    # 0: not evictable
    eviction_p99_ns: int
    # relative standard deviation of block_task_ns; 0: none seen
    block_task_spread: float
    # extra time of the worker form, 0.003 = 0.3 %; below 0: it is faster
    worker_overhead: float
    saturating_occupancy: float
    speed_count: int
    knee_count: int
    # M of CapSM
    workers_per_sm_max: int
    # 1: from the checkpoint, not measured now
    kept: bool
    # the smallest slice within slice_overhead_max; 0: none found
    slice_block_tasks: int
    # extra time of the task in slices of that size, over one launch
    slice_overhead: float
    # The fewest workers an SM that give 99 % of full speed; 0: unknown.
    workers_per_sm_least: int
    intensity: Intensity

    @classmethod
    def from_c(cls, struct: abi.gpushare_kernel_calibration) -> KernelCalibration:
        """Copies the C struct and the strings that it points to."""
        return cls(
            kind=TaskKind(struct.kind),
            name=(struct.name or b'').decode('utf-8', 'replace'),
            block_tasks=struct.block_tasks,
            solo_ns=struct.solo_ns,
            worker_solo_ns=struct.worker_solo_ns,
            block_task_ns=struct.block_task_ns,
            eviction_p50_ns=struct.eviction_p50_ns,
            eviction_p99_ns=struct.eviction_p99_ns,
            block_task_spread=struct.block_task_spread,
            worker_overhead=struct.worker_overhead,
            saturating_occupancy=struct.saturating_occupancy,
            speed_count=struct.speed_count,
            knee_count=struct.knee_count,
            workers_per_sm_max=struct.workers_per_sm_max,
            kept=bool(struct.kept),
            slice_block_tasks=struct.slice_block_tasks,
            slice_overhead=struct.slice_overhead,
            workers_per_sm_least=struct.workers_per_sm_least,
            intensity=Intensity(struct.intensity),
        )


@dataclasses.dataclass(frozen=True)
class CalibrationProgress:
    """gpushare_calibration_progress"""

    # steps done of `total`: the device, each kernel, each pair, each fused kernel
    done: int
    total: int
    # "device", or the name of what is measured now or was just measured
    what: str
    # After the last kernel: a sentence about something that could not be measured. Else null.
    note: str

    @classmethod
    def from_c(cls, struct: abi.gpushare_calibration_progress) -> CalibrationProgress:
        """Copies the C struct and the strings that it points to."""
        return cls(
            done=struct.done,
            total=struct.total,
            what=(struct.what or b'').decode('utf-8', 'replace'),
            note=(struct.note or b'').decode('utf-8', 'replace'),
        )
