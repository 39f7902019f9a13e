"""The options structs of the C ABI as keyword arguments. A comment is that of the C header.

A keyword that is left out has the field's default. Durations are nanoseconds. A `void*` of the C header is an
address: an int. What a method takes as a parameter of its own is missing here.
"""

# Written by bindings/python/generate.py from the C headers. Do not edit.

from __future__ import annotations

from typing import TypedDict

from gpushare.enums import (
    Choice,
    CopyDirection,
    DataType,
    Drive,
    Latency,
    LibraryMode,
    LibraryOperation,
    TaskKind,
)


class RuntimeOptions(TypedDict, total=False):
    """gpushare_runtime_options"""

    drive: Drive
    # "auto", "cuda", "sim" or "null". Null: the value of GPUSHARE_DEVICE in the environment, else
    # "auto". "auto" takes CUDA where there is a GPU, else the simulated device. That fallback is
    # logged once, and metrics and traces are then marked SIMULATED.
    device: str
    # null: "adaptive"; gpushare_policy_names lists all
    policy: str
    # null: the built-in profile of an H200
    profile_path: str
    # of the random numbers of the simulated device; 0: 1
    seed: int
    # detail of the simulated device: "kernel" (default) or "block"
    sim_tier: str
    # faults of the simulated device, for tests (docs/abi.md); null: none
    sim_faults: str
    # which GPU, from 0
    device_ordinal: int
    # most splits of the device into an LC and a BE side; 0: 16, -1: none
    splits_max: int
    # A launch is hung when it shows no progress for the larger of hang_floor_ns and hang_factor x
    # T. T is its predicted time on its SMs, with its workers. Progress is a completion on its lane,
    # or an earlier launch that still holds its SMs. A launch of workers also shows progress by each
    # block task that it claims, so its T is the predicted time of one block task. A hang is found
    # at most twice that time after the last progress. The task is then TIMED_OUT, and its lane is
    # replaced. hang_floor_ns 0: 10 s. hang_factor 0: 20.
    hang_floor_ns: int
    hang_factor: float
    # BE returns this long after the last LC query; 0: 2 us, -1: at once.
    be_return_hysteresis_ns: int
    # limit of the shutdown that the last release does; 0: 10 s
    shutdown_timeout_ns: int
    # With GPUSHARE_DRIVE_THREAD on a device in real time (docs/threading.md).
    latency: Latency


class AppOptions(TypedDict, total=False):
    """gpushare_app_options"""

    # LC: latency target of a query; 0: none; BE: must be 0
    target_ns: int
    # LC: most p99 latency over p99 alone, 1.05 = 5 % more; at least 1; 0: none; BE: must be 0
    p99_bound: float
    # LC, hint: p99 alone at the expected load; 0: unknown; BE: must be 0
    p99_alone_ns: int
    # LC, hint: one query on an idle device; 0: unknown; BE: must be 0
    solo_ns: int
    # BE: share of device time among BE apps with work (docs/glossary.md); 0: 1; LC: not used
    weight: float
    # LC: drop a query that is late at admission; BE: must be 0
    drop_late: bool
    # tasks accepted and not yet released; 0: 1024, at most 16384
    tasks_max: int
    # LC: most median latency over the median alone; at least 1; 0: none; BE: must be 0. The policy
    # adaptive keeps it; the median moves more than the p99 does.
    p50_bound: float


class ReservationOptions(TypedDict, total=False):
    """gpushare_reservation_options"""

    # LC: reservation; BE: quota. In CapSMs (capacity of one SM each); 0 removes it.
    capsms: int
    # 1: on whole SMs that no other app uses; 0: spread over any SMs
    packed: bool


class SimulationRecord(TypedDict, total=False):
    """gpushare_simulation_record"""

    # one block task alone, with all workers of the SM resident
    block_task_ns: int
    # relative standard deviation of block_task_ns
    block_task_spread: float
    # Extra time of the worker form over the original grid, 0.003 = 0.3 %; -0.5 to 10.
    worker_overhead: float
    # Outstanding memory requests relative to those of a streaming kernel.
    memory_parallelism: float
    # Occupancy below which the speed of an SM falls in proportion; 0: 1.
    saturating_occupancy: float
    # between two dependent nodes
    node_gap_ns: int


