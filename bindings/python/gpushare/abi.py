"""The C ABI of gpushare as ctypes: constants, structs, callbacks and functions under their C names.

<gpushare/gpushare.h> documents each. The classes of the package are built on this module; use it for what
they do not offer. `gpushare.library()` gives the functions of the loaded library.
"""

# Written by bindings/python/generate.py from the C headers. Do not edit.

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, TypeVar

Struct = TypeVar('Struct', bound=ctypes.Structure)


def init(kind: type[Struct], **fields: Any) -> Struct:
    """A struct with struct_size and the given fields set; every other field is zero, as with its _INIT macro."""
    struct = kind(**fields)
    if hasattr(kind, 'struct_size'):
        setattr(struct, 'struct_size', ctypes.sizeof(kind))  # noqa: B010
    return struct


GPUSHARE_ABI_VERSION = 1
GPUSHARE_VERSION_MAJOR = 0
GPUSHARE_VERSION_MINOR = 1
GPUSHARE_VERSION_PATCH = 0
GPUSHARE_NEVER = 2**63 - 1
GPUSHARE_HOLD_REASONS = 32
GPUSHARE_POLICY_VERSION = 1
GPUSHARE_PLAN_ACTIONS_MAX = 128
GPUSHARE_PARTS_MAX = 4
GPUSHARE_CO_SCHEDULE_RATIOS = 3
GPUSHARE_COST_MODEL_VERSION = 1

GPUSHARE_OK = 0
GPUSHARE_CANCELLED = 1
GPUSHARE_UNKNOWN = 2
GPUSHARE_INVALID_ARGUMENT = 3
GPUSHARE_DEADLINE_EXCEEDED = 4
GPUSHARE_NOT_FOUND = 5
GPUSHARE_ALREADY_EXISTS = 6
GPUSHARE_PERMISSION_DENIED = 7
GPUSHARE_RESOURCE_EXHAUSTED = 8
GPUSHARE_FAILED_PRECONDITION = 9
GPUSHARE_ABORTED = 10
GPUSHARE_OUT_OF_RANGE = 11
GPUSHARE_UNIMPLEMENTED = 12
GPUSHARE_INTERNAL = 13
GPUSHARE_UNAVAILABLE = 14
GPUSHARE_DATA_LOSS = 15
GPUSHARE_UNAUTHENTICATED = 16

GPUSHARE_CHOICE_DEFAULT = 0
GPUSHARE_CHOICE_YES = 1
GPUSHARE_CHOICE_NO = 2

GPUSHARE_CLASS_LATENCY_CRITICAL = 1
GPUSHARE_CLASS_BEST_EFFORT = 2

GPUSHARE_TASK_DEFAULT = 0
GPUSHARE_TASK_KERNEL = 1
GPUSHARE_TASK_GRAPH = 2
GPUSHARE_TASK_LIBRARY = 3
GPUSHARE_TASK_MEMCPY = 4
GPUSHARE_TASK_OPAQUE = 5

GPUSHARE_FORM_ORIGINAL = 0
GPUSHARE_FORM_WORKERS = 1
GPUSHARE_FORM_SLICE = 2
GPUSHARE_FORM_FUSED = 3
GPUSHARE_FORM_GRAPH = 4
GPUSHARE_FORM_LIBRARY = 5
GPUSHARE_FORM_MEMCPY = 6
GPUSHARE_FORM_OPAQUE = 7
GPUSHARE_FORM_SEGMENTS = 8

GPUSHARE_COPY_NONE = 0
GPUSHARE_COPY_HOST_TO_DEVICE = 1
GPUSHARE_COPY_DEVICE_TO_HOST = 2
GPUSHARE_COPY_PEER = 3

GPUSHARE_VERDICT_PENDING = 0
GPUSHARE_VERDICT_OK = 1
GPUSHARE_VERDICT_FAILED = 2
GPUSHARE_VERDICT_CANCELLED = 3
GPUSHARE_VERDICT_DROPPED = 4
GPUSHARE_VERDICT_TIMED_OUT = 5
GPUSHARE_VERDICT_DEVICE_LOST = 6
GPUSHARE_VERDICT_SHUTDOWN = 7

GPUSHARE_REASON_NONE = 0
GPUSHARE_REASON_LC_FIRST = 1
GPUSHARE_REASON_FAST_PATH = 2
GPUSHARE_REASON_BASELINE = 3
GPUSHARE_REASON_IDLE_DEVICE = 4
GPUSHARE_REASON_FITS_HEADROOM = 5
GPUSHARE_REASON_FITS_BLOCKING_BUDGET = 6
GPUSHARE_REASON_BESIDE_PARTITION = 7
GPUSHARE_REASON_ELASTIC_RETURN = 8
GPUSHARE_REASON_RESUME = 9
GPUSHARE_REASON_QUOTA = 10
GPUSHARE_REASON_FILLS_GAP = 11
GPUSHARE_REASON_TAIL_CREDIT = 12
GPUSHARE_REASON_CO_RESIDENT = 13
GPUSHARE_REASON_HOLD_HEADROOM = 32
GPUSHARE_REASON_HOLD_BLOCKING = 33
GPUSHARE_REASON_HOLD_LC_ACTIVE = 34
GPUSHARE_REASON_HOLD_QUEUED_TIME = 35
GPUSHARE_REASON_HOLD_COPIES = 36
GPUSHARE_REASON_HOLD_WINDOW = 37
GPUSHARE_REASON_HOLD_CAPSM = 38
GPUSHARE_REASON_HOLD_HYSTERESIS = 39
GPUSHARE_REASON_HOLD_QUIESCED = 40
GPUSHARE_REASON_HOLD_LANE = 41
GPUSHARE_REASON_HOLD_PARTS = 42
GPUSHARE_REASON_HOLD_RUNNING = 43
GPUSHARE_REASON_HOLD_COUNTERS = 44
GPUSHARE_REASON_HOLD_LAUNCHES = 45
GPUSHARE_REASON_HOLD_PLAN = 48
GPUSHARE_REASON_HOLD_TAIL_CREDIT = 49
GPUSHARE_REASON_HOLD_DUTY = 50
GPUSHARE_REASON_EVICT_FOR_LC = 64
GPUSHARE_REASON_EVICT_FOR_RESERVATION = 65
GPUSHARE_REASON_EVICT_FOR_LAYOUT = 66
GPUSHARE_REASON_EVICT_FOR_QUOTA = 67
GPUSHARE_REASON_USER_POLICY = 96
GPUSHARE_REASON_DEPENDENCY_FAILED = 128

GPUSHARE_LOG_ERROR = 1
GPUSHARE_LOG_WARNING = 2
GPUSHARE_LOG_INFO = 3

GPUSHARE_DRIVE_THREAD = 0
GPUSHARE_DRIVE_POLL = 1

GPUSHARE_LATENCY_DEFAULT = 0
GPUSHARE_LATENCY_BALANCED = 1
GPUSHARE_LATENCY_SPIN = 2

GPUSHARE_LIBRARY_MATMUL = 1
GPUSHARE_LIBRARY_CONVOLUTION = 2
GPUSHARE_LIBRARY_POOLING = 3
GPUSHARE_LIBRARY_ACTIVATION = 4
GPUSHARE_LIBRARY_SOFTMAX = 5

GPUSHARE_FLOAT32 = 0
GPUSHARE_FLOAT16 = 1
GPUSHARE_BFLOAT16 = 2

GPUSHARE_MODE_DEFAULT = 0
GPUSHARE_MODE_MAX_POOLING = 1
GPUSHARE_MODE_AVERAGE_POOLING = 2
GPUSHARE_MODE_RELU = 3
GPUSHARE_MODE_TANH = 4
GPUSHARE_MODE_SIGMOID = 5

GPUSHARE_GUARANTEE_EVICTABLE = 1
GPUSHARE_GUARANTEE_CONFINABLE = 2
GPUSHARE_GUARANTEE_TIMESTAMPED = 4
GPUSHARE_GUARANTEE_DIVISIBLE = 8

GPUSHARE_EVENT_NONE = 0
GPUSHARE_EVENT_APP_CREATED = 1
GPUSHARE_EVENT_SUBMITTED = 2
GPUSHARE_EVENT_ADMITTED = 3
GPUSHARE_EVENT_REJECTED = 4
GPUSHARE_EVENT_LAUNCHED = 5
GPUSHARE_EVENT_FAST_PATH_LAUNCHED = 6
GPUSHARE_EVENT_EVICTED = 7
GPUSHARE_EVENT_PART_DONE = 8
GPUSHARE_EVENT_COMPLETED = 9
GPUSHARE_EVENT_HELD = 10
GPUSHARE_EVENT_QUERY_BEGUN = 11
GPUSHARE_EVENT_QUERY_ENDED = 12
GPUSHARE_EVENT_QUEUE_DEPTH = 13
GPUSHARE_EVENT_QUOTA_CHANGED = 14
GPUSHARE_EVENT_DEVICE_LOST = 15
GPUSHARE_EVENT_LANE_ABANDONED = 16
GPUSHARE_EVENT_WAITS = 17
GPUSHARE_EVENT_QUERY_BEGIN_CALLED = 18
GPUSHARE_EVENT_QUERY_END_CALLED = 19
GPUSHARE_EVENT_CHOICE = 20

GPUSHARE_INTENSITY_UNKNOWN = 0
GPUSHARE_INTENSITY_COMPUTE = 1
GPUSHARE_INTENSITY_MEMORY = 2

GPUSHARE_LANE_PLAIN = 0
GPUSHARE_LANE_LC = 1
GPUSHARE_LANE_BE = 2
GPUSHARE_LANE_COPY = 3


class gpushare_ticket(ctypes.Structure):
    value: int

    _fields_ = (
        ('value', ctypes.c_uint64),
    )


class gpushare_query(ctypes.Structure):
    value: int

    _fields_ = (
        ('value', ctypes.c_uint64),
    )


gpushare_log_callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)


class gpushare_runtime_options(ctypes.Structure):
    struct_size: int
    drive: int
    device: bytes | None
    policy: bytes | None
    profile_path: bytes | None
    seed: int
    sim_tier: bytes | None
    sim_faults: bytes | None
    device_ordinal: int
    splits_max: int
    hang_floor_ns: int
    hang_factor: float
    be_return_hysteresis_ns: int
    shutdown_timeout_ns: int
    log: Any
    log_user: Any
    latency: int
    reserved: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('drive', ctypes.c_int32),
        ('device', ctypes.c_char_p),
        ('policy', ctypes.c_char_p),
        ('profile_path', ctypes.c_char_p),
        ('seed', ctypes.c_uint64),
        ('sim_tier', ctypes.c_char_p),
        ('sim_faults', ctypes.c_char_p),
        ('device_ordinal', ctypes.c_int32),
        ('splits_max', ctypes.c_int32),
        ('hang_floor_ns', ctypes.c_int64),
        ('hang_factor', ctypes.c_double),
        ('be_return_hysteresis_ns', ctypes.c_int64),
        ('shutdown_timeout_ns', ctypes.c_int64),
        ('log', gpushare_log_callback),
        ('log_user', ctypes.c_void_p),
        ('latency', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
    )


class gpushare_app_options(ctypes.Structure):
    struct_size: int
    app_class: int
    name: bytes | None
    target_ns: int
    p99_bound: float
    p99_alone_ns: int
    solo_ns: int
    weight: float
    drop_late: int
    tasks_max: int
    p50_bound: float

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('app_class', ctypes.c_int32),
        ('name', ctypes.c_char_p),
        ('target_ns', ctypes.c_int64),
        ('p99_bound', ctypes.c_double),
        ('p99_alone_ns', ctypes.c_int64),
        ('solo_ns', ctypes.c_int64),
        ('weight', ctypes.c_double),
        ('drop_late', ctypes.c_int32),
        ('tasks_max', ctypes.c_int32),
        ('p50_bound', ctypes.c_double),
    )


class gpushare_reservation_options(ctypes.Structure):
    struct_size: int
    capsms: int
    packed: int
    reserved: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('capsms', ctypes.c_int32),
        ('packed', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
    )


class gpushare_speed_point(ctypes.Structure):
    sms: int
    reserved: int
    speed: float

    _fields_ = (
        ('sms', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
        ('speed', ctypes.c_double),
    )


class gpushare_resource_demand(ctypes.Structure):
    issue: float
    tensor: float
    special: float
    dram: float
    l2: float

    _fields_ = (
        ('issue', ctypes.c_double),
        ('tensor', ctypes.c_double),
        ('special', ctypes.c_double),
        ('dram', ctypes.c_double),
        ('l2', ctypes.c_double),
    )


class gpushare_graph_node(ctypes.Structure):
    duration_ns: int
    blocks: int
    repeat: int
    whole_sm: int
    reserved: int
    demand: gpushare_resource_demand

    _fields_ = (
        ('duration_ns', ctypes.c_int64),
        ('blocks', ctypes.c_int32),
        ('repeat', ctypes.c_int32),
        ('whole_sm', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
        ('demand', gpushare_resource_demand),
    )


class gpushare_simulation_record(ctypes.Structure):
    struct_size: int
    speed_count: int
    block_task_ns: int
    block_task_spread: float
    worker_overhead: float
    memory_parallelism: float
    saturating_occupancy: float
    demand: gpushare_resource_demand
    speed: Any
    nodes: Any
    node_count: int
    reserved: int
    node_gap_ns: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('speed_count', ctypes.c_uint32),
        ('block_task_ns', ctypes.c_int64),
        ('block_task_spread', ctypes.c_double),
        ('worker_overhead', ctypes.c_double),
        ('memory_parallelism', ctypes.c_double),
        ('saturating_occupancy', ctypes.c_double),
        ('demand', gpushare_resource_demand),
        ('speed', ctypes.POINTER(gpushare_speed_point)),
        ('nodes', ctypes.POINTER(gpushare_graph_node)),
        ('node_count', ctypes.c_uint32),
        ('reserved', ctypes.c_uint32),
        ('node_gap_ns', ctypes.c_int64),
    )


gpushare_capture_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32)


class gpushare_library_call(ctypes.Structure):
    struct_size: int
    operation: int
    type: int
    mode: int
    channels_last: int
    transpose_a: int
    transpose_b: int
    reserved: int
    m: int
    n: int
    k: int
    batch: int
    channels: int
    height: int
    width: int
    filters: int
    filter_height: int
    filter_width: int
    padding: int
    stride: int
    dilation: int
    groups: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('operation', ctypes.c_int32),
        ('type', ctypes.c_int32),
        ('mode', ctypes.c_int32),
        ('channels_last', ctypes.c_int32),
        ('transpose_a', ctypes.c_int32),
        ('transpose_b', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
        ('m', ctypes.c_int64),
        ('n', ctypes.c_int64),
        ('k', ctypes.c_int64),
        ('batch', ctypes.c_int64),
        ('channels', ctypes.c_int64),
        ('height', ctypes.c_int64),
        ('width', ctypes.c_int64),
        ('filters', ctypes.c_int64),
        ('filter_height', ctypes.c_int64),
        ('filter_width', ctypes.c_int64),
        ('padding', ctypes.c_int64),
        ('stride', ctypes.c_int64),
        ('dilation', ctypes.c_int64),
        ('groups', ctypes.c_int64),
    )


class gpushare_library_arguments(ctypes.Structure):
    a: Any
    b: Any
    c: Any
    d: Any
    alpha: float
    beta: float

    _fields_ = (
        ('a', ctypes.c_void_p),
        ('b', ctypes.c_void_p),
        ('c', ctypes.c_void_p),
        ('d', ctypes.c_void_p),
        ('alpha', ctypes.c_float),
        ('beta', ctypes.c_float),
    )


class gpushare_memory_range(ctypes.Structure):
    address: Any
    size_bytes: int

    _fields_ = (
        ('address', ctypes.c_void_p),
        ('size_bytes', ctypes.c_uint64),
    )