class LibraryCall(TypedDict, total=False):
    """gpushare_library_call"""

    operation: LibraryOperation
    type: DataType
    mode: LibraryMode
    # 1: NHWC; 0: NCHW
    channels_last: bool
    transpose_a: bool
    transpose_b: bool
    # MATMUL: d has m rows and n columns; the sum runs over k
    m: int
    n: int
    k: int
    # number of matrices or images; 0: 1
    batch: int
    channels: int
    height: int
    width: int
    filters: int
    # of a filter, or of the pooling window
    filter_height: int
    # of a filter, or of the pooling window
    filter_width: int
    padding: int
    # 0: 1
    stride: int
    # 0: 1
    dilation: int
    # 0: 1
    groups: int


class KernelOptions(TypedDict, total=False):
    """gpushare_kernel_options"""

    # KERNEL (default), GRAPH or LIBRARY
    kind: TaskKind
    # 0: the profile's, else the function's, else 256
    threads_per_block: int
    # 0: the profile's, else the function's, else 32
    registers_per_thread: int
    # Of a block, static and dynamic; 0: the profile's, else the function's, else 0.
    shared_memory_bytes: int
    # M of CapSM: most workers that fit in an SM. 0: the profile's, else what the function's
    # resources allow, else 8.
    workers_per_sm_max: int
    # KERNEL: it has a worker form that reads an eviction word; default: the profile's, else no.
    evictable: Choice
    # It may run on a part of the device; default: the profile's, else yes.
    confinable: Choice
    # Blocks of other kernels fit beside it in an SM; default: the profile's, else no.
    roomy: Choice
    # Time between yield points inside a block task; 0: the profile's, else none.
    yield_interval_ns: int
    # Estimate of one launch alone on the whole device; 0: the profile's, else none.
    solo_ns: int
    # CUfunction of the original grid; null on simulated devices
    original_function: int
    # CUfunction of the worker form (docs/kernel-contract.md)
    worker_function: int
    # GRAPH: a cudaGraph_t, which is instantiated once for each place
    graph: int
    # GRAPH: an instantiated cudaGraphExec_t; it runs on the whole device and is not confinable.
    graph_exec: int
    # shape of a block; three zeros: {threads_per_block, 1, 1}
    block_x: int
    block_y: int
    block_z: int
    dynamic_shared_memory_bytes: int
    # CUfunction of the slice form; null: the worker form runs slices
    slice_function: int
    # GRAPH: length of the segments that BE tasks of the graph run in and are evicted between; tasks
    # of LC apps run it whole. 0: 100 us; -1: never cut. Longer nodes are segments of their own. A
    # graph in segments is submitted by apps of one class; the other class needs a second capture.
    # On CUDA no node's duration is known without measure_nodes: a segment has as many nodes as fit
    # into segment_ns at their mean duration, solo_ns over their number, or 9 us each without
    # solo_ns. So segments whose nodes are longer than the mean take longer, as do those of a graph
    # that would need too many (docs/segments.md). gpushare_kernel_info has the resulting segments.
    segment_ns: int
    # GRAPH: registering may execute the graph, twice and whole, which measures its nodes: then
    # segments are cut by duration. Never for a graph_exec.
    measure_nodes: bool
    # GRAPH: registering may execute the graph in each place, a few times and for about a second in
    # all, which measures its speed on fewer SMs. Without it that counts as in proportion to the
    # SMs, so a query is hardly ever confined. Nothing is measured of a graph that is not
    # confinable, or on a simulated device. Never for a graph_exec.
    measure_places: bool


class FusedKernelOptions(TypedDict, total=False):
    """gpushare_fused_kernel_options"""

    # blocks of the Tensor-core part in one fused block, at most 32; 0: 1
    tensor_blocks: int
    # blocks of the CUDA-core part in one fused block, at most 32; 0: 1
    cuda_blocks: int
    # Load ratio at which both parts end together (Tacker). 0: the profile's for a fused kernel of
    # this name, else 1. What the profile measured at other load ratios counts in any case.
    opportune_load_ratio: float
    # Fused duration at that load ratio over the Tensor-core part's own duration; 0: likewise.
    opportune_duration_ratio: float
    # CUfunction that GPUSHARE_FUSED_KERNEL makes. Its parameters are a header and the arguments of
    # the Tensor-core part, then a header and the arguments of the CUDA-core part. Null on simulated
    # devices, and on a CUDA device for a pair that is never launched.
    function: int
    # of a fused block; 0: what the device reads from the function
    threads_per_block: int
    # 0: none
    dynamic_shared_memory_bytes: int
    # Fused blocks that fit in an SM; 0: what the device computes from the function.
    blocks_per_sm: int