class gpushare_kernel_options(ctypes.Structure):
    struct_size: int
    kind: int
    name: bytes | None
    threads_per_block: int
    registers_per_thread: int
    shared_memory_bytes: int
    workers_per_sm_max: int
    evictable: int
    confinable: int
    roomy: int
    reserved: int
    yield_interval_ns: int
    solo_ns: int
    original_function: Any
    worker_function: Any
    graph: Any
    simulation: Any
    capture: Any
    capture_user: Any
    graph_exec: Any
    block_x: int
    block_y: int
    block_z: int
    dynamic_shared_memory_bytes: int
    library: Any
    slice_function: Any
    segment_ns: int
    measure_nodes: int
    reserved2: int
    measure_places: int
    reserved3: int
    warm_memory: Any
    warm_memory_count: int
    reserved4: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('kind', ctypes.c_int32),
        ('name', ctypes.c_char_p),
        ('threads_per_block', ctypes.c_int32),
        ('registers_per_thread', ctypes.c_int32),
        ('shared_memory_bytes', ctypes.c_int32),
        ('workers_per_sm_max', ctypes.c_int32),
        ('evictable', ctypes.c_int32),
        ('confinable', ctypes.c_int32),
        ('roomy', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
        ('yield_interval_ns', ctypes.c_int64),
        ('solo_ns', ctypes.c_int64),
        ('original_function', ctypes.c_void_p),
        ('worker_function', ctypes.c_void_p),
        ('graph', ctypes.c_void_p),
        ('simulation', ctypes.POINTER(gpushare_simulation_record)),
        ('capture', gpushare_capture_callback),
        ('capture_user', ctypes.c_void_p),
        ('graph_exec', ctypes.c_void_p),
        ('block_x', ctypes.c_int32),
        ('block_y', ctypes.c_int32),
        ('block_z', ctypes.c_int32),
        ('dynamic_shared_memory_bytes', ctypes.c_int32),
        ('library', ctypes.POINTER(gpushare_library_call)),
        ('slice_function', ctypes.c_void_p),
        ('segment_ns', ctypes.c_int64),
        ('measure_nodes', ctypes.c_int32),
        ('reserved2', ctypes.c_int32),
        ('measure_places', ctypes.c_int32),
        ('reserved3', ctypes.c_int32),
        ('warm_memory', ctypes.POINTER(gpushare_memory_range)),
        ('warm_memory_count', ctypes.c_uint32),
        ('reserved4', ctypes.c_int32),
    )


class gpushare_kernel_info(ctypes.Structure):
    struct_size: int
    kind: int
    threads_per_block: int
    registers_per_thread: int
    shared_memory_bytes: int
    workers_per_sm_max: int
    evictable: int
    confinable: int
    roomy: int
    node_count: int
    block_task_ns: int
    yield_interval_ns: int
    solo_ns: int
    demand: gpushare_resource_demand
    whole_reason: bytes | None
    longest_segment_ns: int
    segment_count: int
    reserved: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('kind', ctypes.c_int32),
        ('threads_per_block', ctypes.c_int32),
        ('registers_per_thread', ctypes.c_int32),
        ('shared_memory_bytes', ctypes.c_int32),
        ('workers_per_sm_max', ctypes.c_int32),
        ('evictable', ctypes.c_int32),
        ('confinable', ctypes.c_int32),
        ('roomy', ctypes.c_int32),
        ('node_count', ctypes.c_int32),
        ('block_task_ns', ctypes.c_int64),
        ('yield_interval_ns', ctypes.c_int64),
        ('solo_ns', ctypes.c_int64),
        ('demand', gpushare_resource_demand),
        ('whole_reason', ctypes.c_char_p),
        ('longest_segment_ns', ctypes.c_int64),
        ('segment_count', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
    )


class gpushare_fused_kernel_options(ctypes.Structure):
    struct_size: int
    tensor_blocks: int
    cuda_blocks: int
    reserved: int
    name: bytes | None
    tensor_part: Any
    cuda_part: Any
    opportune_load_ratio: float
    opportune_duration_ratio: float
    function: Any
    threads_per_block: int
    dynamic_shared_memory_bytes: int
    blocks_per_sm: int
    reserved2: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('tensor_blocks', ctypes.c_int32),
        ('cuda_blocks', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
        ('name', ctypes.c_char_p),
        ('tensor_part', ctypes.c_void_p),
        ('cuda_part', ctypes.c_void_p),
        ('opportune_load_ratio', ctypes.c_double),
        ('opportune_duration_ratio', ctypes.c_double),
        ('function', ctypes.c_void_p),
        ('threads_per_block', ctypes.c_int32),
        ('dynamic_shared_memory_bytes', ctypes.c_int32),
        ('blocks_per_sm', ctypes.c_int32),
        ('reserved2', ctypes.c_int32),
    )


class gpushare_query_options(ctypes.Structure):
    struct_size: int
    reserved: int
    arrival_ns: int
    input_size: float

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('reserved', ctypes.c_uint32),
        ('arrival_ns', ctypes.c_int64),
        ('input_size', ctypes.c_double),
    )


class gpushare_completion_record(ctypes.Structure):
    struct_size: int
    verdict: int
    ticket: gpushare_ticket
    query: gpushare_query
    app_id: int
    queue_id: int
    kernel_id: int
    kind: int
    submit_ns: int
    admit_ns: int
    launch_ns: int
    start_ns: int
    end_ns: int
    complete_ns: int
    predicted_ns: int
    predicted_error_ns: int
    measured_ns: int
    evicted_ns: int
    block_tasks: int
    evictions: int
    launches: int
    form: int
    place: int
    launch_reason: int
    hold_reason: int
    beside_kernel_id: int
    error_code: int
    failed_dependency: gpushare_ticket
    failed_dependency_verdict: int
    reserved: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('verdict', ctypes.c_int32),
        ('ticket', gpushare_ticket),
        ('query', gpushare_query),
        ('app_id', ctypes.c_uint32),
        ('queue_id', ctypes.c_uint32),
        ('kernel_id', ctypes.c_uint32),
        ('kind', ctypes.c_int32),
        ('submit_ns', ctypes.c_int64),
        ('admit_ns', ctypes.c_int64),
        ('launch_ns', ctypes.c_int64),
        ('start_ns', ctypes.c_int64),
        ('end_ns', ctypes.c_int64),
        ('complete_ns', ctypes.c_int64),
        ('predicted_ns', ctypes.c_int64),
        ('predicted_error_ns', ctypes.c_int64),
        ('measured_ns', ctypes.c_int64),
        ('evicted_ns', ctypes.c_int64),
        ('block_tasks', ctypes.c_int64),
        ('evictions', ctypes.c_int32),
        ('launches', ctypes.c_int32),
        ('form', ctypes.c_int32),
        ('place', ctypes.c_int32),
        ('launch_reason', ctypes.c_int32),
        ('hold_reason', ctypes.c_int32),
        ('beside_kernel_id', ctypes.c_uint32),
        ('error_code', ctypes.c_int32),
        ('failed_dependency', gpushare_ticket),
        ('failed_dependency_verdict', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
    )


gpushare_completion_callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(gpushare_completion_record))


gpushare_enqueue_callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class gpushare_task_options(ctypes.Structure):
    struct_size: int
    kind: int
    kernel: Any
    block_tasks: int
    arguments: Any
    arguments_size_bytes: int
    query: gpushare_query
    arrival_ns: int
    declared_ns: int
    copy_destination: Any
    copy_source: Any
    copy_size_bytes: int
    copy_direction: int
    copy_pageable: int
    wait_tickets: Any
    wait_events: Any
    wait_ticket_count: int
    wait_event_count: int
    signal_event: Any
    detached: int
    reserved: int
    enqueue: Any
    enqueue_user: Any
    callback: Any
    callback_user: Any
    grid_x: int
    grid_y: int
    grid_z: int
    reserved2: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('kind', ctypes.c_int32),
        ('kernel', ctypes.c_void_p),
        ('block_tasks', ctypes.c_int64),
        ('arguments', ctypes.c_void_p),
        ('arguments_size_bytes', ctypes.c_uint64),
        ('query', gpushare_query),
        ('arrival_ns', ctypes.c_int64),
        ('declared_ns', ctypes.c_int64),
        ('copy_destination', ctypes.c_void_p),
        ('copy_source', ctypes.c_void_p),
        ('copy_size_bytes', ctypes.c_int64),
        ('copy_direction', ctypes.c_int32),
        ('copy_pageable', ctypes.c_int32),
        ('wait_tickets', ctypes.POINTER(gpushare_ticket)),
        ('wait_events', ctypes.POINTER(ctypes.c_void_p)),
        ('wait_ticket_count', ctypes.c_uint32),
        ('wait_event_count', ctypes.c_uint32),
        ('signal_event', ctypes.c_void_p),
        ('detached', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
        ('enqueue', gpushare_enqueue_callback),
        ('enqueue_user', ctypes.c_void_p),
        ('callback', gpushare_completion_callback),
        ('callback_user', ctypes.c_void_p),
        ('grid_x', ctypes.c_int32),
        ('grid_y', ctypes.c_int32),
        ('grid_z', ctypes.c_int32),
        ('reserved2', ctypes.c_int32),
    )


class gpushare_region_options(ctypes.Structure):
    struct_size: int
    reserved: int
    bound_ns: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('reserved', ctypes.c_int32),
        ('bound_ns', ctypes.c_int64),
    )


class gpushare_device_info(ctypes.Structure):
    struct_size: int
    simulated: int
    name: bytes | None
    profile: bytes | None
    policy: bytes | None
    virtual_time: int
    partitions: int
    eviction: int
    timestamps: int
    sm_count: int
    sm_granularity: int
    lanes_max: int
    places_max: int
    threads_per_sm: int
    registers_per_sm: int
    shared_memory_per_sm_bytes: int
    blocks_per_sm: int
    launch_latency_ns: int
    completion_latency_ns: int
    eviction_write_latency_ns: int
    pinned_bytes_per_ns: float

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('simulated', ctypes.c_int32),
        ('name', ctypes.c_char_p),
        ('profile', ctypes.c_char_p),
        ('policy', ctypes.c_char_p),
        ('virtual_time', ctypes.c_int32),
        ('partitions', ctypes.c_int32),
        ('eviction', ctypes.c_int32),
        ('timestamps', ctypes.c_int32),
        ('sm_count', ctypes.c_int32),
        ('sm_granularity', ctypes.c_int32),
        ('lanes_max', ctypes.c_int32),
        ('places_max', ctypes.c_int32),
        ('threads_per_sm', ctypes.c_int32),
        ('registers_per_sm', ctypes.c_int32),
        ('shared_memory_per_sm_bytes', ctypes.c_int32),
        ('blocks_per_sm', ctypes.c_int32),
        ('launch_latency_ns', ctypes.c_int64),
        ('completion_latency_ns', ctypes.c_int64),
        ('eviction_write_latency_ns', ctypes.c_int64),
        ('pinned_bytes_per_ns', ctypes.c_double),
    )


class gpushare_latency_summary(ctypes.Structure):
    count: int
    p50_ns: int
    p99_ns: int
    max_ns: int

    _fields_ = (
        ('count', ctypes.c_int64),
        ('p50_ns', ctypes.c_int64),
        ('p99_ns', ctypes.c_int64),
        ('max_ns', ctypes.c_int64),
    )


class gpushare_runtime_stats(ctypes.Structure):
    struct_size: int
    simulated: int
    ticks: int
    plans: int
    launches: int
    fast_path_launches: int
    evictions: int
    evictions_blocked: int
    hung: int
    busy_sm_ns: int
    tasks_pending: int
    prediction_samples: int
    prediction_error: float
    eviction_latency: gpushare_latency_summary
    plan_time: gpushare_latency_summary
    device_lost: int
    app_count: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('simulated', ctypes.c_int32),
        ('ticks', ctypes.c_int64),
        ('plans', ctypes.c_int64),
        ('launches', ctypes.c_int64),
        ('fast_path_launches', ctypes.c_int64),
        ('evictions', ctypes.c_int64),
        ('evictions_blocked', ctypes.c_int64),
        ('hung', ctypes.c_int64),
        ('busy_sm_ns', ctypes.c_int64),
        ('tasks_pending', ctypes.c_int64),
        ('prediction_samples', ctypes.c_int64),
        ('prediction_error', ctypes.c_double),
        ('eviction_latency', gpushare_latency_summary),
        ('plan_time', gpushare_latency_summary),
        ('device_lost', ctypes.c_int32),
        ('app_count', ctypes.c_int32),
    )


class gpushare_app_stats(ctypes.Structure):
    struct_size: int
    app_class: int
    submitted: int
    completed: int
    failed: int
    dropped: int
    cancelled: int
    rejected: int
    evictions: int
    queue_depth: int
    device_ns: int
    work_ns: int
    block_tasks: int
    latency: gpushare_latency_summary

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('app_class', ctypes.c_int32),
        ('submitted', ctypes.c_int64),
        ('completed', ctypes.c_int64),
        ('failed', ctypes.c_int64),
        ('dropped', ctypes.c_int64),
        ('cancelled', ctypes.c_int64),
        ('rejected', ctypes.c_int64),
        ('evictions', ctypes.c_int64),
        ('queue_depth', ctypes.c_int64),
        ('device_ns', ctypes.c_int64),
        ('work_ns', ctypes.c_int64),
        ('block_tasks', ctypes.c_int64),
        ('latency', gpushare_latency_summary),
    )


class gpushare_app_guarantee(ctypes.Structure):
    struct_size: int
    app_class: int
    target_ns: int
    p99_bound: float
    p50_bound: float
    queries: int
    p50_ns: int
    p99_ns: int
    p99_over_alone: float
    late_share: float
    tail_credit: float
    queries_late_for_be: int
    held_ns: ctypes.Array[ctypes.c_int64]

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('app_class', ctypes.c_int32),
        ('target_ns', ctypes.c_int64),
        ('p99_bound', ctypes.c_double),
        ('p50_bound', ctypes.c_double),
        ('queries', ctypes.c_int64),
        ('p50_ns', ctypes.c_int64),
        ('p99_ns', ctypes.c_int64),
        ('p99_over_alone', ctypes.c_double),
        ('late_share', ctypes.c_double),
        ('tail_credit', ctypes.c_double),
        ('queries_late_for_be', ctypes.c_int64),
        ('held_ns', ctypes.c_int64 * 32),
    )


class gpushare_trace_options(ctypes.Structure):
    struct_size: int
    reserved: int
    perfetto_path: bytes | None
    event_log_path: bytes | None
    records_max: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('reserved', ctypes.c_int32),
        ('perfetto_path', ctypes.c_char_p),
        ('event_log_path', ctypes.c_char_p),
        ('records_max', ctypes.c_int64),
    )


class gpushare_trace_summary(ctypes.Structure):
    struct_size: int
    reserved: int
    records: int
    dropped: int
    decision_digest: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('reserved', ctypes.c_int32),
        ('records', ctypes.c_int64),
        ('dropped', ctypes.c_int64),
        ('decision_digest', ctypes.c_uint64),
    )


class gpushare_event(ctypes.Structure):
    struct_size: int
    type: int
    time_ns: int
    id: int
    a: int
    b: int
    c: int
    d: int
    app_id: int
    kernel_id: int
    place: int
    reason: int
    detail: int
    app_class: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('type', ctypes.c_int32),
        ('time_ns', ctypes.c_int64),
        ('id', ctypes.c_uint64),
        ('a', ctypes.c_int64),
        ('b', ctypes.c_int64),
        ('c', ctypes.c_int64),
        ('d', ctypes.c_int64),
        ('app_id', ctypes.c_uint32),
        ('kernel_id', ctypes.c_uint32),
        ('place', ctypes.c_int32),
        ('reason', ctypes.c_int32),
        ('detail', ctypes.c_int32),
        ('app_class', ctypes.c_int32),
    )


class gpushare_calibration_item(ctypes.Structure):
    kernel: Any
    task: Any

    _fields_ = (
        ('kernel', ctypes.POINTER(gpushare_kernel_options)),
        ('task', ctypes.POINTER(gpushare_task_options)),
    )


class gpushare_calibration_fused(ctypes.Structure):
    fused: Any
    tensor_item: int
    cuda_item: int
    local_bytes: int
    reserved: int

    _fields_ = (
        ('fused', ctypes.POINTER(gpushare_fused_kernel_options)),
        ('tensor_item', ctypes.c_uint32),
        ('cuda_item', ctypes.c_uint32),
        ('local_bytes', ctypes.c_int32),
        ('reserved', ctypes.c_uint32),
    )