class QueryOptions(TypedDict, total=False):
    """gpushare_query_options"""

    # as in gpushare_query_begin
    arrival_ns: int
    # Size of the query's input: tokens, images, bytes, in the same unit for all queries of the app;
    # at most 1e12. The library learns how long a query takes alone from its size, and predicts what
    # is left of an active query by it. 0: unknown, and the mean of the app's queries counts.
    input_size: float


class TaskOptions(TypedDict, total=False):
    """gpushare_task_options"""

    # DEFAULT: the kind of `kernel`
    kind: TaskKind
    # KERNEL: number of blocks of the original grid, 1 to 2^40
    block_tasks: int
    # LC without a query: when the request was meant to arrive; 0: now
    arrival_ns: int
    # LIBRARY, OPAQUE: caller's bound on the device time; 0: unknown
    declared_ns: int
    # MEMCPY: buffers stay the caller's until the ticket completes
    copy_destination: int
    # MEMCPY: both buffers may be null on the simulated device
    copy_source: int
    # MEMCPY: 1 to 2^42
    copy_size_bytes: int
    # MEMCPY: must be given
    copy_direction: CopyDirection
    # MEMCPY: 1 if the host memory is pageable, 0 if it is pinned
    copy_pageable: bool
    # Event to record after it (cudaEvent_t), or null. A task with one is never fused. It is
    # recorded behind each launch of the task: an evicted task records it again, so wait for the
    # ticket first. If it cannot be recorded, the task runs and fails with the event's error code.
    signal_event: int
    # KERNEL: the original grid, whose product is block_tasks; three zeros: {block_tasks, 1, 1}.
    grid_x: int
    grid_y: int
    grid_z: int


class RegionOptions(TypedDict, total=False):
    """gpushare_region_options"""

    # upper bound on the device time of the region; must be given
    bound_ns: int


class TraceOptions(TypedDict, total=False):
    """gpushare_trace_options"""

    # null: no Perfetto trace
    perfetto_path: str
    # null: no event log
    event_log_path: str
    # Events kept in memory, 64 bytes each; 0: 2^20. Further events are dropped and counted.
    records_max: int


class CalibrationOptions(TypedDict, total=False):
    """gpushare_calibration_options"""

    # which GPU, from 0
    device_ordinal: int
    # as in gpushare_runtime_options
    device: str
    # Where values that are not measured come from; null: the built-in profile.
    profile_path: str
    # as in gpushare_runtime_options
    sim_tier: str
    # as in gpushare_runtime_options
    sim_faults: str
    # 0: 1
    seed: int
    # device time for each kernel; 0: 30 s
    kernel_time_ns: int
    # limit of one launch; 0: 10 s
    hang_limit_ns: int
    # Buffers to measure the rates of copies with. Without them the profile keeps its rates. They
    # may be null on simulated devices. pageable_buffer is ordinary host memory.
    device_buffer: int
    pinned_buffer: int
    pageable_buffer: int
    # size of each buffer; 128 MB is enough
    buffer_size_bytes: int
    # samples of each duration, whose median is taken; 0: 7
    repeats: int
    # evictions of each kernel, at most 128; 0: 100
    evictions: int
    # 1: continue from the checkpoint, output_path with ".partial", if it exists.
    resume: bool
    # Device time of this call; 0: no limit. Notes name what is not reached, and the checkpoint
    # stays.
    total_time_ns: int
    # limit for the smallest slice, 0.02 = 2 %; 0: 0.02
    slice_overhead_max: float
    # A samples file (docs/samples.md) that measured durations are appended to, repeat by repeat;
    # null: none. With it, more sizes, load ratios and copies are measured. FAILED_PRECONDITION if
    # the file is of another GPU.
    samples_path: str


class ProfileTrainOptions(TypedDict, total=False):
    """gpushare_profile_train_options"""

    # 1: demands become those that were counted, also where the profile has some; 0: only where it
    # has none.
    replace_demands: bool
    # must be given
    profile_path: str
    # a samples file (docs/samples.md); must be given
    samples_path: str
    # the profile to write, may be profile_path; must be given
    output_path: str


class ProfileLikeOptions(TypedDict, total=False):
    """gpushare_profile_like_options"""

    # must be given
    profile_path: str
    # the kernel to fill, which has no simulation record; must be given
    kernel: str
    # the kernel that it is like; null: the nearest by counters
    like: str
    # A samples file with counters of `kernel`; null: those that the profile has, if any.
    samples_path: str
    # the profile to write, may be profile_path; must be given
    output_path: str