class gpushare_kernel_calibration(ctypes.Structure):
    struct_size: int
    kind: int
    name: bytes | None
    block_tasks: int
    solo_ns: int
    worker_solo_ns: int
    block_task_ns: int
    eviction_p50_ns: int
    eviction_p99_ns: int
    block_task_spread: float
    worker_overhead: float
    saturating_occupancy: float
    speed: Any
    knees: Any
    speed_count: int
    knee_count: int
    workers_per_sm_max: int
    kept: int
    slice_block_tasks: int
    slice_overhead: float
    workers_per_sm_least: int
    intensity: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('kind', ctypes.c_int32),
        ('name', ctypes.c_char_p),
        ('block_tasks', ctypes.c_int64),
        ('solo_ns', ctypes.c_int64),
        ('worker_solo_ns', ctypes.c_int64),
        ('block_task_ns', ctypes.c_int64),
        ('eviction_p50_ns', ctypes.c_int64),
        ('eviction_p99_ns', ctypes.c_int64),
        ('block_task_spread', ctypes.c_double),
        ('worker_overhead', ctypes.c_double),
        ('saturating_occupancy', ctypes.c_double),
        ('speed', ctypes.POINTER(gpushare_speed_point)),
        ('knees', ctypes.POINTER(ctypes.c_int32)),
        ('speed_count', ctypes.c_uint32),
        ('knee_count', ctypes.c_uint32),
        ('workers_per_sm_max', ctypes.c_int32),
        ('kept', ctypes.c_int32),
        ('slice_block_tasks', ctypes.c_int64),
        ('slice_overhead', ctypes.c_double),
        ('workers_per_sm_least', ctypes.c_int32),
        ('intensity', ctypes.c_int32),
    )


class gpushare_calibration_progress(ctypes.Structure):
    struct_size: int
    done: int
    total: int
    reserved: int
    what: bytes | None
    kernel: Any
    note: bytes | None

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('done', ctypes.c_int32),
        ('total', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
        ('what', ctypes.c_char_p),
        ('kernel', ctypes.POINTER(gpushare_kernel_calibration)),
        ('note', ctypes.c_char_p),
    )


gpushare_calibration_callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(gpushare_calibration_progress))


class gpushare_calibration_options(ctypes.Structure):
    struct_size: int
    device_ordinal: int
    device: bytes | None
    profile_path: bytes | None
    output_path: bytes | None
    items: Any
    cancel: Any
    sim_tier: bytes | None
    sim_faults: bytes | None
    seed: int
    kernel_time_ns: int
    hang_limit_ns: int
    device_buffer: Any
    pinned_buffer: Any
    pageable_buffer: Any
    buffer_size_bytes: int
    item_count: int
    repeats: int
    evictions: int
    resume: int
    fused: Any
    total_time_ns: int
    slice_overhead_max: float
    fused_count: int
    reserved: int
    samples_path: bytes | None

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('device_ordinal', ctypes.c_int32),
        ('device', ctypes.c_char_p),
        ('profile_path', ctypes.c_char_p),
        ('output_path', ctypes.c_char_p),
        ('items', ctypes.POINTER(gpushare_calibration_item)),
        ('cancel', ctypes.POINTER(ctypes.c_int32)),
        ('sim_tier', ctypes.c_char_p),
        ('sim_faults', ctypes.c_char_p),
        ('seed', ctypes.c_uint64),
        ('kernel_time_ns', ctypes.c_int64),
        ('hang_limit_ns', ctypes.c_int64),
        ('device_buffer', ctypes.c_void_p),
        ('pinned_buffer', ctypes.c_void_p),
        ('pageable_buffer', ctypes.c_void_p),
        ('buffer_size_bytes', ctypes.c_int64),
        ('item_count', ctypes.c_uint32),
        ('repeats', ctypes.c_int32),
        ('evictions', ctypes.c_int32),
        ('resume', ctypes.c_int32),
        ('fused', ctypes.POINTER(gpushare_calibration_fused)),
        ('total_time_ns', ctypes.c_int64),
        ('slice_overhead_max', ctypes.c_double),
        ('fused_count', ctypes.c_uint32),
        ('reserved', ctypes.c_uint32),
        ('samples_path', ctypes.c_char_p),
    )


class gpushare_judged_prediction(ctypes.Structure):
    struct_size: int
    reserved: int
    family: bytes | None
    model: bytes | None
    subject: bytes | None
    predicted: float
    measured: float

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('reserved', ctypes.c_uint32),
        ('family', ctypes.c_char_p),
        ('model', ctypes.c_char_p),
        ('subject', ctypes.c_char_p),
        ('predicted', ctypes.c_double),
        ('measured', ctypes.c_double),
    )


gpushare_judge_callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(gpushare_judged_prediction))


class gpushare_profile_train_options(ctypes.Structure):
    struct_size: int
    replace_demands: int
    profile_path: bytes | None
    samples_path: bytes | None
    output_path: bytes | None

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('replace_demands', ctypes.c_int32),
        ('profile_path', ctypes.c_char_p),
        ('samples_path', ctypes.c_char_p),
        ('output_path', ctypes.c_char_p),
    )


class gpushare_profile_like_options(ctypes.Structure):
    struct_size: int
    reserved: int
    profile_path: bytes | None
    kernel: bytes | None
    like: bytes | None
    samples_path: bytes | None
    output_path: bytes | None

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('reserved', ctypes.c_uint32),
        ('profile_path', ctypes.c_char_p),
        ('kernel', ctypes.c_char_p),
        ('like', ctypes.c_char_p),
        ('samples_path', ctypes.c_char_p),
        ('output_path', ctypes.c_char_p),
    )


class gpushare_place_view(ctypes.Structure):
    sms: int
    reserved: int
    overlaps: int

    _fields_ = (
        ('sms', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
        ('overlaps', ctypes.c_uint64),
    )


class gpushare_split_view(ctypes.Structure):
    lc_place: int
    be_place: int
    lc_sms: int
    be_sms: int

    _fields_ = (
        ('lc_place', ctypes.c_int32),
        ('be_place', ctypes.c_int32),
        ('lc_sms', ctypes.c_int32),
        ('be_sms', ctypes.c_int32),
    )


class gpushare_copy_state(ctypes.Structure):
    be_active: int
    lc_active: int
    be_limit: int
    reserved: int

    _fields_ = (
        ('be_active', ctypes.c_int32),
        ('lc_active', ctypes.c_int32),
        ('be_limit', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
    )


class gpushare_lc_app_view(ctypes.Structure):
    app_id: int
    reserved_capsms: int
    target_ns: int
    p99_bound: float
    p99_alone_ns: int
    solo_ns: int
    load: float
    blocking_budget_ns: int
    active_queries: int
    tasks_in_flight: int
    idle_since_ns: int
    main_kernel_id: int
    reserved: int

    _fields_ = (
        ('app_id', ctypes.c_uint32),
        ('reserved_capsms', ctypes.c_int32),
        ('target_ns', ctypes.c_int64),
        ('p99_bound', ctypes.c_double),
        ('p99_alone_ns', ctypes.c_int64),
        ('solo_ns', ctypes.c_int64),
        ('load', ctypes.c_double),
        ('blocking_budget_ns', ctypes.c_int64),
        ('active_queries', ctypes.c_int32),
        ('tasks_in_flight', ctypes.c_int32),
        ('idle_since_ns', ctypes.c_int64),
        ('main_kernel_id', ctypes.c_uint32),
        ('reserved', ctypes.c_int32),
    )


class gpushare_be_app_view(ctypes.Structure):
    app_id: int
    quota_capsms: int
    weight: float
    attained_ns: int
    used_capsms: float
    packed: int
    reserved: int

    _fields_ = (
        ('app_id', ctypes.c_uint32),
        ('quota_capsms', ctypes.c_int32),
        ('weight', ctypes.c_double),
        ('attained_ns', ctypes.c_int64),
        ('used_capsms', ctypes.c_double),
        ('packed', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
    )


class gpushare_query_view(ctypes.Structure):
    query: gpushare_query
    lc_app: int
    reserved: int
    arrival_ns: int
    deadline_ns: int
    solo_ns: int
    issued_ns: int
    done_ns: int
    headroom_ns: int

    _fields_ = (
        ('query', gpushare_query),
        ('lc_app', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
        ('arrival_ns', ctypes.c_int64),
        ('deadline_ns', ctypes.c_int64),
        ('solo_ns', ctypes.c_int64),
        ('issued_ns', ctypes.c_int64),
        ('done_ns', ctypes.c_int64),
        ('headroom_ns', ctypes.c_int64),
    )


class gpushare_head_view(ctypes.Structure):
    task: gpushare_ticket
    app_class: int
    app: int
    queue_id: int
    kind: int
    query: gpushare_query
    kernel_id: int
    kernel_index: int
    sequence: int
    ready_ns: int
    ready_count: int
    workers_per_sm_max: int
    blocks_left: int
    resumed: int
    evictable: int
    confinable: int
    pinned: int
    direction: int
    trained: int
    remaining_ns: int
    remaining_error_ns: int
    eviction_ns: int
    overlap_index: int
    reserved: int

    _fields_ = (
        ('task', gpushare_ticket),
        ('app_class', ctypes.c_int32),
        ('app', ctypes.c_int32),
        ('queue_id', ctypes.c_uint32),
        ('kind', ctypes.c_int32),
        ('query', gpushare_query),
        ('kernel_id', ctypes.c_uint32),
        ('kernel_index', ctypes.c_int32),
        ('sequence', ctypes.c_uint64),
        ('ready_ns', ctypes.c_int64),
        ('ready_count', ctypes.c_int32),
        ('workers_per_sm_max', ctypes.c_int32),
        ('blocks_left', ctypes.c_int64),
        ('resumed', ctypes.c_int32),
        ('evictable', ctypes.c_int32),
        ('confinable', ctypes.c_int32),
        ('pinned', ctypes.c_int32),
        ('direction', ctypes.c_int32),
        ('trained', ctypes.c_int32),
        ('remaining_ns', ctypes.c_int64),
        ('remaining_error_ns', ctypes.c_int64),
        ('eviction_ns', ctypes.c_int64),
        ('overlap_index', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
    )


class gpushare_part_view(ctypes.Structure):
    place: int
    lane: int
    workers: int
    evicting: int
    form: int
    reserved: int
    launched_ns: int

    _fields_ = (
        ('place', ctypes.c_int32),
        ('lane', ctypes.c_int32),
        ('workers', ctypes.c_int32),
        ('evicting', ctypes.c_int32),
        ('form', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
        ('launched_ns', ctypes.c_int64),
    )


class gpushare_running_view(ctypes.Structure):
    parts: ctypes.Array[gpushare_part_view]
    part_count: int
    reserved: int
    places: int
    task: gpushare_head_view

    _fields_ = (
        ('parts', gpushare_part_view * 4),
        ('part_count', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
        ('places', ctypes.c_uint64),
        ('task', gpushare_head_view),
    )


class gpushare_pair_option(ctypes.Structure):
    lc_speed: float
    lc_speed_alone: float
    be_speed_be_side: float
    be_speed_lc_side: float

    _fields_ = (
        ('lc_speed', ctypes.c_float),
        ('lc_speed_alone', ctypes.c_float),
        ('be_speed_be_side', ctypes.c_float),
        ('be_speed_lc_side', ctypes.c_float),
    )


class gpushare_fused_view(ctypes.Structure):
    kernel_id: int
    tensor_kernel_id: int
    cuda_kernel_id: int
    tensor_blocks: int
    cuda_blocks: int
    blocks_per_sm: int
    trained: int
    reserved: int
    intercept: float
    slope: float
    bend: float
    inflection: float
    error: float

    _fields_ = (
        ('kernel_id', ctypes.c_uint32),
        ('tensor_kernel_id', ctypes.c_uint32),
        ('cuda_kernel_id', ctypes.c_uint32),
        ('tensor_blocks', ctypes.c_int32),
        ('cuda_blocks', ctypes.c_int32),
        ('blocks_per_sm', ctypes.c_int32),
        ('trained', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
        ('intercept', ctypes.c_double),
        ('slope', ctypes.c_double),
        ('bend', ctypes.c_double),
        ('inflection', ctypes.c_double),
        ('error', ctypes.c_double),
    )


class gpushare_co_schedule_option(ctypes.Structure):
    workers_per_sm: ctypes.Array[ctypes.c_int32]
    speed: ctypes.Array[ctypes.c_float]
    speed_error: float
    profit: float

    _fields_ = (
        ('workers_per_sm', ctypes.c_int32 * 2),
        ('speed', ctypes.c_float * 2),
        ('speed_error', ctypes.c_float),
        ('profit', ctypes.c_float),
    )


class gpushare_snapshot(ctypes.Structure):
    struct_size: int
    sm_count: int
    now_ns: int
    plan_sequence: int
    capsms_free: float
    queued_ns: int
    quiesced: int
    partitions_available: int
    eviction_available: int
    reserved: int
    copies: ctypes.Array[gpushare_copy_state]
    places: Any
    splits: Any
    lc_apps: Any
    be_apps: Any
    queries: Any
    heads: Any
    running: Any
    pairs: Any
    place_count: int
    place_stride: int
    split_count: int
    split_stride: int
    lc_app_count: int
    lc_app_stride: int
    be_app_count: int
    be_app_stride: int
    query_count: int
    query_stride: int
    head_count: int
    head_stride: int
    running_count: int
    running_stride: int
    pair_kernels: int
    pair_stride: int
    pair_version: int
    fused: Any
    co_schedules: Any
    fused_count: int
    fused_stride: int
    co_schedule_kernels: int
    co_schedule_stride: int
    fused_version: int
    co_schedule_version: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('sm_count', ctypes.c_int32),
        ('now_ns', ctypes.c_int64),
        ('plan_sequence', ctypes.c_uint64),
        ('capsms_free', ctypes.c_double),
        ('queued_ns', ctypes.c_int64),
        ('quiesced', ctypes.c_int32),
        ('partitions_available', ctypes.c_int32),
        ('eviction_available', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
        ('copies', gpushare_copy_state * 4),
        ('places', ctypes.POINTER(gpushare_place_view)),
        ('splits', ctypes.POINTER(gpushare_split_view)),
        ('lc_apps', ctypes.POINTER(gpushare_lc_app_view)),
        ('be_apps', ctypes.POINTER(gpushare_be_app_view)),
        ('queries', ctypes.POINTER(gpushare_query_view)),
        ('heads', ctypes.POINTER(gpushare_head_view)),
        ('running', ctypes.POINTER(gpushare_running_view)),
        ('pairs', ctypes.POINTER(gpushare_pair_option)),
        ('place_count', ctypes.c_uint32),
        ('place_stride', ctypes.c_uint32),
        ('split_count', ctypes.c_uint32),
        ('split_stride', ctypes.c_uint32),
        ('lc_app_count', ctypes.c_uint32),
        ('lc_app_stride', ctypes.c_uint32),
        ('be_app_count', ctypes.c_uint32),
        ('be_app_stride', ctypes.c_uint32),
        ('query_count', ctypes.c_uint32),
        ('query_stride', ctypes.c_uint32),
        ('head_count', ctypes.c_uint32),
        ('head_stride', ctypes.c_uint32),
        ('running_count', ctypes.c_uint32),
        ('running_stride', ctypes.c_uint32),
        ('pair_kernels', ctypes.c_uint32),
        ('pair_stride', ctypes.c_uint32),
        ('pair_version', ctypes.c_uint64),
        ('fused', ctypes.POINTER(gpushare_fused_view)),
        ('co_schedules', ctypes.POINTER(gpushare_co_schedule_option)),
        ('fused_count', ctypes.c_uint32),
        ('fused_stride', ctypes.c_uint32),
        ('co_schedule_kernels', ctypes.c_uint32),
        ('co_schedule_stride', ctypes.c_uint32),
        ('fused_version', ctypes.c_uint64),
        ('co_schedule_version', ctypes.c_uint64),
    )


class gpushare_planned_launch(ctypes.Structure):
    task: gpushare_ticket
    fused_with: gpushare_ticket
    blocks_max: int
    count: int
    form: int
    place: int
    lane_class: int
    workers: int
    reason: int
    reserved: ctypes.Array[ctypes.c_int32]

    _fields_ = (
        ('task', gpushare_ticket),
        ('fused_with', gpushare_ticket),
        ('blocks_max', ctypes.c_int64),
        ('count', ctypes.c_int32),
        ('form', ctypes.c_int32),
        ('place', ctypes.c_int32),
        ('lane_class', ctypes.c_int32),
        ('workers', ctypes.c_int32),
        ('reason', ctypes.c_int32),
        ('reserved', ctypes.c_int32 * 2),
    )


class gpushare_planned_eviction(ctypes.Structure):
    task: gpushare_ticket
    place: int
    workers_to_keep: int
    reason: int
    reserved: int

    _fields_ = (
        ('task', gpushare_ticket),
        ('place', ctypes.c_int32),
        ('workers_to_keep', ctypes.c_int32),
        ('reason', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
    )


class gpushare_planned_hold(ctypes.Structure):
    task: gpushare_ticket
    value_ns: int
    limit_ns: int
    reason: int
    reserved: int

    _fields_ = (
        ('task', gpushare_ticket),
        ('value_ns', ctypes.c_int64),
        ('limit_ns', ctypes.c_int64),
        ('reason', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
    )


class gpushare_lc_route(ctypes.Structure):
    place: int
    lane_class: int
    fast_path: int
    evict_overlapping: int

    _fields_ = (
        ('place', ctypes.c_int32),
        ('lane_class', ctypes.c_int32),
        ('fast_path', ctypes.c_int32),
        ('evict_overlapping', ctypes.c_int32),
    )


class gpushare_plan(ctypes.Structure):
    struct_size: int
    launch_count: int
    eviction_count: int
    hold_count: int
    launches: Any
    evictions: Any
    holds: Any
    routes: Any
    replan_at_ns: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('launch_count', ctypes.c_uint32),
        ('eviction_count', ctypes.c_uint32),
        ('hold_count', ctypes.c_uint32),
        ('launches', ctypes.POINTER(gpushare_planned_launch)),
        ('evictions', ctypes.POINTER(gpushare_planned_eviction)),
        ('holds', ctypes.POINTER(gpushare_planned_hold)),
        ('routes', ctypes.POINTER(gpushare_lc_route)),
        ('replan_at_ns', ctypes.c_int64),
    )


class gpushare_policy_table(ctypes.Structure):
    struct_size: int
    version: int
    name: bytes | None
    make_plan: Any
    destroy: Any
    user: Any

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('version', ctypes.c_uint32),
        ('name', ctypes.c_char_p),
        ('make_plan', ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(gpushare_snapshot), ctypes.POINTER(gpushare_plan))),
        ('destroy', ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ('user', ctypes.c_void_p),
    )


class gpushare_task_features(ctypes.Structure):
    struct_size: int
    kernel_id: int
    kernel_name: bytes | None
    kind: int
    app_id: int
    block_tasks: int
    size_bytes: int
    declared_ns: int
    direction: int
    pinned: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('kernel_id', ctypes.c_uint32),
        ('kernel_name', ctypes.c_char_p),
        ('kind', ctypes.c_int32),
        ('app_id', ctypes.c_uint32),
        ('block_tasks', ctypes.c_int64),
        ('size_bytes', ctypes.c_int64),
        ('declared_ns', ctypes.c_int64),
        ('direction', ctypes.c_int32),
        ('pinned', ctypes.c_int32),
    )


class gpushare_confined_kernel(ctypes.Structure):
    struct_size: int
    kernel_id: int
    kernel_name: bytes | None
    sms: int
    reserved: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('kernel_id', ctypes.c_uint32),
        ('kernel_name', ctypes.c_char_p),
        ('sms', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
    )


class gpushare_fused_features(ctypes.Structure):
    struct_size: int
    blocks_per_sm: int
    name: bytes | None
    tensor_kernel_id: int
    cuda_kernel_id: int
    tensor_blocks: int
    cuda_blocks: int
    tensor_block_tasks: int
    cuda_block_tasks: int
    opportune_load_ratio: float
    opportune_duration_ratio: float

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('blocks_per_sm', ctypes.c_int32),
        ('name', ctypes.c_char_p),
        ('tensor_kernel_id', ctypes.c_uint32),
        ('cuda_kernel_id', ctypes.c_uint32),
        ('tensor_blocks', ctypes.c_int32),
        ('cuda_blocks', ctypes.c_int32),
        ('tensor_block_tasks', ctypes.c_int64),
        ('cuda_block_tasks', ctypes.c_int64),
        ('opportune_load_ratio', ctypes.c_double),
        ('opportune_duration_ratio', ctypes.c_double),
    )


class gpushare_co_resident_side(ctypes.Structure):
    struct_size: int
    kernel_id: int
    kernel_name: bytes | None
    workers_per_sm: int
    reserved: int
    block_tasks: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('kernel_id', ctypes.c_uint32),
        ('kernel_name', ctypes.c_char_p),
        ('workers_per_sm', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
        ('block_tasks', ctypes.c_int64),
    )


class gpushare_prediction(ctypes.Structure):
    duration_ns: int
    error_ns: int
    trained: int
    reserved: int

    _fields_ = (
        ('duration_ns', ctypes.c_int64),
        ('error_ns', ctypes.c_int64),
        ('trained', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
    )


class gpushare_co_resident_prediction(ctypes.Structure):
    speed: ctypes.Array[ctypes.c_double]
    speed_error: float
    finish: ctypes.Array[gpushare_prediction]

    _fields_ = (
        ('speed', ctypes.c_double * 2),
        ('speed_error', ctypes.c_double),
        ('finish', gpushare_prediction * 2),
    )


class gpushare_co_resident_view(ctypes.Structure):
    kernel_name: bytes | None
    kernel_id: int
    sms: int
    same_sms: int
    reserved: int

    _fields_ = (
        ('kernel_name', ctypes.c_char_p),
        ('kernel_id', ctypes.c_uint32),
        ('sms', ctypes.c_int32),
        ('same_sms', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
    )


class gpushare_observation(ctypes.Structure):
    struct_size: int
    form: int
    task: Any
    fused: Any
    beside: Any
    beside_count: int
    beside_stride: int
    sms: int
    workers: int
    predicted_ns: int
    measured_ns: int
    evicted: int
    reserved: int

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('form', ctypes.c_int32),
        ('task', ctypes.POINTER(gpushare_task_features)),
        ('fused', ctypes.POINTER(gpushare_fused_features)),
        ('beside', ctypes.POINTER(gpushare_co_resident_view)),
        ('beside_count', ctypes.c_uint32),
        ('beside_stride', ctypes.c_uint32),
        ('sms', ctypes.c_int32),
        ('workers', ctypes.c_int32),
        ('predicted_ns', ctypes.c_int64),
        ('measured_ns', ctypes.c_int64),
        ('evicted', ctypes.c_int32),
        ('reserved', ctypes.c_int32),
    )


gpushare_predict_solo_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(gpushare_task_features), ctypes.POINTER(gpushare_prediction))


gpushare_predict_beside_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(gpushare_confined_kernel), ctypes.POINTER(gpushare_confined_kernel), ctypes.POINTER(ctypes.c_double))


gpushare_predict_fused_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(gpushare_fused_features), ctypes.POINTER(gpushare_prediction))


gpushare_predict_co_resident_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(gpushare_co_resident_side), ctypes.POINTER(gpushare_co_resident_side), ctypes.POINTER(gpushare_co_resident_prediction))


gpushare_observe_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(gpushare_observation))


class gpushare_cost_model_table(ctypes.Structure):
    struct_size: int
    version: int
    name: bytes | None
    predict_solo: Any
    predict_beside: Any
    predict_fused: Any
    predict_co_resident: Any
    observe: Any
    destroy: Any
    user: Any

    _fields_ = (
        ('struct_size', ctypes.c_uint32),
        ('version', ctypes.c_uint32),
        ('name', ctypes.c_char_p),
        ('predict_solo', gpushare_predict_solo_callback),
        ('predict_beside', gpushare_predict_beside_callback),
        ('predict_fused', gpushare_predict_fused_callback),
        ('predict_co_resident', gpushare_predict_co_resident_callback),
        ('observe', gpushare_observe_callback),
        ('destroy', ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ('user', ctypes.c_void_p),
    )


# name: (type of the result, types of the arguments)
FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    'gpushare_abi_version': (ctypes.c_uint32, []),
    'gpushare_version_string': (ctypes.c_char_p, []),
    'gpushare_status_name': (ctypes.c_char_p, [ctypes.c_int32]),
    'gpushare_last_error_message': (ctypes.c_char_p, []),
    'gpushare_app_class_name': (ctypes.c_char_p, [ctypes.c_int32]),
    'gpushare_task_kind_name': (ctypes.c_char_p, [ctypes.c_int32]),
    'gpushare_form_name': (ctypes.c_char_p, [ctypes.c_int32]),
    'gpushare_verdict_name': (ctypes.c_char_p, [ctypes.c_int32]),
    'gpushare_reason_name': (ctypes.c_char_p, [ctypes.c_int32]),
    'gpushare_runtime_create': (ctypes.c_int32, [ctypes.POINTER(gpushare_runtime_options), ctypes.POINTER(ctypes.c_void_p)]),
    'gpushare_runtime_retain': (ctypes.c_int32, [ctypes.c_void_p]),
    'gpushare_runtime_release': (ctypes.c_int32, [ctypes.c_void_p]),
    'gpushare_runtime_shutdown': (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_int64]),
    'gpushare_runtime_drain': (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_int64]),
    'gpushare_runtime_quiesce': (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_int64]),
    'gpushare_runtime_resume': (ctypes.c_int32, [ctypes.c_void_p]),
    'gpushare_poll': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int32)]),
    'gpushare_poll_until': (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_int64]),
    'gpushare_now_ns': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)]),
    'gpushare_set_policy': (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p]),
    'gpushare_policy_names': (ctypes.c_int32, [ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)]),
    'gpushare_app_create': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(gpushare_app_options), ctypes.POINTER(ctypes.c_void_p)]),
    'gpushare_app_retain': (ctypes.c_int32, [ctypes.c_void_p]),
    'gpushare_app_release': (ctypes.c_int32, [ctypes.c_void_p]),
    'gpushare_reserve_capsm': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(gpushare_reservation_options)]),
    'gpushare_queue_create': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)]),
    'gpushare_queue_retain': (ctypes.c_int32, [ctypes.c_void_p]),
    'gpushare_queue_release': (ctypes.c_int32, [ctypes.c_void_p]),
    'gpushare_kernel_register': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(gpushare_kernel_options), ctypes.POINTER(ctypes.c_void_p)]),
    'gpushare_kernel_retain': (ctypes.c_int32, [ctypes.c_void_p]),
    'gpushare_kernel_release': (ctypes.c_int32, [ctypes.c_void_p]),
    'gpushare_kernel_info_by_name': (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(gpushare_kernel_info)]),
    'gpushare_profile_kernel_names': (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)]),
    'gpushare_fused_kernel_register': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(gpushare_fused_kernel_options), ctypes.POINTER(ctypes.c_void_p)]),
    'gpushare_fused_kernel_retain': (ctypes.c_int32, [ctypes.c_void_p]),
    'gpushare_fused_kernel_release': (ctypes.c_int32, [ctypes.c_void_p]),
    'gpushare_query_begin': (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(gpushare_query)]),
    'gpushare_query_begin_with': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(gpushare_query_options), ctypes.POINTER(gpushare_query)]),
    'gpushare_query_end': (ctypes.c_int32, [ctypes.c_void_p, gpushare_query]),
    'gpushare_submit_lc': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(gpushare_task_options), ctypes.POINTER(gpushare_ticket)]),
    'gpushare_submit_be': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(gpushare_task_options), ctypes.POINTER(gpushare_ticket)]),
    'gpushare_enqueue_fail': (ctypes.c_int32, [ctypes.c_char_p]),
    'gpushare_region_begin': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(gpushare_region_options), ctypes.POINTER(gpushare_ticket), ctypes.POINTER(ctypes.c_void_p)]),
    'gpushare_region_end': (ctypes.c_int32, [ctypes.c_void_p, gpushare_ticket]),
    'gpushare_ticket_wait': (ctypes.c_int32, [ctypes.c_void_p, gpushare_ticket, ctypes.c_int64]),
    'gpushare_ticket_poll': (ctypes.c_int32, [ctypes.c_void_p, gpushare_ticket, ctypes.POINTER(ctypes.c_int32)]),
    'gpushare_ticket_record': (ctypes.c_int32, [ctypes.c_void_p, gpushare_ticket, ctypes.POINTER(gpushare_completion_record)]),
    'gpushare_ticket_set_callback': (ctypes.c_int32, [ctypes.c_void_p, gpushare_ticket, gpushare_completion_callback, ctypes.c_void_p]),
    'gpushare_ticket_eventfd': (ctypes.c_int32, [ctypes.c_void_p, gpushare_ticket, ctypes.POINTER(ctypes.c_int)]),
    'gpushare_ticket_cancel': (ctypes.c_int32, [ctypes.c_void_p, gpushare_ticket]),
    'gpushare_ticket_release': (ctypes.c_int32, [ctypes.c_void_p, gpushare_ticket]),
    'gpushare_device_info_get': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(gpushare_device_info)]),
    'gpushare_guarantees': (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32)]),
    'gpushare_runtime_stats_get': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(gpushare_runtime_stats)]),
    'gpushare_app_stats_get': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(gpushare_app_stats)]),
    'gpushare_app_guarantee_get': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(gpushare_app_guarantee)]),
    'gpushare_app_id': (ctypes.c_uint32, [ctypes.c_void_p]),
    'gpushare_kernel_id': (ctypes.c_uint32, [ctypes.c_void_p]),
    'gpushare_metrics_text': (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)]),
    'gpushare_trace_start': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(gpushare_trace_options)]),
    'gpushare_trace_stop': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(gpushare_trace_summary)]),
    'gpushare_event_type_name': (ctypes.c_char_p, [ctypes.c_int32]),
    'gpushare_event_log_open': (ctypes.c_int32, [ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_int64)]),
    'gpushare_event_log_get': (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(gpushare_event)]),
    'gpushare_event_log_retain': (ctypes.c_int32, [ctypes.c_void_p]),
    'gpushare_event_log_release': (ctypes.c_int32, [ctypes.c_void_p]),
    'gpushare_calibrate': (ctypes.c_int32, [ctypes.POINTER(gpushare_calibration_options), gpushare_calibration_callback, ctypes.c_void_p]),
    'gpushare_evaluate_models': (ctypes.c_int32, [ctypes.c_char_p, gpushare_judge_callback, ctypes.c_void_p]),
    'gpushare_profile_load': (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p]),
    'gpushare_profile_save': (ctypes.c_int32, [ctypes.c_void_p, ctypes.c_char_p]),
    'gpushare_profile_validate': (ctypes.c_int32, [ctypes.c_char_p]),
    'gpushare_profile_train': (ctypes.c_int32, [ctypes.POINTER(gpushare_profile_train_options)]),
    'gpushare_profile_like': (ctypes.c_int32, [ctypes.POINTER(gpushare_profile_like_options), ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t)]),
    'gpushare_set_user_policy': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(gpushare_policy_table)]),
    'gpushare_set_user_cost_model': (ctypes.c_int32, [ctypes.c_void_p, ctypes.POINTER(gpushare_cost_model_table)]),
}


class Functions:
    """The functions of one loaded library. One that the library lacks raises AttributeError when used."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Callable[..., Any]:
        declared = FUNCTIONS.get(name)
        if declared is None:
            raise AttributeError(f"gpushare's C ABI has no function '{name}'.")
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise AttributeError(
                f"The loaded libgpushare is older than this package: it has no function '{name}'."
            ) from None
        function.restype, function.argtypes = declared
        setattr(self, name, function)
        return function  # type: ignore[no-any-return]
